package repl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
)

// serve acts as the main task: it serves requests until the channel is closed.
func serve(r *Repl, e Executor) {
	for req := range r.Requests() {
		req.Serve(e)
	}
}

func TestPiped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, input, stdout, stderr string
		failed                      bool
	}{
		{"expression", "1 + 1\n", "2\n", "", false},
		{"several values", "1, 'a', nil\n", "1\t\"a\"\tnil\n", "", false},
		{"statements", "x = 3\nx\n", "3\n", "", false},
		{"several lines", "for i = 1, 2 do\n  emit(i)\nend\n", "1\n2\n", "", false},
		{"no newline at the end", "7", "7\n", "", false},
		{"previous result", "6 * 7\n_ + 1\n", "42\n43\n", "", false},
		{"blank lines and comments", "\n  \n-- nothing\n5\n", "5\n", "", false},
		{"goes on after an error", "error('no')\n1\n", "1\n", "stdin:1: no\nstack traceback:\n  [G]: in function 'error'\n  stdin:1: in main chunk\n", true},
		{"line of the input", "1\n\nf = function()\n  error('no')\nend\nx = f()\n", "1\n",
			"stdin:4: no\nstack traceback:\n  [G]: in function 'error'\n  stdin:4: in function 'f'\n  stdin:6: in main chunk\n", true},
		{"syntax", "x = = 1\n", "", "stdin:1:5: syntax error near '='\n", true},
		{"unfinished at the end", "1\nif x then\n", "1\n", "stdin: syntax error at the end of the chunk\n", true},
		{"error value", "error({code = 5})\n", "", "{code = 5}\nstack traceback:\n  [G]: in function 'error'\n  stdin:1: in main chunk\n", true},
		{"nothing", "", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			L := lua.NewState()
			defer L.Close()
			r := New(Options{Stdin: strings.NewReader(c.input), Stdout: &stdout, Stderr: &stderr})
			L.SetGlobal("emit", L.NewFunction(func(L *lua.LState) int {
				fmt.Fprintln(r.Writer(&stdout), L.Get(1))
				return 0
			}))
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			serve(r, NewLua(L))
			if diff := cmp.Diff(c.stdout, stdout.String()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.stderr, stderr.String()); diff != "" {
				t.Error(diff)
			}
			if r.Failed() != c.failed || r.Err() != nil {
				t.Errorf("failed %v, error %v; want %v, nil", r.Failed(), r.Err(), c.failed)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	r := New(Options{Stdin: io.MultiReader(strings.NewReader("1\n"), readerFunc(func([]byte) (int, error) { return 0, broken })),
		Stdout: io.Discard, Stderr: io.Discard})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	L := lua.NewState()
	defer L.Close()
	serve(r, NewLua(L))
	if !errors.Is(r.Err(), broken) {
		t.Errorf("error = %v", r.Err())
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// typist is a line source that replaces a terminal: each step runs while one line is edited.
type typist struct {
	steps   []func() (string, error)
	prompts []string
	kept    []string
	closed  bool
}

func (s *typist) readLine(prompt string) (string, error) {
	s.prompts = append(s.prompts, prompt)
	if len(s.steps) == 0 {
		return "", io.EOF
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step()
}
func (s *typist) more() bool           { return false }
func (s *typist) remember(line string) { s.kept = append(s.kept, line) }
func (s *typist) close() error         { s.closed = true; return nil }

func types(line string) func() (string, error) {
	return func() (string, error) { return line, nil }
}

// interactive returns a started prompt that reads from source.
func interactive(opts Options, source lineSource) *Repl {
	opts.Interactive = true
	r := New(opts)
	r.source = source
	go r.read()
	return r
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	source := &typist{steps: []func() (string, error){
		types("if true then"), func() (string, error) { return "", errAborted },
		types("t = {"), types("}"), types("#t"), types("oops("),
	}}
	var out bytes.Buffer
	L := lua.NewState()
	defer L.Close()
	r := interactive(Options{Stdout: &out, Stderr: &out}, source)
	serve(r, NewLua(L))
	if diff := cmp.Diff([]string{"> ", ">> ", "> ", ">> ", "> ", "> ", ">> "}, source.prompts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"t = {\n}", "#t"}, source.kept); diff != "" {
		t.Error(diff)
	}
	if out.String() != "0\n\n" {
		t.Errorf("output = %q", out.String())
	}
	if err := r.Close(); err != nil || !source.closed {
		t.Errorf("close: %v, source closed: %v", err, source.closed)
	}
}

// TestHeldOutput checks that output written while a line is edited is printed before the next prompt, in order and bounded.
func TestHeldOutput(t *testing.T) {
	t.Parallel()
	var out, log strings.Builder
	var r *Repl
	ready := make(chan struct{})
	during := func(line string, write func()) func() (string, error) {
		return func() (string, error) {
			<-ready
			write()
			if out.Len()+log.Len() > 0 {
				t.Errorf("written while a line was edited: %q %q", out.String(), log.String())
			}
			return line, nil
		}
	}
	source := &typist{steps: []func() (string, error){
		during("", func() {
			fmt.Fprint(r.Writer(&out), "a", "b\n")
			fmt.Fprint(r.Writer(&log), "warned\n")
			fmt.Fprint(r.Writer(&out), "0123456789")
			fmt.Fprint(r.Writer(&out), "x")
		}),
		func() (string, error) {
			want := "ab\n0123456|warned\n(4 more bytes of output came while the line was edited and were dropped)\n"
			if got := out.String() + "|" + log.String(); got != strings.Replace(want, "6|", "6\n|", 1) {
				t.Errorf("after the line: %q", got)
			}
			return "", io.EOF
		},
	}}
	r = interactive(Options{Stdout: io.Discard, Stderr: &log, HoldBytes: 17}, source)
	close(ready)
	serve(r, nil)
	fmt.Fprint(r.Writer(&out), "through")
	if !strings.HasSuffix(out.String(), "through") {
		t.Errorf("held after the end: %q", out.String())
	}
}

// TestOpenLine checks that an unterminated output line is ended before the prompt is drawn.
func TestOpenLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := New(Options{Stdout: &out, Stderr: &out})
	fmt.Fprint(r.Writer(&out), "50 %")
	r.screen.hold()
	r.screen.release()
	r.screen.hold()
	if out.String() != "50 %\n" {
		t.Errorf("output = %q", out.String())
	}
}

// TestHammerWriter checks that output of many writers is neither lost nor interleaved while a prompt opens and closes.
func TestHammerWriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := New(Options{Stdout: &out, Stderr: &out})
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 500 {
				fmt.Fprint(r.Writer(&out), "line\n")
			}
		})
	}
	for range 200 {
		r.screen.hold()
		r.screen.release()
	}
	writers.Wait()
	if want := strings.Repeat("line\n", 2000); out.String() != want {
		t.Errorf("%d bytes, want %d", out.Len(), len(want))
	}
}

