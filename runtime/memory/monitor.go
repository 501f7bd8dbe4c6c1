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

// How the monitor looks: as often as memory can fill up, as far as a script is able to fill it.
const (
	fillRate = 4 << 30 // bytes/s
	often    = 2 * time.Millisecond
	seldom   = 500 * time.Millisecond
)

// hard is the amount above which a task gets no further: each of its instructions raises.
func hard() uint64 {
	most, _ := Limit()
	return most + most/2
}

// used is what Go holds: objects, also those that the next collection frees, and stacks.
func used() uint64 {
	samples := samplePool.Get().(*[2]metrics.Sample)
	defer samplePool.Put(samples)
	metrics.Read(samples[:])
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

var samplePool = sync.Pool{New: func() any {
	return &[2]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
}}

// The tasks that are watched. The monitor runs while there are any.
var monitor struct {
	mu      sync.Mutex
	members []*member
	running bool
}

// enter adds the task of this thread.
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

// limitCollector has Go collect garbage more often before the limit is reached.
var limitCollector = sync.OnceFunc(func() {
	if most, _ := Limit(); most < math.MaxInt64 {
		debug.SetMemoryLimit(int64(most))
	}
})

// watch looks at the memory until nobody is watched.
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

// look has one more task raise where memory is short, the one that has run most since the last time. False: nobody is left.
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

// threadTime is the CPU time that a thread of this process has taken, in ns; 0: it has gone. The clock's number is
// made as pthread_getcpuclockid makes it.
func threadTime(tid int) int64 {
	const perThread, scheduled = 4, 2
	var t syscall.Timespec
	clock := uintptr(^tid<<3 | perThread | scheduled)
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return 0
	}
	return t.Nano()
}
