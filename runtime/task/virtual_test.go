package task

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world is a session on the virtual clock that posts to a task at each time in due.
type world struct {
	due     []int64
	post    func(at int64)
	now     int64
	endless bool // always has work, so that time stands still
}

func (w *world) Step() int {
	if w.endless {
		return 1
	}
	if len(w.due) == 0 || w.due[0] > w.now {
		return 0
	}
	at := w.due[0]
	w.due = w.due[1:]
	w.post(at)
	return 1
}

func (w *world) NextTime() int64 {
	if len(w.due) == 0 {
		return Never
	}
	return w.due[0]
}

func (w *world) Advance(now int64) { w.now = now }

// since formats a time relative to the virtual clock's start.
func since(now int64) string { return fmt.Sprintf("%d", now-VirtualEpoch) }

// TestVirtualOrder runs tasks with timers and messages several times: the sequence is always the same, in order of time and id.
func TestVirtualOrder(t *testing.T) {
	want := []string{
		"0 t1 begins", "0 t2 begins", "0 t3 begins",
		"10 t1 timer a", "10 t2 timer b", "15 t3 message 15", "20 t1 timer a", "20 t3 message from t1",
		"30 t1 timer a", "30 t2 timer b", "30 t3 message from t1",
	}
	for range 50 {
		s, tasks := newTasks(t, 3)
		var got []string
		note := func(x *Task, what string) { got = append(got, since(x.Now())+" "+x.Name()+" "+what) }
		w := &world{due: []int64{VirtualEpoch + 15}}
		w.post = func(at int64) { w.putNow(tasks[2], at) }
		if err := s.Register(w); err != nil {
			t.Fatal(err)
		}
		serve := func(begin func(*Task), also func(*Task, *Item)) func(*Task) error {
			return func(me *Task) error {
				note(me, "begins")
				begin(me)
				for {
					it, err := me.Wait(VirtualEpoch + 35)
					if err != nil || it == nil {
						return err
					}
					note(me, title(it))
					also(me, it)
				}
			}
		}
		nothing := func(*Task, *Item) {}
		tasks[0].Start(func(me *Task) error {
			tasks[1].Start(serve(func(me *Task) { me.Every(10, "b"); me.alarms.list[0].period = 20 }, nothing))
			tasks[2].Start(serve(func(*Task) {}, nothing))
			return serve(func(me *Task) { me.Every(10, "a") }, func(me *Task, it *Item) {
				if it.Due > VirtualEpoch+10 {
					_ = tasks[2].Send("from "+me.Name(), me)
				}
			})(me)
		})
		finish(t, tasks...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// putNow acts like a native event: it makes the task ready without a call from outside.
func (w *world) putNow(x *Task, at int64) {
	_ = x.inbox.put(Item{Kind: Message, Value: at - VirtualEpoch})
}

func TestVirtualIdle(t *testing.T) {
	s, tasks := newTasks(t, 2)
	if err := s.Register(&world{}); err != nil {
		t.Fatal(err)
	}
	var order []string
	tasks[0].Start(func(me *Task) error {
		tasks[1].Start(func(me *Task) error {
			it, err := me.Wait(Never)
			order = append(order, me.Name()+" "+title(it))
			return err
		})
		_, err := me.Wait(Never)
		if !errors.Is(err, ErrIdle) {
			return fmt.Errorf("nothing can happen, and the wait ended with %w", err)
		}
		order = append(order, me.Name()+" idle")
		tasks[1].Stop("idle")
		return nil
	})
	finish(t, tasks...)
	if want := []string{"t1 idle", "t2 stop idle"}; !slices.Equal(order, want) {
		t.Errorf("order %q", order)
	}
}

func TestVirtualPeriodsAreMadeUpForAtOnce(t *testing.T) {
	s, tasks := newTasks(t, 1)
	if err := s.Register(&world{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	tasks[0].Start(func(me *Task) error {
		a := me.Every(10, "tick")
		if _, err := me.WaitFor(me.Now()+35, func(*Item) bool { return false }); err != nil {
			return err
		}
		for range 2 {
			it, err := me.Wait(Never)
			if err != nil {
				return err
			}
			got = append(got, since(me.Now())+" due "+since(it.Due))
		}
		a.Cancel()
		a.Cancel()
		if it, err := me.Wait(me.Now() + 100); it != nil || err != nil {
			return fmt.Errorf("after the cancel: %v, %w", it, err)
		}
		return nil
	})
	finish(t, tasks[0])
	if want := []string{"35 due 10", "40 due 40"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClocksDoNotMix(t *testing.T) {
	s, _ := newTasks(t, 0)
	w := &world{}
	steps := []struct {
		name    string
		do      func() error
		ok      bool
		virtual bool
	}{
		{"first virtual", func() error { return s.Register(w) }, true, true},
		{"real beside it", func() error { return s.Register(nil) }, false, true},
		{"second virtual", func() error { return s.Register(&world{}) }, true, true},
		{"one leaves", func() error { s.Unregister(w); return nil }, true, true},
		{"the other leaves", func() error { s.Unregister(s.steppers[0]); return nil }, true, false},
		{"real", func() error { return s.Register(nil) }, true, false},
		{"virtual beside it", func() error { return s.Register(w) }, false, false},
	}
	for _, x := range steps {
		if err := x.do(); (err == nil) != x.ok || s.Virtual() != x.virtual {
			t.Errorf("%s: %v, virtual %v", x.name, err, s.Virtual())
		}
	}
}

// TestSwitchToVirtual opens a virtual session while tasks wait natively: they switch to the virtual clock.
func TestSwitchToVirtual(t *testing.T) {
	s, tasks := newTasks(t, 2)
	tasks[1].Start(func(me *Task) error {
		it, err := me.Wait(Never)
		if err == nil && title(it) != "message hello" {
			err = errors.New(title(it))
		}
		return err
	})
	tasks[0].Start(func(me *Task) error {
		w := &world{}
		if err := s.Register(w); err != nil {
			return err
		}
		if it, err := me.Wait(me.Now() + 1000); it != nil || err != nil {
			return fmt.Errorf("%v, %w", it, err)
		}
		if since(me.Now()) != "1000" {
			return fmt.Errorf("time is %s", since(me.Now()))
		}
		if err := tasks[1].Send("hello", me); err != nil {
			return err
		}
		s.Unregister(w)
		return nil
	})
	finish(t, tasks...)
}
