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

// errAborted is what readLine returns when Ctrl-C dropped the line.
var errAborted = errors.New("line dropped")

// lineSource is where lines come from. readLine and remember are called on the reading goroutine; close on any,
// also while readLine waits.
type lineSource interface {
	// readLine returns the next line without its newline, io.EOF at the end, errAborted for a dropped line.
	readLine(prompt string) (string, error)
	// remember adds a chunk to the history: as one line, where that can be had.
	remember(text string)
	// more says, after io.EOF, whether a person may type on: that was Ctrl-D.
	more() bool
	// close gives the terminal back and writes the history.
	close() error
}

// plain reads lines from a pipe or a file.
type plain struct{ r *bufio.Reader }

func newPlain(r io.Reader) *plain { return &plain{bufio.NewReader(r)} }

func (p *plain) readLine(string) (string, error) {
	line, err := p.r.ReadString('\n')
	if line != "" {
		err = nil // the end, or the error, comes again at the next call
	}
	return strings.TrimSuffix(line, "\n"), err
}

func (p *plain) more() bool      { return false }
func (p *plain) remember(string) {}
func (p *plain) close() error    { return nil }

// terminal edits lines with liner, which works on the process's own standard streams.
type terminal struct {
	line    *liner.State
	in      io.Reader // what liner reads
	history string
}

// newTerminal puts the terminal into liner's mode. The error is about the history alone.
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

// more asks the terminal itself: one that was closed has no modes any more.
func (t *terminal) more() bool {
	f, ok := t.in.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// canRedraw says whether redrawLine works: not on a dumb terminal, where liner edits nothing.
func canRedraw() bool { return liner.TerminalSupported() }

// redrawLine has liner draw its line anew, wherever the cursor is: as when the window's size changes.
func redrawLine() { _ = syscall.Kill(os.Getpid(), syscall.SIGWINCH) }

func (t *terminal) close() error {
	err := t.line.Close()
	return errors.Join(err, writeHistory(t.history, t.line.WriteHistory))
}

// readHistory feeds the file to load. No file is an empty history.
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

// writeHistory replaces the file by what save writes, readable by its owner only: lines may hold secrets. The old
// file stays whole until the new one is.
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
