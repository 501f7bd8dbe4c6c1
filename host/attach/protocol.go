// Package attach lets others of the same user look at a job, and one of them at a time type into it, over a unix socket: JSON, a message a
// line. It knows neither sessions nor Lua: what is typed goes to whoever serves a prompt (repl.Request), what is looked at is text.
//
// It may import host/repl, host/summary for the screen, runtime/listen, and x/sys, x/term. A Server's methods are safe for concurrent use.
package attach

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
)

// protocol is the version of the messages; both ends need the same.
const protocol = 1

// longestMessage bounds what one end keeps of the other's.
const longestMessage = 4 << 20

// hello is what the job says first, and the answer of who has attached.
type hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version,omitempty"` // of daqiri-run
	PID      int    `json:"pid,omitempty"`
	Script   string `json:"script,omitempty"`
	Mode     string `json:"mode,omitempty"`  // prompt or view, of who attaches
	Error    string `json:"error,omitempty"` // why not
}

// message is everything later. To the job: Exec, Complete or Interrupt. From it: an answer with the ID of a question, or Text and View.
type message struct {
	ID        int      `json:"id,omitempty"`
	Exec      *chunk   `json:"exec,omitempty"`
	Complete  *cursor  `json:"complete,omitempty"`
	Interrupt bool     `json:"interrupt,omitempty"`
	Output    string   `json:"output,omitempty"` // of a chunk
	Error     string   `json:"error,omitempty"`
	Head      string   `json:"head,omitempty"` // of a completion
	Words     []string `json:"words,omitempty"`
	Tail      string   `json:"tail,omitempty"`
	Text      string   `json:"text,omitempty"` // what the job writes
	Line      string   `json:"line,omitempty"` // the live line
	View      string   `json:"view,omitempty"` // everything that moves
	Done      bool     `json:"done,omitempty"` // an answer
}

type chunk struct{ Name, Source string }

type cursor struct {
	Line string
	Pos  int
}

// wire is one end of a connection.
type wire struct {
	in  *bufio.Scanner
	mu  sync.Mutex
	out io.Writer
}

func newWire(rw io.ReadWriter) *wire {
	w := &wire{in: bufio.NewScanner(rw), out: rw}
	w.in.Buffer(make([]byte, 64<<10), longestMessage)
	return w
}

// read reads one message into v; io.EOF at the end.
func (w *wire) read(v any) error {
	if !w.in.Scan() {
		if err := w.in.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	return json.Unmarshal(w.in.Bytes(), v)
}

// write writes one message.
func (w *wire) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.out.Write(append(text, '\n'))
	return err
}
