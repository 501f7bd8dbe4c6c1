package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Check intervals of the monitor, derived from how fast a script can allocate memory.
const (
	fillRate = 4 << 30 // bytes/s
	often    = 2 * time.Millisecond
	seldom   = 500 * time.Millisecond
)

// hard returns the usage above which every instruction of a task raises an error.
func hard() uint64 {
	most, _ := Limit()
	return most + most/2
}

// used returns Go's memory usage in bytes: objects, including garbage not yet collected, and stacks.
func used() uint64 {
	samples := samplePool.Get().(*[2]metrics.Sample)
	defer samplePool.Put(samples)
	metrics.Read(samples[:])
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

var samplePool = sync.Pool{New: func() any {
	return &[2]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
}}

// monitor holds the registered tasks. Its goroutine runs while there are any.
var monitor struct {
	mu      sync.Mutex
	members []*member
	running bool
}

// enter registers the task of this thread.
func enter() *member {
	m := &member{tid: syscall.Gettid()}
	monitor.mu.Lock()
	defer monitor.mu.Unlock()
	monitor.members = append(monitor.members, m)
	if !monitor.running {
		monitor.running = true
		go watch()
	}
	return m
}

func (m *member) leave() {
	monitor.mu.Lock()
	defer monitor.mu.Unlock()
	monitor.members = slices.DeleteFunc(monitor.members, func(x *member) bool { return x == m })
}

// limitCollector makes Go collect garbage more often as usage approaches the limit.
var limitCollector = sync.OnceFunc(func() {
	if most, _ := Limit(); most < math.MaxInt64 {
		debug.SetMemoryLimit(int64(most))
	}
})

// watch checks memory usage until no task is registered.
func watch() {
	limitCollector()
	most, _ := Limit()
	for {
		n := used()
		if n > most {
			runtime.GC()
			n = used()
		}
		if !look(n > most) {
			return
		}
		free := time.Duration(float64(most-min(n, most)) / fillRate * float64(time.Second))
		time.Sleep(min(max(free, often), seldom))
	}
}

// look makes one more task raise an error if memory is short: the one that has run most since the last check. It returns false if no task is
// registered.
func look(short bool) bool {
	monitor.mu.Lock()
	defer monitor.mu.Unlock()
	if len(monitor.members) == 0 {
		monitor.running = false
		return false
	}
	var busiest *member
	most := int64(-1)
	for _, m := range monitor.members {
		now := threadTime(m.tid)
		if ran := now - m.cpu; ran > most && !m.over.Load() {
			busiest, most = m, ran
		}
		m.cpu = now
	}
	if short && busiest != nil {
		busiest.over.Store(true)
	}
	return true
}

// threadTime returns the CPU time that a thread of this process has used, in ns, or 0 if the thread has ended. The clock id has the layout that
// pthread_getcpuclockid uses.
func threadTime(tid int) int64 {
	const perThread, scheduled = 4, 2
	var t syscall.Timespec
	clock := uintptr(^tid<<3 | perThread | scheduled)
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return 0
	}
	return t.Nano()
}
