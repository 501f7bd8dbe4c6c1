package task

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newTasks returns a scheduler and n of its tasks.
func newTasks(t *testing.T, n int) (*Scheduler, []*Task) {
	t.Helper()
	s := NewScheduler()
	tasks := make([]*Task, n)
	for i := range tasks {
		var err error
		if tasks[i], err = s.NewTask(fmt.Sprintf("t%d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.Close)
	return s, tasks
}

// finish waits for tasks to end and checks their results.
func finish(t *testing.T, tasks ...*Task) {
	t.Helper()
	for _, x := range tasks {
		<-x.Done()
		if x.Err() != nil {
			t.Errorf("task %s: %v", x.Name(), x.Err())
		}
	}
}

// title returns a short description of an item, for comparing sequences.
func title(it *Item) string {
	if it == nil {
		return "until"
	}
	switch it.Kind {
	case Timer:
		return fmt.Sprint("timer ", it.Target)
	case Message:
		return fmt.Sprint("message ", it.Value)
	case Call:
		return "call"
	case Stop:
		return "stop " + it.Reason
	}
	return fmt.Sprint("kind ", it.Kind)
}

func TestWaitOrder(t *testing.T) {
	_, tasks := newTasks(t, 1)
	var got []string
	tasks[0].Start(func(me *Task) error {
		for _, v := range []int{1, 2} {
			if err := me.Send(v, me); err != nil {
				return err
			}
		}
		if err := me.Post(func() {}); err != nil {
			return err
		}
		now := me.Now()
		me.At(now-5, "late")
		me.At(now-9, "earlier")
		me.At(now-5, "as late")
		me.Stop("enough")
		for {
			it, err := me.Wait(0)
			if err != nil {
				return err
			}
			got = append(got, title(it))
			if it == nil {
				return nil
			}
		}
	})
	finish(t, tasks[0])
	want := []string{"stop enough", "timer earlier", "timer late", "timer as late", "message 1", "message 2", "call", "until"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWaitUntilThePastLooksOnce(t *testing.T) {
	_, tasks := newTasks(t, 1)
	tasks[0].Start(func(me *Task) error {
		for _, until := range []int64{math.MinInt64, -1, 0, me.Now() - 1, me.Now()} {
			if it, err := me.Wait(until); it != nil || err != nil {
				return fmt.Errorf("until %d: %v, %w", until, it, err)
			}
		}
		return nil
	})
	finish(t, tasks[0])
}

// TestWaitEndsUnderLoad runs tasks that produce items faster than they handle them.
func TestWaitEndsUnderLoad(t *testing.T) {
	cases := []struct {
		name string
		more func(me *Task) error
	}{
		{"messages", func(me *Task) error { return me.Send(1, me) }},
		{"timers", func(me *Task) error { me.At(me.Now(), "at once"); return nil }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, tasks := newTasks(t, 1)
			tasks[0].Start(func(me *Task) error {
				for _, until := range []int64{me.Now() + 1e6, 0, 0, me.Now() + 2e6} {
					for it := (&Item{}); it != nil; {
						if err := c.more(me); err != nil {
							return err
						}
						var err error
						if it, err = me.Wait(until); err != nil {
							return err
						}
					}
				}
				return nil
			})
			finish(t, tasks[0])
		})
	}
}

func TestWaitForKeepsOthers(t *testing.T) {
	_, tasks := newTasks(t, 1)
	var got []string
	tasks[0].Start(func(me *Task) error {
		for v := range 5 {
			if err := me.Send(v, me); err != nil {
				return err
			}
		}
		me.At(0, "due")
		it, err := me.WaitFor(Never, func(it *Item) bool { return it.Value == 3 })
		if err != nil {
			return err
		}
		got = append(got, title(it))
		if it, err = me.WaitFor(0, func(it *Item) bool { return it.Value == 99 }); err != nil || it != nil {
			return fmt.Errorf("nothing wanted came, but %v, %w", it, err)
		}
		for {
			if it, err = me.Wait(0); err != nil || it == nil {
				return err
			}
			got = append(got, title(it))
		}
	})
	finish(t, tasks[0])
	want := []string{"message 3", "timer due", "message 0", "message 1", "message 2", "message 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStopEndsWaitFor(t *testing.T) {
	_, tasks := newTasks(t, 1)
	tasks[0].Start(func(me *Task) error {
		if _, err := me.WaitFor(Never, func(*Item) bool { return false }); !errors.Is(err, ErrStopped) {
			return fmt.Errorf("WaitFor: %w", err)
		}
		it, err := me.Wait(Never)
		if err == nil && title(it) != "stop now" {
			err = fmt.Errorf("after it: %s", title(it))
		}
		return err
	})
	tasks[0].Stop("now")
	finish(t, tasks[0])
}

func TestInboxIsBounded(t *testing.T) {
	_, tasks := newTasks(t, 1)
	me := tasks[0]
	for v := range inboxRoom {
		if err := me.Send(v, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := me.Send("one more", nil); !errors.Is(err, ErrFull) {
		t.Errorf("full: %v", err)
	}
	me.Start(func(me *Task) error {
		if _, err := me.WaitFor(0, func(it *Item) bool { return false }); err != nil {
			return err
		}
		if err := me.Send("one more", nil); !errors.Is(err, ErrFull) {
			return fmt.Errorf("what the task took and did not deliver must count: %w", err)
		}
		if _, err := me.Wait(0); err != nil {
			return err
		}
		return me.Send("one more", nil)
	})
	finish(t, me)
	if err := me.Send("too late", nil); !errors.Is(err, ErrEnded) {
		t.Errorf("ended: %v", err)
	}
}

func TestCancelEndsWaits(t *testing.T) {
	cause := errors.New("interrupted")
	for _, virtual := range []bool{false, true} {
		t.Run(fmt.Sprintf("virtual %v", virtual), func(t *testing.T) {
			s, tasks := newTasks(t, 2)
			if virtual {
				if err := s.Register(&world{endless: true}); err != nil {
					t.Fatal(err)
				}
			}
			for i, x := range tasks {
				x.Start(func(me *Task) error {
					var err error
					if i == 0 {
						_, err = me.Wait(Never)
					} else {
						_, err = me.WaitFor(Never, func(*Item) bool { return false })
					}
					if !errors.Is(err, cause) || me.Context().Err() == nil {
						return fmt.Errorf("wait ended with %w", err)
					}
					return nil
				})
			}
			s.CancelAll(cause)
			finish(t, tasks...)
		})
	}
}

func TestAbandoned(t *testing.T) {
	s, tasks := newTasks(t, 2)
	release := make(chan struct{})
	tasks[0].Start(func(*Task) error { <-release; return nil })
	tasks[1].Start(func(me *Task) error { _, err := me.Wait(Never); return err })
	s.StopAll("end")
	<-tasks[1].Done()
	if late := s.JoinAll(time.Millisecond); !slices.Equal(late, tasks[:1]) || !tasks[0].Abandoned() {
		t.Errorf("abandoned %v", late)
	}
	close(release)
	finish(t, tasks...)
	if s.Tasks() != nil {
		t.Errorf("still known: %v", s.Tasks())
	}
}

func TestAtExitRunsBackwards(t *testing.T) {
	_, tasks := newTasks(t, 1)
	var got []int
	tasks[0].Start(func(me *Task) error {
		me.AtExit(func() { got = append(got, 1) })
		me.AtExit(func() { got = append(got, 2) })
		return nil
	})
	finish(t, tasks[0])
	if !slices.Equal(got, []int{2, 1}) {
		t.Errorf("order %v", got)
	}
}

func TestProcessorsFollowTasks(t *testing.T) {
	_, tasks := newTasks(t, 3)
	release := make(chan struct{})
	for _, x := range tasks {
		x.Start(func(*Task) error { <-release; return nil })
	}
	if got := runtime.GOMAXPROCS(0); got < len(tasks)+4 {
		t.Errorf("GOMAXPROCS is %d with %d tasks", got, len(tasks))
	}
	close(release)
	finish(t, tasks...)
}

// TestHammerHold holds and releases a task's wait from several goroutines while others send to the task: no message is lost and no goroutine hangs.
func TestHammerHold(t *testing.T) {
	_, tasks := newTasks(t, 1)
	const senders, each = 4, 200
	tasks[0].Start(func(me *Task) error {
		for n := 0; n < senders*each; n++ {
			if _, err := me.Wait(Never); err != nil {
				return err
			}
		}
		return nil
	})
	for range senders {
		go func() {
			for v := 0; v < each; {
				tasks[0].Hold()
				if tasks[0].Send(v, nil) == nil {
					v++
				}
				tasks[0].Release()
			}
		}()
	}
	finish(t, tasks[0])
}
