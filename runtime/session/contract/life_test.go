package contract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// loop returns the loop engine's row of the suite.
func loop(direct bool) engine { return engine{name: "loop", frames: true, direct: direct} }

// TestTaskEndsBeforeItsSession checks that when a second task with a tap ends, its tap ends, and the rest of the pipe and the session continue.
func TestTaskEndsBeforeItsSession(t *testing.T) {
	onTask(t, func(me *task.Task) error {
		b, err := loop(false).open(me, "")
		if err != nil {
			return err
		}
		defer b.s.Close()
		other, err := me.Scheduler().NewTask("other")
		if err != nil {
			return err
		}
		ready := make(chan error)
		other.Start(func(other *task.Task) error {
			tap, err := b.s.Tap("theirs", other, nil, session.TapOptions{Policy: session.Wait, Depth: 1})
			if err == nil {
				var count *session.Stage
				if count, err = b.s.Count("behind"); err == nil {
					_, err = b.s.Pipe([]*session.Queue{b.rx}, tap.Stage, count)
				}
			}
			ready <- err
			_, err = other.Wait(task.Never)
			return err
		})
		if err := <-ready; err != nil {
			return err
		}
		mine, err := b.rx.Tap(me, nil, session.TapOptions{Policy: session.Wait})
		if err != nil {
			return err
		}
		if err := b.s.Start(me); err != nil {
			return err
		}
		other.Stop("enough")
		<-other.Done()
		const n = 10
		for seq := range uint64(n) { // an abandoned tap with policy wait would block the queue
			if err := b.send(seq, 1, 7148); err != nil {
				return err
			}
		}
		if err := b.receive(mine, n, func(*session.Burst, int) error { return nil }); err != nil {
			return err
		}
		b.quiesce()
		if got, _ := b.s.Ledger().Lookup("behind.in"); got != n {
			t.Errorf("the stage behind the tap saw %v of %d packets", got, n)
		}
		return other.Err()
	})
}

// TestTemplatesAreLetGo checks that the memory of unreferenced templates is freed while the session lives.
func TestTemplatesAreLetGo(t *testing.T) {
	const rounds, each, size, most = 50, 500, 8000, 100 << 20
	onTask(t, func(me *task.Task) error {
		b, err := loop(true).open(me, "")
		if err != nil {
			return err
		}
		defer b.s.Close()
		before := stats.ReadProcess(0).RSS
		for range rounds {
			for range each {
				if _, err := b.s.Template(session.TemplateConfig{Packet: make([]byte, size)}); err != nil {
					return err
				}
			}
			runtime.GC()
		}
		if now := stats.ReadProcess(0).RSS; now > before+most {
			t.Errorf("%d MB more after templates of %d MB", (now-before)>>20, rounds*each*size>>20)
		}
		return nil
	})
}

// TestChangesFromAnotherTask flushes and changes transmissions repeatedly while the task that polls the direct queues waits: the engine must not run
// both at once.
func TestChangesFromAnotherTask(t *testing.T) {
	onTask(t, func(me *task.Task) error {
		b, err := loop(true).open(me, "")
		if err != nil {
			return err
		}
		defer b.s.Close()
		tap, err := b.rx.Tap(me, nil, session.TapOptions{Policy: session.Wait})
		if err != nil {
			return err
		}
		var tpls [2]*session.Template
		for k := range tpls {
			packet := make([]byte, 200)
			b.put(packet, uint64(k), 7148)
			if tpls[k], err = b.s.Template(session.TemplateConfig{Packet: packet}); err != nil {
				return err
			}
		}
		if err := b.s.Start(me); err != nil {
			return err
		}
		changed := make(chan error, 1)
		go func() {
			for k := range 400_000 {
				if err := b.tx.Transmit(tpls[k%2], 1000); err != nil {
					changed <- err
					return
				}
				if _, err := b.rx.Flush(); err != nil {
					changed <- err
					return
				}
			}
			changed <- nil
		}()
		for done := false; !done; {
			select {
			case err := <-changed:
				if err != nil {
					return err
				}
				done = true
			default:
				x, err := tap.Next(b.l, b.me.Now()+1e6)
				if err == nil {
					err = x.Free()
				}
				if err != nil && !errors.Is(err, session.ErrNotReady) {
					return err
				}
			}
		}
		b.quiesce()
		if err := b.s.Finish(); err != nil {
			return err
		}
		if bad := b.s.Ledger().Balance(); bad != nil {
			t.Errorf("accounts: %v", bad)
		}
		if n := b.s.Close(); n != 0 {
			t.Errorf("%d buffers are not in their pools", n)
		}
		return nil
	})
}

