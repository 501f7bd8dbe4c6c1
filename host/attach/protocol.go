// Package attach lets processes of the same user watch a job, and one at a time run a prompt in it, over a unix socket: one JSON message per
// line. It is independent of sessions and Lua: prompt input is passed to a server of prompts (repl.Request), views are text.
//
// It may import host/repl, host/summary for the screen, runtime/listen, and x/sys, x/term. The methods of Server are safe for concurrent use.
package attach

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
)

// protocol is the message version; both ends must have the same.
const protocol = 1

// longestMessage is the maximum length of a message.
const longestMessage = 4 << 20

// hello is the first message of the job, and the client's reply.
type hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version,omitempty"` // version of daqiri-run
	PID      int    `json:"pid,omitempty"`
	Script   string `json:"script,omitempty"`
	Mode     string `json:"mode,omitempty"`  // client: prompt or view
	Error    string `json:"error,omitempty"` // reason of a refusal
}

// message is any later message. To the job: Exec, Complete or Interrupt. From it: an answer with the ID of a request, or Text and View.
type message struct {
	ID        int      `json:"id,omitempty"`
	Exec      *chunk   `json:"exec,omitempty"`
	Complete  *cursor  `json:"complete,omitempty"`
	Interrupt bool     `json:"interrupt,omitempty"`
	Output    string   `json:"output,omitempty"` // output of a chunk
	Error     string   `json:"error,omitempty"`
	Head      string   `json:"head,omitempty"` // result of a completion
	Words     []string `json:"words,omitempty"`
	Tail      string   `json:"tail,omitempty"`
	Text      string   `json:"text,omitempty"` // output of the job
	Line      string   `json:"line,omitempty"` // the live line
	View      string   `json:"view,omitempty"` // full view
	Done      bool     `json:"done,omitempty"` // set in answers
}

type chunk struct{ Name, Source string }

type cursor struct {
	Line string
	Pos  int
}

// wire sends and receives messages on one end of a connection.
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

// read decodes the next message into v; io.EOF at the end.
func (w *wire) read(v any) error {
	if !w.in.Scan() {
		if err := w.in.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	return json.Unmarshal(w.in.Bytes(), v)
}

// write encodes one message.
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