func TestInterruptEndsTheChunk(t *testing.T) {
	t.Parallel()
	L := lua.NewState()
	defer L.Close()
	x := NewLua(L)
	running := make(chan struct{})
	L.SetGlobal("running", L.NewFunction(func(*lua.LState) int { close(running); return 0 }))
	var out bytes.Buffer
	source := &typist{steps: []func() (string, error){
		types("co = coroutine.wrap(function() while true do coroutine.yield(1) end end)"), types("co()"),
		types("running() while true do end"), types("2"),
	}}
	r := interactive(Options{Stdout: &out, Stderr: &out, Interrupt: x.Interrupt}, source)
	go func() {
		<-running
		if !r.Interrupt() {
			t.Error("no chunk to interrupt")
		}
	}()
	serve(r, x)
	want := "1\nprompt:1: interrupted\nstack traceback:\n  prompt:1: in main chunk\n2\n\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if r.Interrupt() {
		t.Error("interrupted a chunk after the end")
	}
	if L.Context() != nil {
		t.Error("the chunk's context stayed on the state")
	}
}

// TestInterruptTwice checks that a second Ctrl-C is left to the caller, and that a chunk interrupted before it ran does not run.
func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	var calls int
	var out bytes.Buffer
	r := interactive(Options{Stdout: &out, Stderr: &out, Interrupt: func() { calls++ }}, &typist{steps: []func() (string, error){types("x()")}})
	chunk := <-r.Requests()
	if first, second := r.Interrupt(), r.Interrupt(); !first || second || calls != 1 {
		t.Errorf("interrupts = %v, %v with %d calls", first, second, calls)
	}
	chunk.Serve(nil)
	serve(r, nil)
	if out.String() != "interrupted\n\n" {
		t.Errorf("output = %q", out.String())
	}
}

