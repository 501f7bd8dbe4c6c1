package script

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/tests/require"
)

// TestSameAsLua compares generated programs with Lua 5.1. LUADIFF=FIRST,COUNT runs COUNT programs starting with seed FIRST.
func TestSameAsLua(t *testing.T) {
	first, count := uint64(1), uint64(10000)
	if s := os.Getenv("LUADIFF"); s != "" {
		if _, err := fmt.Sscanf(s, "%d,%d", &first, &count); err != nil {
			t.Fatalf("LUADIFF=%s: want FIRST,COUNT: %v", s, err)
		}
	}
	c := newComparison(t)
	for seed := first; seed < first+count; seed++ {
		program := generate(seed)
		source := program.source()
		ours, theirs := c.both(source)
		if ours == theirs {
			continue
		}
		kind := difference(ours, theirs)
		shrink(program, func() bool {
			ours, theirs := c.both(program.source())
			return ours != theirs && difference(ours, theirs) == kind
		})
		ours, theirs = fromDifference(c.both(program.source()))
		t.Errorf("seed %d: a program differs from Lua 5.1:\n%s\n-- daqiri-run:\n%s\n-- lua5.1:\n%s", seed, program.source(), ours, theirs)
		if c.found++; c.found == 10 {
			t.Fatal("more is not looked for")
		}
	}
	t.Logf("%d programs from seed %d on compute the same", count, first)
}

// difference classifies a difference, so that a shrunk program still shows the same one.
func difference(ours, theirs string) string {
	broken := func(s string) bool { return s == noCompile || strings.HasPrefix(s, "panic") || s == late }
	switch {
	case broken(ours):
		return ours
	case broken(theirs):
		return "only ours runs"
	}
	end := func(s string) string { return s[strings.LastIndex("\n"+s, "\n"):][:6] } // returned or raised
	return end(ours) + "|" + end(theirs)
}

// fromDifference returns both outputs from the line before the first difference, limited to a few lines.
func fromDifference(ours, theirs string) (string, string) {
	a, b := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	cut := func(lines []string) string {
		from := min(max(same-1, 0), len(lines))
		return strings.Join(lines[from:min(same+4, len(lines))], "\n")
	}
	return cut(a), cut(b)
}

const patience = 5 * time.Second // time limit of a program

const (
	noCompile = "does not compile"
	late      = "does not end"
)

// comparison runs programs in a state of this implementation and in a Lua 5.1 process.
type comparison struct {
	t      *testing.T
	L      *lua.LState
	close  func() // closes L
	runs   int
	ctx    context.Context // of L; cancelled if a program takes too long, which also ends L
	cancel context.CancelFunc
	path   string // path of lua5.1
	cmd    *exec.Cmd
	in     io.Writer
	out    *bufio.Reader
	found  int
}

func newComparison(t *testing.T) *comparison {
	t.Helper()
	c := &comparison{t: t, path: require.Lua51(t), close: func() {}}
	t.Cleanup(func() { c.end(); c.close() })
	return c
}

// begin starts the Lua 5.1 process.
func (c *comparison) begin() {
	c.cmd = exec.Command(c.path, "-e", luaServer)
	in, err := c.cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewReader(out)
}

func (c *comparison) end() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// fullState returns a state like a script's, with the driver loaded, and a function that closes it.
func fullState(t *testing.T) (*lua.LState, func()) {
	t.Helper()
	p, err := New(Options{Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	rt := &bindings.Runtime{Task: p.main, Scheduler: p.sched, Main: true, Stdout: io.Discard, Shared: p.shared, NewState: p.newState, LoadModule: p.loader.load,
		Log: func(string, string, map[string]any) {}}
	L, err := p.newState(rt)
	if err != nil {
		t.Fatal(err)
	}
	fn, err := lua51.Compile(L, "driver", `CHUNK = "p"`+luaDriver)
	if err != nil {
		t.Fatal(err)
	}
	L.Push(fn)
	L.Call(0, 0)
	return L, func() {
		rt.End(L)
		L.Close()
		p.Close()
	}
}

// both runs a program on both sides, with a time limit each.
func (c *comparison) both(source string) (ours, theirs string) {
	if c.cmd == nil {
		c.begin()
	}
	fmt.Fprintf(c.in, "%d\n%s\n", len(source)+1, source) // never 0 bytes, as reading them waits for more input
	ours = c.ours(source)
	watch := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	theirs, err := c.theirs()
	if !watch.Stop() || err != nil {
		c.end()
		return ours, late
	}
	return ours, theirs
}

func (c *comparison) theirs() (string, error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(c.out, text)
	return string(text), err
}

func (c *comparison) ours(source string) string {
	if c.runs++; c.L == nil || c.ctx.Err() != nil || c.runs%2000 == 0 { // states retain all coroutines ever created
		c.close()
		c.L, c.close = fullState(c.t)
		c.ctx, c.cancel = context.WithCancel(context.Background())
		c.L.SetContext(c.ctx)
	}
	watch := time.AfterFunc(patience, c.cancel)
	defer watch.Stop()
	c.L.SetTop(0)
	err := c.L.CallByParam(lua.P{Fn: c.L.GetGlobal("run"), NRet: 1, Protect: true}, lua.LString(source))
	switch {
	case c.ctx.Err() != nil:
		return late
	case err != nil:
		return "panic " + err.Error()
	}
	return c.L.Get(-1).String()
}
