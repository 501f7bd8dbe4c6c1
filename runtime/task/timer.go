package task

import (
	"container/heap"
	"time"
)

// Alarm is a timer of a task, one-shot or periodic.
type Alarm struct {
	t      *Task
	due    int64
	period int64 // 0: one-shot
	seq    uint64
	index  int // in the heap; -1: not in it
	target any
}

// Every returns a timer that expires after each period. A late task gets one item for all missed periods.
func (t *Task) Every(period time.Duration, target any) *Alarm {
	p := max(int64(period), 1)
	return t.alarm(t.In(p), p, target)
}

// After returns a timer that expires once, after d.
func (t *Task) After(d time.Duration, target any) *Alarm {
	return t.alarm(t.In(max(int64(d), 0)), 0, target)
}

// In returns the time ns after now on the task's clock, or Never on overflow.
func (t *Task) In(ns int64) int64 { return later(t.Now(), ns) }

func later(from, ns int64) int64 {
	if ns < Never-from {
		return from + ns
	}
	return Never
}

// At returns a timer that expires once, at a time of the task's clock.
func (t *Task) At(due int64, target any) *Alarm { return t.alarm(due, 0, target) }

func (t *Task) alarm(due, period int64, target any) *Alarm {
	t.alarms.seq++
	a := &Alarm{t: t, due: due, period: period, seq: t.alarms.seq, target: target}
	heap.Push(&t.alarms, a)
	return a
}

// Cancel stops the timer. Repeated calls do nothing.
func (a *Alarm) Cancel() {
	if a.index >= 0 {
		heap.Remove(&a.t.alarms, a.index)
	}
	a.period = 0
}

// Due returns the next expiry time.
func (a *Alarm) Due() int64 { return a.due }

// alarms is a heap of timers, ordered by due time and then by creation.
type alarms struct {
	list []*Alarm
	seq  uint64
}

// next returns the earliest due time, or Never.
func (h *alarms) next() int64 {
	if len(h.list) == 0 {
		return Never
	}
	return h.list[0].due
}

// fire returns the item of the first timer, which must be due, and restarts a periodic one.
func (h *alarms) fire(now int64) Item {
	a := h.list[0]
	it := Item{Kind: Timer, Target: a.target, Due: a.due}
	if a.period == 0 {
		heap.Pop(h)
		return it
	}
	late := (now - a.due) % a.period
	a.due = later(now, a.period-late)
	heap.Fix(h, 0)
	return it
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *alarms) Len() int { return len(h.list) }

// Less orders by due time, then by creation.
func (h *alarms) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	return a.due < b.due || a.due == b.due && a.seq < b.seq
}

// Swap swaps two timers.
func (h *alarms) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].index, h.list[j].index = i, j
}

// Push appends a timer.
func (h *alarms) Push(x any) {
	a := x.(*Alarm)
	a.index = len(h.list)
	h.list = append(h.list, a)
}

// Pop removes and returns the last timer.
func (h *alarms) Pop() any {
	a := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	a.index = -1
	return a
}