func TestCompletionOverTheChannel(t *testing.T) {
	t.Parallel()
	L := lua.NewState()
	defer L.Close()
	var r *Repl
	ready := make(chan struct{})
	source := &typist{steps: []func() (string, error){func() (string, error) {
		<-ready
		head, words, tail := r.complete("x = strin.y", 9)
		if head != "x = " || tail != ".y" || cmp.Diff([]string{"string"}, words) != "" {
			t.Errorf("completion = %q %q %q", head, words, tail)
		}
		return "", io.EOF
	}}}
	r = interactive(Options{Stdout: io.Discard}, source)
	r.wait = time.Minute
	close(ready)
	serve(r, NewLua(L))
}

// TestCompletionGivesUp checks that completion times out while the main task is busy, and that the late request is not served.
func TestCompletionGivesUp(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	r.wait = time.Millisecond
	if _, words, _ := r.complete("x", 1); words != nil {
		t.Errorf("completions without a source: %q", words)
	}
	r.wait = 50 * time.Millisecond
	taken := make(chan Request, 1)
	go func() { taken <- <-r.Requests() }()
	if _, words, _ := r.complete("x", 1); words != nil {
		t.Errorf("completions without a source: %q", words)
	}
	(<-taken).Serve(nil) // would panic on the nil executor if served
}

func TestCloseWhileAChunkRuns(t *testing.T) {
	t.Parallel()
	source := &typist{steps: []func() (string, error){types("a"), types("b")}}
	r := interactive(Options{Stdout: io.Discard, Stderr: io.Discard}, source)
	chunk := (<-r.Requests()).(*Chunk)
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if next, open := <-r.Requests(); open {
		t.Errorf("another request after close: %v", next)
	}
	chunk.Done("late", nil)
	chunk.Done("twice", nil)
}

func TestHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "daqiri-run", "history")
	load := func() (text string, err error) {
		err = readHistory(path, func(r io.Reader) (int, error) {
			data, err := io.ReadAll(r)
			text = string(data)
			return 0, err
		})
		return text, err
	}
	if text, err := load(); text != "" || err != nil {
		t.Errorf("no history: %q, %v", text, err)
	}
	for _, text := range []string{"one\n", "one\ntwo\n"} {
		if err := writeHistory(path, func(w io.Writer) (int, error) { return io.WriteString(w, text) }); err != nil {
			t.Fatal(err)
		}
		if got, err := load(); got != text || err != nil {
			t.Errorf("history = %q, %v; want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	full := errors.New("disk full")
	err = writeHistory(path, func(io.Writer) (int, error) { return 0, full })
	if text, _ := load(); !errors.Is(err, full) || text != "one\ntwo\n" {
		t.Errorf("after %v the history is %q", err, text)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
	if err := errors.Join(readHistory("", nil), writeHistory("", nil)); err != nil {
		t.Errorf("without a path: %v", err)
	}
}

func TestPrepare(t *testing.T) {
	for _, c := range []struct {
		name, text, source string
		unfinished         bool
	}{
		{"expression", "1 + 1", "return 1 + 1", false},
		{"call", "f()", "return f()", false},
		{"statement", "x = 1", "x = 1", false},
		{"return", "return 5", "return 5", false},
		{"open block", "while true do", "", true},
		{"open call", "f(1,", "", true},
		{"open table", "{ 1,", "", true},
		{"open expression", "1 +", "", true},
		{"open long string", "x = [[a", "", true},
		{"open long comment", "--[[ a", "", true},
		{"open string", "x = 'a", "x = 'a", false},
		{"escaped newline", `x = "a\`, "", true},
		{"wrong", "end", "end", false},
		{"wrong within", "f( = 1", "f( = 1", false},
		{"wrong later", "if x then = 1 end", "if x then = 1 end", false},
		{"number cut", "x = 0x", "x = 0x", false},
		{"help", "help", "return help", false},
		{"help for words", "help count  lost packets for me ", "help [==[count  lost packets for me]==]", false},
		{"help for a name", "help q:alloc", "help [==[q:alloc]==]", false},
		{"help in quotes", `help "q:alloc"`, `return help "q:alloc"`, false},
		{"a name like help", "helper q", "helper q", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, unfinished := prepare(c.text)
			if unfinished != c.unfinished || !unfinished && source != c.source {
				t.Errorf("prepare = %q, %v; want %q, %v", source, unfinished, c.source, c.unfinished)
			}
		})
	}
}