// TestMemoryOutlivesTasks closes a session while another task owns a burst of it.
func TestMemoryOutlivesTasks(t *testing.T) {
	onTask(t, func(me *task.Task) error {
		b, err := loop(false).open(me, "")
		if err != nil {
			return err
		}
		other, err := me.Scheduler().NewTask("other")
		if err != nil {
			return err
		}
		holds, closed := make(chan error), make(chan bool)
		other.Start(func(other *task.Task) error {
			l := session.NewLeases()
			tap, err := b.rx.Tap(other, nil, session.TapOptions{})
			if err != nil {
				holds <- err
				return err
			}
			holds <- nil
			x, err := tap.Next(l, other.Now()+int64(20*time.Second))
			if err != nil {
				holds <- err
				return err
			}
			memory, err := x.Packet(0, 0)
			holds <- err
			<-closed
			if _, err := x.Packet(0, 0); err == nil {
				return errors.New("a burst of a closed session can be used")
			}
			memory[0]++ // the memory must still be mapped, because an abandoned task may write to it
			if n := l.ReleaseAll(); n != 0 {
				return fmt.Errorf("%d bursts left", n)
			}
			return nil
		})
		if err := <-holds; err != nil {
			return err
		}
		if err := b.s.Start(me); err != nil {
			return err
		}
		if err := b.send(0, 4, 7148); err != nil {
			return err
		}
		if err := <-holds; err != nil {
			return err
		}
		if n := b.s.Close(); n == 0 {
			t.Error("the burst that the other task holds is not missed")
		}
		closed <- true
		<-other.Done()
		end := b.s.Now()
		time.Sleep(time.Millisecond)
		if b.s.Now() != end { // the clock is freed with the memory
			t.Error("the memory stays after the task has ended")
		}
		return other.Err()
	})
}

// TestHammerLedger reads accounts and calls Stop from other goroutines during traffic and changes of pipes.
func TestHammerLedger(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct %v", direct), func(t *testing.T) {
			t.Parallel()
			onTask(t, func(me *task.Task) error { return hammer(t, direct, me) })
		})
	}
}

// readAccounts reads the ledger until done and checks that no counter decreases.
func (b *bench) readAccounts(t *testing.T, done chan bool) {
	last := map[string]uint64{}
	for {
		select {
		case <-done:
			return
		default:
		}
		for _, l := range b.s.Ledger().Lines {
			if l.Kind == stats.Tx && l.In < last[l.Title()] {
				t.Errorf("%s went back from %d to %d", l.Title(), last[l.Title()], l.In)
			}
			last[l.Title()] = l.In
		}
		_ = b.s.Now()
	}
}

// changePipes creates and removes pipes.
func (b *bench) changePipes() error {
	count, err := b.s.Count("")
	if err != nil {
		return err
	}
	for range 100 {
		p, err := b.s.Pipe([]*session.Queue{b.rx}, count)
		if err != nil {
			return err
		}
		p.Remove()
	}
	return nil
}

func hammer(t *testing.T, direct bool, me *task.Task) error {
	b, err := loop(direct).open(me, "")
	if err != nil {
		return err
	}
	tap, err := b.begin(session.Wait)
	if err != nil {
		return err
	}
	done := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() { b.readAccounts(t, done) })
	wg.Go(func() {
		if err := b.changePipes(); err != nil {
			t.Error(err)
		}
		b.s.Stop("hammered")
	})
	seq := uint64(0)
	for stopping := false; !stopping || seq < 200; seq++ {
		if err := b.send(seq, 2, 7148); err != nil {
			return err
		}
		if err := b.receive(tap, 2, func(*session.Burst, int) error { return nil }); err != nil {
			return err
		}
		_, stopping = b.s.Stopping()
	}
	b.quiesce()
	if bad := b.s.Ledger().Balance(); bad != nil {
		t.Errorf("accounts: %v", bad)
	}
	if n := b.s.Close(); n != 0 {
		t.Errorf("%d buffers are missing", n)
	}
	close(done)
	wg.Wait()
	return nil
}

// TestVirtualRunsRepeat runs traffic over a lossy wire several times and checks that the same packets arrive at the same times.
func TestVirtualRunsRepeat(t *testing.T) {
	var want []int64
	for round := range 20 {
		var got []int64
		onTask(t, func(me *task.Task) error {
			e := engine{name: "loop-virtual", frames: true, direct: true, virtual: true, faults: ", loss: 0.2, reorder: 0.2, dup: 0.1, delay: 3us, rate: 1Gbit/s"}
			b, err := e.open(me, "")
			if err != nil {
				return err
			}
			tap, err := b.begin(session.Wait)
			if err != nil {
				return err
			}
			packet := make([]byte, 200)
			b.put(packet, 0, 7148)
			tpl, err := b.s.Template(session.TemplateConfig{Packet: packet, Vary: []session.Vary{{Field: b.seqField(), Step: 1}}})
			if err != nil {
				return err
			}
			if err := b.tx.Transmit(tpl, 500); err != nil {
				return err
			}
			end := me.Now() + int64(10*time.Millisecond)
			for {
				x, err := tap.Next(b.l, end)
				if errors.Is(err, session.ErrNotReady) {
					break
				}
				if err != nil {
					return err
				}
				for i, at := range x.RxTimes() {
					p, err := x.Packet(0, i)
					if err != nil {
						return err
					}
					got = append(got, at, int64(p[headers+7]))
				}
				if err := x.Free(); err != nil {
					return err
				}
			}
			if n := b.s.Close(); n != 0 {
				t.Errorf("%d buffers are missing", n)
			}
			return nil
		})
		if round == 0 {
			want = got
		}
		if len(got) < 2*300 || !slices.Equal(got, want) {
			t.Fatalf("round %d: %d figures, not the %d of the first round", round, len(got), len(want))
		}
	}
}

