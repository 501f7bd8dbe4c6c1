package task

import (
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// CPUs is a set of processors.
type CPUs [16]uint64

// Has reports whether the set contains a processor.
func (c *CPUs) Has(cpu int) bool {
	return cpu >= 0 && cpu < 64*len(c) && c[cpu/64]>>(cpu%64)&1 != 0
}

// List returns the processors in order.
func (c *CPUs) List() []int {
	var list []int
	for cpu := range 64 * len(c) {
		if c.Has(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

func (c *CPUs) remove(cpu int) { c[cpu/64] &^= 1 << (cpu % 64) }

// CPUs returns the processors that the process could use when it started.
func (s *Scheduler) CPUs() CPUs { return s.cpus }

// Pin moves Go's threads, and native threads that are not pinned, away from the cores of workers, so that they do not preempt workers. If no other
// core is left it changes nothing. It must be called before the workers start.
func (s *Scheduler) Pin(cores []int) {
	s.lock()
	defer s.mu.Unlock()
	before := slices.Clone(s.pinned)
	s.pinned = append(s.pinned, cores...)
	s.confine(before, before)
}

// Unpin reverts a Pin of the same cores. It must be called after their workers have ended.
func (s *Scheduler) Unpin(cores []int) {
	s.lock()
	defer s.mu.Unlock()
	before := slices.Clone(s.pinned)
	for _, core := range cores {
		if i := slices.Index(s.pinned, core); i >= 0 {
			s.pinned = slices.Delete(s.pinned, i, i+1)
		}
	}
	s.confine(before, s.pinned)
}

// confine moves all threads to the remaining processors, except workers, which are pinned to one of the given cores.
func (s *Scheduler) confine(before, workers []int) {
	left := s.without(s.pinned)
	if left == s.without(before) {
		return
	}
	for range 2 { // a thread created meanwhile inherits its parent's set
		for _, tid := range threads() {
			if now := threadCPUs(tid); now != left && !isWorker(now, workers) {
				setThreadCPUs(tid, left)
			}
		}
	}
}

// without returns the process's processors except those of workers; all of them if none remains.
func (s *Scheduler) without(pinned []int) CPUs {
	left := s.cpus
	for _, core := range pinned {
		left.remove(core)
	}
	if left == (CPUs{}) {
		return s.cpus
	}
	return left
}

func isWorker(now CPUs, cores []int) bool {
	list := now.List()
	return len(list) == 1 && slices.Contains(cores, list[0])
}

func threads() []int {
	entries, _ := os.ReadDir("/proc/self/task")
	var tids []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// threadCPUs returns the affinity of a thread; it is empty for a thread that has ended.
func threadCPUs(tid int) (c CPUs) {
	syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, uintptr(tid), unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
	return c
}

// setThreadCPUs sets the affinity of a thread; errors are ignored, because the thread may have ended or not be movable.
func setThreadCPUs(tid int, c CPUs) {
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
}
