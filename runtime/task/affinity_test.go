package task

import (
	"runtime"
	"slices"
	"testing"
)

func TestPinKeepsOurThreadsOff(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := NewScheduler()
	all := s.cpus.List()
	if len(all) < 2 {
		t.Skip("one processor: there is nothing to keep off")
	}
	last, rest := all[len(all)-1:], all[:len(all)-1]
	for _, step := range []struct {
		name string
		do   func()
		want []int
	}{
		{"pin", func() { s.Pin(last) }, rest},
		{"pin again", func() { s.Pin(last) }, rest},
		{"unpin one", func() { s.Unpin(last) }, rest},
		{"unpin", func() { s.Unpin(last) }, all},
		{"pin all", func() { s.Pin(all) }, all},
		{"unpin all", func() { s.Unpin(all) }, all},
		{"pin nothing", func() { s.Pin(nil) }, all},
	} {
		step.do()
		now := threadCPUs(0)
		if got := now.List(); !slices.Equal(got, step.want) {
			t.Errorf("%s: this thread may run on %v, want %v", step.name, got, step.want)
		}
	}
}
