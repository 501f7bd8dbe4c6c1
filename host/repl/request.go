package repl

import (
	"errors"
	"sync/atomic"
)

var errInterrupted = errors.New("interrupted")

// Executor performs the prompt's requests. Its methods are called only on the main task.
type Executor interface {
	// Exec compiles and runs source under the given chunk name; it returns the text to print, and an error whose text is printed after it.
	Exec(name, source string) (output string, err error)
	// Complete returns the names that fit at pos (in runes) of the line, between head and tail.
	Complete(line string, pos int) (head string, completions []string, tail string)
}

// Request is a *Chunk or a *Completion. It must be served once, on the main task.
type Request interface {
	Serve(e Executor)
}

// Chunk is a complete piece of Lua. The prompt continues when it is done.
type Chunk struct {
	// Name is the chunk name in error positions, Source the text to compile.
	Name, Source string
	answer       chan answer
	interrupted  atomic.Bool
}

type answer struct {
	output string
	err    error
}

func newChunk(name, source string) *Chunk {
	return &Chunk{Name: name, Source: source, answer: make(chan answer, 1)}
}

// Serve runs the chunk and completes the request. A chunk interrupted while it was queued is not run.
func (c *Chunk) Serve(e Executor) {
	if c.interrupted.Load() {
		c.Done("", errInterrupted)
		return
	}
	c.Done(e.Exec(c.Name, c.Source))
}

// Done makes the prompt print output and err and continue. It never blocks; only the first call has an effect.
func (c *Chunk) Done(output string, err error) {
	select {
	case c.answer <- answer{output, err}:
	default:
	}
}

// Completion requests the names that fit at the cursor.
type Completion struct {
	line   string
	pos    int
	stale  atomic.Bool
	answer chan completed
}

type completed struct {
	head  string
	words []string
	tail  string
}

// Serve answers the request, unless it has timed out.
func (c *Completion) Serve(e Executor) {
	if c.stale.Load() {
		return
	}
	head, words, tail := e.Complete(c.line, c.pos)
	select {
	case c.answer <- completed{head, words, tail}:
	default:
	}
}

var (
	_ Request = (*Chunk)(nil)
	_ Request = (*Completion)(nil)
)
