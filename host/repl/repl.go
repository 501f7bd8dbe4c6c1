// Package repl is the prompt: it reads Lua chunks on a goroutine of its own and hands them, one at a time, to
// whoever owns the Lua state, which runs them between its other work and answers with what to print.
//
// It may import the standard library, gopher-lua and liner. The reading goroutine never touches a Lua state:
// everything that does (running a chunk, completing a name) travels as a Request over one channel and is served on
// the main task.
package repl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daqiri/daqiri-run/host/state"
)

const (
	defaultHoldBytes = 64 << 10
	// completeWait is how long the line editor waits for completions; the main task may be busy.
	completeWait = 200 * time.Millisecond

	promptFirst = "> "
	promptMore  = ">> "
)

// Options says where the prompt reads and writes.
type Options struct {
	// Interactive edits lines on the process's terminal; otherwise lines are read from Stdin without a prompt.
	Interactive bool
	Stdin       io.Reader
	// Stdout takes results, Stderr errors.
	Stdout, Stderr io.Writer
	// Greeting is printed where an interactive prompt begins; "" prints nothing.
	Greeting string
	// HistoryFile keeps the lines of an interactive prompt from one run to the next; "" keeps none.
	HistoryFile string
	// HoldBytes bounds the output that is held while a line is edited; 0 means 64 KiB.
	HoldBytes int
	// Interrupt ends the chunk that runs. It is called from any goroutine.
	Interrupt func()
}

// Repl is one prompt. Its methods are safe for concurrent use.
type Repl struct {
	opts     Options
	screen   *screen
	requests chan Request
	closed   chan struct{}
	once     sync.Once
	wait     time.Duration // completeWait, except in tests

	source  lineSource            // set by Start
	running atomic.Pointer[Chunk] // handed over and not done yet
	failed  atomic.Bool
	mu      sync.Mutex
	err     error
}

// New returns a prompt that does not read yet, so that a script can print through Writer first.
func New(opts Options) *Repl {
	if opts.HoldBytes <= 0 {
		opts.HoldBytes = defaultHoldBytes
	}
	return &Repl{opts: opts, screen: newScreen(opts.Stderr, opts.HoldBytes), requests: make(chan Request),
		closed: make(chan struct{}), wait: completeWait}
}

// Start begins to read, on a goroutine that ends at the end of the input, at Ctrl-D or at Close. The error is about
// a history file that can't be read; the prompt works without it.
func (r *Repl) Start() error {
	var err error
	if r.opts.Interactive {
		r.source, err = newTerminal(r.opts.Stdin, r.opts.HistoryFile, r.complete)
		if canRedraw() {
			r.screen.showOn(r.opts.Stdout, redrawLine)
		}
		if r.opts.Greeting != "" {
			fmt.Fprintln(r.Writer(r.opts.Stdout), r.opts.Greeting)
		}
	} else {
		r.source = newPlain(r.opts.Stdin)
	}
	go r.read()
	return err
}

// Requests delivers what the main task has to serve, and is closed when there will be no more. Requests that come
// while the main task is inside a chunk or a handler must not be served there.
func (r *Repl) Requests() <-chan Request { return r.requests }

// Writer returns a writer for output of the program that goes to w. While a line is edited its output is held, up
// to Options.HoldBytes for all writers together, and printed above that line some times a second; what is beyond is counted.
// Writing never fails on account of the hold.
func (r *Repl) Writer(w io.Writer) io.Writer { return r.screen.writer(w) }

// Interrupt is the answer to Ctrl-C: it interrupts the chunk that runs and says whether there was one. It says no,
// too, when that chunk was interrupted before and has not ended: the caller then stops the program.
func (r *Repl) Interrupt() bool {
	chunk := r.running.Load()
	if chunk == nil || !chunk.interrupted.CompareAndSwap(false, true) {
		return false
	}
	if r.opts.Interrupt != nil {
		r.opts.Interrupt()
	}
	return true
}

// Failed says whether a chunk failed that was read from something other than a terminal. It is final when Requests
// is closed.
func (r *Repl) Failed() bool { return r.failed.Load() }

// Err returns the error that ended reading, nil at the end of the input. It is final when Requests is closed.
func (r *Repl) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close ends the prompt, gives the terminal its modes back and writes the history. A goroutine that is inside a
// read of the input stays there; it sends nothing any more. Safe to call more than once, and without Start.
func (r *Repl) Close() error {
	var err error
	r.once.Do(func() {
		close(r.closed)
		if r.source != nil {
			err = r.source.close()
		}
		r.screen.release()
	})
	return err
}

// read is the reading goroutine: lines to chunks to requests.
func (r *Repl) read() {
	defer close(r.requests)
	b := chunkBuilder{name: "prompt"}
	if !r.opts.Interactive {
		b = chunkBuilder{name: "stdin", numbered: true}
	}
	for {
		line, err := r.readLine(b.prompt())
		switch {
		case errors.Is(err, errAborted):
			b.reset()
			continue
		case errors.Is(err, io.EOF) && b.open() && r.source.more(): // Ctrl-D leaves the block
			fmt.Fprintln(r.Writer(r.opts.Stdout))
			b.reset()
			continue
		case err != nil:
			r.end(b.rest(), err)
			return
		}
		chunk := b.add(line)
		if !b.open() { // the whole block comes back from the history
			r.source.remember(b.text())
		}
		if chunk != nil && !r.run(chunk) {
			return
		}
	}
}

// end deals with the end of the input. What was left of a chunk is dropped at a terminal; elsewhere it is run, for
// its error.
func (r *Repl) end(rest *Chunk, err error) {
	if !errors.Is(err, io.EOF) {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}
	if r.opts.Interactive {
		fmt.Fprintln(r.Writer(r.opts.Stdout)) // the shell's prompt would follow ours on the same line
	} else if rest != nil {
		r.run(rest)
	}
}

// readLine edits one line; the program's output is held meanwhile.
func (r *Repl) readLine(prompt string) (string, error) {
	if r.opts.Interactive {
		r.screen.hold()
		defer r.screen.release()
	}
	return r.source.readLine(prompt)
}

// run hands the chunk to the main task, waits until it has run and prints the answer. It returns false when the
// prompt was closed meanwhile.
func (r *Repl) run(chunk *Chunk) bool {
	r.running.Store(chunk)
	defer r.running.Store(nil)
	select {
	case r.requests <- chunk:
	case <-r.closed:
		return false
	}
	select {
	case a := <-chunk.answer:
		r.print(a)
	case <-r.closed:
		return false
	}
	return true
}

func (r *Repl) print(a answer) {
	if a.output != "" {
		fmt.Fprintln(r.Writer(r.opts.Stdout), strings.TrimSuffix(a.output, "\n"))
	}
	if a.err != nil {
		fmt.Fprintln(r.Writer(r.opts.Stderr), state.VisibleLines(strings.TrimSuffix(a.err.Error(), "\n")))
		if !r.opts.Interactive {
			r.failed.Store(true)
		}
	}
}

// complete asks the main task for completions and gives up when it is busy. pos counts runes.
func (r *Repl) complete(line string, pos int) (head string, completions []string, tail string) {
	c := &Completion{line: line, pos: pos, answer: make(chan completed, 1)}
	timer := time.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case r.requests <- c:
	case <-r.closed:
		return "", nil, ""
	case <-timer.C:
		return "", nil, ""
	}
	select {
	case a := <-c.answer:
		return a.head, a.words, a.tail
	case <-r.closed:
	case <-timer.C:
		c.stale.Store(true)
	}
	return "", nil, ""
}
