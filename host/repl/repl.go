// Package repl is the prompt: it reads Lua chunks on its own goroutine and passes them, one at a time, to the owner of the Lua state, which runs
// them between other work and returns the text to print.
//
// It may import the standard library, gopher-lua and liner. The reading goroutine never accesses a Lua state: running a chunk or completing a
// name is a Request, sent over a channel and served on the main task.
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
	// completeWait is how long the line editor waits for completions, as the main task may be busy.
	completeWait = 200 * time.Millisecond

	promptFirst = "> "
	promptMore  = ">> "
)

// Options configure a prompt.
type Options struct {
	// Interactive enables line editing on the process's terminal; otherwise lines are read from Stdin without a prompt.
	Interactive bool
	Stdin       io.Reader
	// Stdout receives results, Stderr errors.
	Stdout, Stderr io.Writer
	// Greeting is printed at the start of an interactive prompt.
	Greeting string
	// HistoryFile stores the lines of interactive prompts between runs; "" for none.
	HistoryFile string
	// HoldBytes limits the output buffered while a line is edited; 0 means 64 KiB.
	HoldBytes int
	// Interrupt ends the running chunk. It may be called from any goroutine.
	Interrupt func()
}

// Repl is one prompt. Its methods are safe for concurrent use.
type Repl struct {
	opts     Options
	screen   *screen
	requests chan Request
	closed   chan struct{}
	once     sync.Once
	wait     time.Duration // completeWait; shorter in tests

	source  lineSource            // set by Start
	running atomic.Pointer[Chunk] // passed on and not done
	failed  atomic.Bool
	mu      sync.Mutex
	err     error
}

// New returns a prompt that is not reading yet, so that a script can print through Writer first.
func New(opts Options) *Repl {
	if opts.HoldBytes <= 0 {
		opts.HoldBytes = defaultHoldBytes
	}
	return &Repl{opts: opts, screen: newScreen(opts.Stderr, opts.HoldBytes), requests: make(chan Request),
		closed: make(chan struct{}), wait: completeWait}
}

// Start starts reading, on a goroutine that ends at the end of the input, at Ctrl-D or at Close. It returns an error if the history file is
// unreadable; the prompt works without it.
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

// Requests returns the channel of requests for the main task, closed after the last one. Requests must not be served inside a chunk or a handler.
func (r *Repl) Requests() <-chan Request { return r.requests }

// Writer returns a writer for program output to w. While a line is edited, output is buffered, up to Options.HoldBytes for all writers together,
// and printed above that line several times per second; excess bytes are dropped and counted. Buffering never causes a write error.
func (r *Repl) Writer(w io.Writer) io.Writer { return r.screen.writer(w) }

// Interrupt handles Ctrl-C: it interrupts the running chunk and returns true. It returns false if no chunk runs, or if it was already interrupted
// and has not ended: the caller then stops the program.
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

// Failed reports whether a chunk read from non-terminal input failed. The result is final once Requests is closed.
func (r *Repl) Failed() bool { return r.failed.Load() }

// Err returns the error that ended reading; nil at the end of the input. Final once Requests is closed.
func (r *Repl) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close ends the prompt, restores the terminal modes and writes the history. A goroutine blocked reading input remains, but sends nothing. Close
// may be called repeatedly, and without Start.
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

// read is the reading goroutine: it converts lines to chunks and chunks to requests.
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
		case errors.Is(err, io.EOF) && b.open() && r.source.more(): // Ctrl-D discards the block
			fmt.Fprintln(r.Writer(r.opts.Stdout))
			b.reset()
			continue
		case err != nil:
			r.end(b.rest(), err)
			return
		}
		chunk := b.add(line)
		if !b.open() { // the history has the whole block
			r.source.remember(b.text())
		}
		if chunk != nil && !r.run(chunk) {
			return
		}
	}
}

// end handles the end of the input. An incomplete chunk is discarded at a terminal; otherwise it is run to report its error.
func (r *Repl) end(rest *Chunk, err error) {
	if !errors.Is(err, io.EOF) {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}
	if r.opts.Interactive {
		fmt.Fprintln(r.Writer(r.opts.Stdout)) // so that the shell's prompt starts on a new line
	} else if rest != nil {
		r.run(rest)
	}
}

// readLine edits one line while program output is buffered.
func (r *Repl) readLine(prompt string) (string, error) {
	if r.opts.Interactive {
		r.screen.hold()
		defer r.screen.release()
	}
	return r.source.readLine(prompt)
}

// run passes the chunk to the main task, waits until it has run and prints the result. It returns false if the prompt was closed meanwhile.
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

// complete requests completions from the main task, with a timeout. pos counts runes.
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
