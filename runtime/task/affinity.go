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

// Has reports whether the set has a processor.
func (c *CPUs) Has(cpu int) bool {
	return cpu >= 0 && cpu < 64*len(c) && c[cpu/64]>>(cpu%64)&1 != 0
}

// List gives the processors in order.
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

// CPUs are the processors that the process could use when it started.
func (s *Scheduler) CPUs() CPUs { return s.cpus }

// Pin keeps the threads of Go, and native threads that are not pinned, off the cores of
// workers, so that nothing preempts these. Where no other core is left it changes nothing.
// Call it before the workers start.
func (s *Scheduler) Pin(cores []int) {
	s.lock()
	defer s.mu.Unlock()
	before := slices.Clone(s.pinned)
	s.pinned = append(s.pinned, cores...)
	s.confine(before, before)
}

// Unpin ends a Pin of the same cores. Call it when their workers have ended.
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

// confine moves threads to the processors left over, unless they are workers: pinned to one
// of the cores workers.
func (s *Scheduler) confine(before, workers []int) {
	left := s.without(s.pinned)
	if left == s.without(before) {
		return
	}
	for range 2 { // a thread that was born meanwhile has its parent's set
		for _, tid := range threads() {
			if now := threadCPUs(tid); now != left && !isWorker(now, workers) {
				setThreadCPUs(tid, left)
			}
		}
	}
}

// without returns the process's processors but for those of workers; all when none is left.
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

// threadCPUs is empty for a thread that has ended.
func threadCPUs(tid int) (c CPUs) {
	syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, uintptr(tid), unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
	return c
}

// setThreadCPUs leaves a thread that has ended, or that may not be moved, as it is.
func setThreadCPUs(tid int, c CPUs) {
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
}
