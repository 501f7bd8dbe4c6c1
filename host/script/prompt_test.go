package script

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/daqiri/daqiri-run/host/repl"
)

// signalWriter closes seen when word was written.
type signalWriter struct {
	mu   sync.Mutex
	b    bytes.Buffer
	word string
	seen chan struct{}
}

func (w *signalWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.b.String(), w.word)
	n, err := w.b.Write(p)
	if !before && strings.Contains(w.b.String(), w.word) {
		close(w.seen)
	}
	return n, err
}

func (w *signalWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestPromptInterrupt interrupts waiting chunks; the prompt must continue and know the module daqiri.
func TestPromptInterrupt(t *testing.T) {
	for _, c := range []struct{ name, chunk string }{
		{"sleep", `io.write("now ") daqiri.sleep(1e6)`},
		{"sleep in pcall", `io.write("now ") pcall(daqiri.sleep, 1e6) while true do end`},
		{"measure", `s = daqiri.open() s:start() io.write("now ") s:measure{ seconds = 1e6 }`},
		{"run", `s = daqiri.open() io.write("now ") s:run{}`},
		{"get_burst", `s = daqiri.open() s:start() io.write("now ") s:rx_queue():get_burst{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := &signalWriter{word: "now ", seen: make(chan struct{})}
			var errs signalWriter
			errs.word, errs.seen = "interrupted", make(chan struct{})
			var p *Program
			prompt := repl.New(repl.Options{Stdin: strings.NewReader(c.chunk + "\nprint(pcall(tostring, 'after'))\n"), Stdout: out, Stderr: &errs,
				Interrupt: func() { p.Interrupt() }})
			p, err := New(Options{Prompt: prompt, Stdout: out, Stderr: &errs, Log: func(string, string, map[string]any) {}})
			if err != nil {
				t.Fatal(err)
			}
			p.Start()
			<-out.seen
			if !prompt.Interrupt() {
				t.Error("nothing was interrupted")
			}
			<-p.Done()
			if err := p.Shared().Finish(); err != nil {
				t.Error(err)
			}
			p.Close()
			if got := out.String(); got != "now true\tafter\n" {
				t.Errorf("stdout = %q", got)
			}
			if got := errs.String(); !strings.HasPrefix(got, "stdin:1: interrupted\n") {
				t.Errorf("stderr = %q", got)
			}
		})
	}
}
