package attach

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/daqiri/daqiri-run/host/repl"
)

// Client is the attaching side of a connection.
type Client struct {
	PID    int // process id of the job
	Script string

	conn net.Conn
	w    *wire
	next int
}

// Dial attaches to the job behind a socket, as a viewer or as a prompt. version is the caller's version.
func Dial(path, mode, version string) (*Client, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s: no job listens there: it is gone, or was started without --attach", path)
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%s: the job is another user's: only its user may attach to a job", path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := sameUser(conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %w: only its user may attach to a job", path, err)
	}
	c := &Client{conn: conn, w: newWire(conn)}
	if err := c.greet(mode, version); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// greet sends the mode and waits for the job to accept it.
func (c *Client) greet(mode, version string) error {
	var job, answer hello
	if err := c.w.read(&job); err != nil {
		return fmt.Errorf("no job of daqiri-run answers there: %w", err)
	}
	switch {
	case job.Error != "":
		return errors.New(job.Error)
	case job.Protocol != protocol || job.Version != version:
		return fmt.Errorf("the job is of daqiri-run %s, and this is %s: attach with the job's own (ls -l /proc/%d/exe)", job.Version, version, job.PID)
	}
	c.PID, c.Script = job.PID, job.Script
	if err := c.w.write(hello{Protocol: protocol, Mode: mode}); err != nil {
		return err
	}
	if err := c.w.read(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// Close detaches from the job.
func (c *Client) Close() { _ = c.conn.Close() }

// Watch calls show with each line and view received and text with the job's output, until the job ends (nil) or the client is closed.
func (c *Client) Watch(show func(line, view string), text func(string)) error {
	for {
		var m message
		switch err := c.w.read(&m); {
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET):
			return nil
		case err != nil:
			return err
		}
		if m.Line+m.View != "" {
			show(m.Line, m.View)
		}
		if m.Text != "" && text != nil {
			text(m.Text)
		}
	}
}

// Prompt runs a prompt's chunks in the job until either ends; text receives the job's output. ended reports that the job has ended.
func (c *Client) Prompt(p *repl.Repl, text func(string)) (ended bool) {
	answers := make(chan message)
	go func() {
		defer close(answers)
		for {
			var m message
			if c.w.read(&m) != nil {
				return
			}
			if m.Done {
				answers <- m
			} else if m.Text != "" {
				text(m.Text)
			}
		}
	}()
	far := &remote{c: c, answers: answers}
	for {
		select {
		case r, ok := <-p.Requests():
			if !ok {
				c.Close()
				for range answers { // wait for the reader to end
				}
				return false
			}
			r.Serve(far)
			if far.gone {
				return true
			}
		case _, ok := <-answers:
			if !ok {
				return true
			}
		}
	}
}

// Interrupt interrupts the chunk that the job runs for this prompt.
func (c *Client) Interrupt() { _ = c.w.write(message{Interrupt: true}) } // fails if the job has ended

// remote is an Executor that forwards requests to the job.
type remote struct {
	c       *Client
	answers <-chan message
	gone    bool
}

var errGone = errors.New("the job has ended")

func (f *remote) ask(m message) (message, error) {
	f.c.next++
	m.ID = f.c.next
	if f.c.w.write(m) != nil {
		f.gone = true
		return m, errGone
	}
	for a := range f.answers {
		if a.ID == m.ID {
			return a, nil
		}
	}
	f.gone = true
	return m, errGone
}

// Exec runs a chunk in the job.
func (f *remote) Exec(name, source string) (string, error) {
	a, err := f.ask(message{Exec: &chunk{name, source}})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a.Output, err
}

// Complete completes a name in the job.
func (f *remote) Complete(line string, pos int) (head string, completions []string, tail string) {
	a, err := f.ask(message{Complete: &cursor{line, pos}})
	if err != nil {
		return "", nil, ""
	}
	return a.Head, a.Words, a.Tail
}
