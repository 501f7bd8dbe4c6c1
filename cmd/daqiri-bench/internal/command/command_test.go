package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
)

// TestMainRecovers: a panic ends the benchmark as an internal error, as it ends daqiri-run.
func TestMainRecovers(t *testing.T) {
	var stderr bytes.Buffer
	g := &state.Global{Args: []string{"daqiri-bench", "peer", "memory", "--for", "1ms"}, Stderr: &stderr} // without Stdout the encoder panics
	if code := Main(g); code != int(exit.Internal) || !strings.Contains(stderr.String(), "please report") {
		t.Errorf("exit code %d after a panic, stderr:\n%s", code, stderr.String())
	}
}
