package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// rig is one run: several loads at once, each a daqiri-run with its script, its peer and its faults.
type rig struct {
	options
	began time.Time
	ctx   context.Context // done when the time is up, or a process interrupts
	ready sync.WaitGroup  // for every load's first program: the time runs from there

	mu    sync.Mutex
	table []outcome
	found []string // what was wrong
}

// outcome is a line of the table at the end.
type outcome struct {
	load, what string
	times      int
}

// soak runs the rig and returns how many things were wrong.
func soak(o options) (int, error) {
	for _, name := range o.faults {
		if !slices.Contains(faultNames(), name) {
			return 0, fmt.Errorf("fault %q: there are %s", name, strings.Join(faultNames(), ", "))
		}
	}
	if slices.Contains(o.faults, stepsClock) && !o.clock {
		return 0, fmt.Errorf("fault %s steps the clock of the whole machine: it needs -clock too (make soak CLOCK=1)", stepsClock)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &rig{options: o, began: time.Now(), ctx: ctx}
	r.ready.Add(len(loads))
	go func() {
		r.ready.Wait()
		time.AfterFunc(o.length, cancel)
	}()
	fmt.Fprintf(o.out, "soak: seed %d, %v\n", o.seed, o.length)
	var wg sync.WaitGroup
	for k, l := range loads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.load(&l, rand.New(rand.NewPCG(o.seed, uint64(k))))
		}()
	}
	wg.Wait()
	r.report()
	return len(r.found), nil
}

// load runs one load until the time is up: a program, faults, a check; another program where a fault has ended it.
func (r *rig) load(l *load, chance *rand.Rand) {
	var deck []*fault
	for round := 1; round == 1 || r.ctx.Err() == nil; round++ {
		p, err := r.start(l, filepath.Join(r.dir, fmt.Sprintf("%s-%d", l.name, round)))
		if round == 1 {
			r.ready.Done()
		}
		if err != nil {
			r.wrong(l.name, "start: %v", err)
			return
		}
		for r.ctx.Err() == nil && !p.ends && (l.round == 0 || time.Since(p.began) < l.round) {
			select {
			case <-r.ctx.Done():
				continue
			case <-time.After(r.pause(chance)):
			}
			if len(deck) == 0 {
				if deck = r.deck(l, chance); len(deck) == 0 {
					continue
				}
			}
			f := deck[0]
			deck = deck[1:]
			output, err := f.do(p, chance)
			if err != nil {
				r.wrong(l.name, "%s: %v", f.name, err)
			}
			r.say(l.name, "%s: %s", f.name, output)
			r.count(l.name, f.name)
			p.ends = p.ends || f.ends
		}
		p.finish()
	}
}

// pause is the time between two faults.
func (r *rig) pause(chance *rand.Rand) time.Duration {
	if r.brief {
		return 500 * time.Millisecond
	}
	return time.Duration(1000+chance.IntN(4000)) * time.Millisecond
}

// deck is the load's faults in some order: each comes once before any comes again.
func (r *rig) deck(l *load, chance *rand.Rand) []*fault {
	var deck []*fault
	for _, k := range chance.Perm(len(faults)) {
		f := &faults[k]
		if f.name == stepsClock && !r.clock {
			continue
		}
		if slices.Contains(f.loads, l.name) && (len(r.faults) == 0 || slices.Contains(r.faults, f.name)) {
			deck = append(deck, f)
		}
	}
	return deck
}

// say prints one line: when, the seed, where and what.
func (r *rig) say(load, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%7.1f s  seed %d  %-5s %s\n", time.Since(r.began).Seconds(), r.seed, load, fmt.Sprintf(format, args...))
}

// wrong records that something is not as it must be.
func (r *rig) wrong(load, format string, args ...any) {
	r.say(load, "WRONG: "+format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, load+": "+fmt.Sprintf(format, args...))
}

func (r *rig) count(load, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.table {
		if x := &r.table[k]; x.load == load && x.what == what {
			x.times++
			return
		}
	}
	r.table = append(r.table, outcome{load, what, 1})
}

// report prints what was done and how it went; what was wrong once more, at the end of a long output.
func (r *rig) report() {
	slices.SortFunc(r.table, func(a, b outcome) int { return strings.Compare(a.load+a.what, b.load+b.what) })
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "load\twhat\ttimes\n")
	for _, x := range r.table {
		fmt.Fprintf(w, "%s\t%s\t%d\n", x.load, x.what, x.times)
	}
	_ = w.Flush()
	if !r.clock {
		fmt.Fprintln(r.out, "clock-step: left out: it steps the clock of the whole machine; on one of its own: make soak CLOCK=1, as root")
	}
	if len(r.found) == 0 {
		fmt.Fprintln(r.out, "soak: every packet is accounted for, and nothing was left behind")
		return
	}
	for _, what := range r.found {
		fmt.Fprintf(r.out, "WRONG: %s\n", what)
	}
	fmt.Fprintf(r.out, "soak: things that are wrong: %d; the programs' files are in %s; to repeat: make soak SEED=%d MINUTES=%.3g\n",
		len(r.found), r.dir, r.seed, r.length.Minutes())
}
