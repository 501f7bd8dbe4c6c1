package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/tests/levels"
)

// An event is one line of test2json, documented by "go doc test2json".
type event struct {
	Time        time.Time `json:",omitzero"`
	Action      string
	Package     string  `json:",omitempty"`
	ImportPath  string  `json:",omitempty"`
	Test        string  `json:",omitempty"`
	Elapsed     float64 `json:",omitempty"`
	Output      string  `json:",omitempty"`
	OutputType  string  `json:",omitempty"`
	FailedBuild string  `json:",omitempty"`
}

// raw runs the groups of a level beside each other and prints their events. With "-test.run=PATTERN NAME" behind the level, as
// gotestsum calls it again for a test that failed, it runs that test of the group NAME alone.
func raw(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("raw: want the name of a level")
	}
	groups, err := groupsOf(ctx, levels.Level(args[0]))
	if err != nil {
		return err
	}
	if len(args) == 3 {
		pattern, ok := strings.CutPrefix(args[1], "-test.run=")
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == args[2] })
		if !ok || i < 0 {
			return fmt.Errorf("raw: %q is not -test.run=PATTERN and the name of a group", args[1:])
		}
		groups = []group{groups[i].only(pattern)}
	}
	past := readHistory()
	r := &runner{out: os.Stdout}
	slices.SortFunc(groups, func(a, b group) int { // the longest first
		return int(past.last(b.name, b.usual) - past.last(a.name, a.usual))
	})
	failed := make(chan bool)
	go func() {
		defer close(failed)
		free := newSlots(runtime.NumCPU() + 2) // half of the tests wait more than they work
		var wg sync.WaitGroup
		for _, g := range groups {
			free.take(g.slots)
			if ctx.Err() != nil {
				break
			}
			wg.Go(func() {
				defer free.give(g.slots)
				start := time.Now()
				ended := r.group(ctx, g)
				if ctx.Err() != nil {
					fmt.Fprintf(os.Stderr, "suite: ended while %s was running, for %.0f s\n", g.name, time.Since(start).Seconds())
				}
				if ended != nil && ended.Success() && len(args) == 1 {
					past.add(g.name, time.Since(start), ended.UserTime()+ended.SystemTime())
				}
				failed <- ended == nil || !ended.Success()
			})
		}
		wg.Wait()
	}()
	bad := false
	for f := range failed {
		bad = bad || f
	}
	past.save()
	if bad {
		return exitCode(1)
	}
	return nil
}

// slots are how many groups may run at once; one that keeps several processors busy takes several.
type slots chan struct{}

func newSlots(n int) slots {
	s := make(slots, n)
	for range n {
		s <- struct{}{}
	}
	return s
}

// take waits for n slots, or for all where there are fewer. One goroutine takes them.
func (s slots) take(n int) {
	for range s.count(n) {
		<-s
	}
}

func (s slots) give(n int) {
	for range s.count(n) {
		s <- struct{}{}
	}
}

func (s slots) count(n int) int { return min(max(n, 1), cap(s)) }

// A runner starts groups and prints their events, whole lines at a time.
type runner struct {
	mu  sync.Mutex
	out io.Writer
}

// group runs a group and reports how it ended, or nil where it could not be started.
func (r *runner) group(ctx context.Context, g group) *os.ProcessState {
	line := g.line()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), g.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what tests start ends with them
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.message(g, fmt.Sprintf("%s: %v\n", g.name, err))
		return nil
	}
	defer time.AfterFunc(groupLimit+time.Minute, func() {
		r.message(g, fmt.Sprintf("%s does not end after %v: killed\n", g.name, groupLimit+time.Minute))
		_ = cmd.Cancel()
	}).Stop()
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadBytes('\n')
		if len(text) > 0 {
			r.event(g, text)
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Wait()
	return cmd.ProcessState
}

// event prints an event of a group under the group's name. A failure has the load of the machine with it.
func (r *runner) event(g group, text []byte) {
	var e event
	if json.Unmarshal(text, &e) != nil || e.Action == "" {
		r.message(g, string(text)) // a message of the go command itself
		return
	}
	if e.Package != "" {
		e.Package = g.name
	}
	if e.Action == "fail" && e.Test != "" {
		r.print(event{Time: e.Time, Action: "output", Package: g.name, Test: e.Test, Output: loadPrefix + loadOfMachine() + "\n"})
	}
	r.print(e)
}

func (r *runner) message(g group, text string) {
	r.print(event{Time: time.Now(), Action: "output", Package: g.name, Output: text})
}

func (r *runner) print(e event) {
	var b bytes.Buffer
	if json.NewEncoder(&b).Encode(e) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(b.Bytes())
}

// loadPrefix begins the line in the output of a failed test that reports how busy the machine was.
const loadPrefix = "    load of the machine: "

func loadOfMachine() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
