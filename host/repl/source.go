package repl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/peterh/liner"
	"golang.org/x/sys/unix"
)

// errAborted is returned by readLine if Ctrl-C discarded the line.
var errAborted = errors.New("line dropped")

// lineSource is the source of input lines. readLine and remember are called on the reading goroutine; close on any, also while readLine waits.
type lineSource interface {
	// readLine returns the next line without its newline, io.EOF at the end, errAborted for a discarded line.
	readLine(prompt string) (string, error)
	// remember adds a chunk to the history, as one line if possible.
	remember(text string)
	// more reports, after io.EOF, whether typing can continue, as after Ctrl-D.
	more() bool
	// close restores the terminal and writes the history.
	close() error
}

// plain reads lines from a pipe or a file.
type plain struct{ r *bufio.Reader }

func newPlain(r io.Reader) *plain { return &plain{bufio.NewReader(r)} }

func (p *plain) readLine(string) (string, error) {
	line, err := p.r.ReadString('\n')
	if line != "" {
		err = nil // the end, or the error, is returned by the next call
	}
	return strings.TrimSuffix(line, "\n"), err
}

func (p *plain) more() bool      { return false }
func (p *plain) remember(string) {}
func (p *plain) close() error    { return nil }

// terminal edits lines with liner, which uses the process's own standard streams.
type terminal struct {
	line    *liner.State
	in      io.Reader // input of liner
	history string
}

// newTerminal switches the terminal to liner's mode. The error only concerns the history.
func newTerminal(in io.Reader, history string, complete liner.WordCompleter) (*terminal, error) {
	t := &terminal{line: liner.NewLiner(), in: in, history: history}
	t.line.SetCtrlCAborts(true)
	t.line.SetTabCompletionStyle(liner.TabPrints)
	t.line.SetWordCompleter(complete)
	return t, readHistory(history, t.line.ReadHistory)
}

func (t *terminal) readLine(prompt string) (string, error) {
	line, err := t.line.Prompt(prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", errAborted
	}
	return line, err
}

func (t *terminal) remember(text string) {
	lines := []string{text}
	if strings.Contains(text, "\n") {
		if line, ok := oneLine(text); ok {
			lines = []string{line}
		} else {
			lines = strings.Split(text, "\n")
		}
	}
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			t.line.AppendHistory(line)
		}
	}
}

// more queries the terminal: a closed one has no modes.
func (t *terminal) more() bool {
	f, ok := t.in.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// canRedraw reports whether redrawLine works: not on a dumb terminal, where liner does no editing.
func canRedraw() bool { return liner.TerminalSupported() }

// redrawLine makes liner redraw its line, as after a change of the window size.
func redrawLine() { _ = syscall.Kill(os.Getpid(), syscall.SIGWINCH) }

func (t *terminal) close() error {
	err := t.line.Close()
	return errors.Join(err, writeHistory(t.history, t.line.WriteHistory))
}

// readHistory passes the file to load. A missing file is an empty history.
func readHistory(path string, load func(io.Reader) (int, error)) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	if _, err := load(f); err != nil {
		return fmt.Errorf("history %s: %w", path, err)
	}
	return nil
}

// writeHistory replaces the file atomically by the output of save, readable only by its owner, as lines may contain secrets.
func writeHistory(path string, save func(io.Writer) (int, error)) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	_, err = save(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("history: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