// TestVirtualTimeMoves transmits endlessly without a pace and checks that a wait still ends, because the wire has a rate.
func TestVirtualTimeMoves(t *testing.T) {
	onTask(t, func(me *task.Task) error {
		e := engine{name: "loop-virtual", frames: true, direct: true, virtual: true}
		b, err := e.open(me, "")
		if err != nil {
			return err
		}
		defer b.s.Close()
		if err := b.s.Start(me); err != nil {
			return err
		}
		packet := make([]byte, 1000)
		b.put(packet, 0, 7148)
		tpl, err := b.s.Template(session.TemplateConfig{Packet: packet})
		if err != nil {
			return err
		}
		if err := b.tx.Transmit(tpl, 0); err != nil {
			return err
		}
		if it, err := me.Wait(me.Now() + int64(time.Millisecond)); it != nil || err != nil {
			return fmt.Errorf("%v, %w", it, err)
		}
		sent, _ := b.s.Ledger().Lookup("a.tx.packets")
		const virtualRate = 100e9 // of a wire without a rate
		if most := virtualRate / 8 / 1000 * 1.1e-3; sent == 0 || sent > most {
			t.Errorf("%v packets in a millisecond of at most %v", sent, most)
		}
		return nil
	})
}

// TestWorkersGetTheirCores starts a pinned worker and checks that its core is exclusive, and released at the end.
func TestWorkersGetTheirCores(t *testing.T) {
	sched := task.NewScheduler()
	host := sched.CPUs()
	all := host.List()
	if len(all) < 2 {
		t.Skip("one processor: a worker can't have its own")
	}
	cfg, _, err := spec.ParseText("rx.yaml", fill(map[string]string{"CORE": "1000"}), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(cfg, session.Env{Scheduler: sched, Cores: preflight.Cores{Auto: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(nil); err != nil {
		t.Fatal(err)
	}
	worker, others := 0, 0
	for _, allowed := range allowedCPUs(t) {
		switch allowed {
		case fmt.Sprint(all[1]):
			worker++
		case preflight.FormatCores(slices.Delete(slices.Clone(all), 1, 2)):
		default:
			others++
		}
	}
	if worker == 0 || others != 0 {
		t.Errorf("%d threads run on core %d, %d others are not kept off it", worker, all[1], others)
	}
	s.Close()
	for _, allowed := range allowedCPUs(t) {
		if allowed != preflight.FormatCores(all) {
			t.Errorf("a thread may use %s after the close, want %s", allowed, preflight.FormatCores(all))
		}
	}
}

// allowedCPUs returns the processors of every thread of the process.
func allowedCPUs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		text, _ := os.ReadFile(f) // missing for a thread that has just ended
		if _, rest, ok := strings.Cut(string(text), "Cpus_allowed_list:\t"); ok {
			allowed, _, _ := strings.Cut(rest, "\n")
			out = append(out, allowed)
		}
	}
	return out
}

// TestLedgerTimesWhatMoves checks that the ledger's time is from start to stop, without the time before and the drain, which would reduce rates.
func TestLedgerTimesWhatMoves(t *testing.T) {
	onTask(t, func(me *task.Task) error {
		b, err := loop(false).open(me, "")
		if err != nil {
			return err
		}
		defer b.s.Close()
		if got := b.s.Ledger().StartNS; got != b.s.StartTime() {
			t.Errorf("before the start it begins at %d, the session was opened at %d", got, b.s.StartTime())
		}
		if err := b.s.Start(me); err != nil {
			return err
		}
		if got := b.s.Ledger().StartNS; got <= b.s.StartTime() {
			t.Errorf("it begins at %d, when the session was opened", got)
		}
		b.s.Quiesce(0)
		end := b.s.Ledger().EndNS
		if err := b.s.Finish(); err != nil {
			return err
		}
		if got := b.s.Ledger().EndNS; got != end || b.s.Now() <= end {
			t.Errorf("it ended at %d, and after the drain at %d; now it is %d", end, got, b.s.Now())
		}
		return nil
	})
}
