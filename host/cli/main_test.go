package cli

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
)

func TestMainRecovers(t *testing.T) {
	var stderr bytes.Buffer
	g := &state.Global{Args: []string{"daqiri-run", "test"}, Stdout: &stderr, Stderr: &stderr} // without Signals the command panics
	if code := Main(g); code != int(exit.Internal) || !strings.Contains(stderr.String(), "please report") {
		t.Errorf("exit code %d after a panic, stderr:\n%s", code, stderr.String())
	}
}

// gone is a stream whose reader disappears after the first write.
type gone struct{ writes int }

func (g *gone) Write(p []byte) (int, error) {
	if g.writes++; g.writes > 1 {
		return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
	}
	return len(p), nil
}

func TestStreamOutlivesItsReader(t *testing.T) {
	stops := 0
	w := &gone{}
	s := &stream{w: w, broken: func() { stops++ }}
	for range 4 {
		if n, err := s.Write([]byte("line\n")); n != 5 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if stops != 1 || w.writes != 2 {
		t.Errorf("%d stops, %d writes; want 1 and 2", stops, w.writes)
	}
}
