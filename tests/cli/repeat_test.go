package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/daqiri/daqiri-run/host/golden"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

const repeats = 20

// TestVirtualClockRepeats runs the golden scripts that live on the virtual clock twenty times, all of them with a
// busy thread on every core: the output, the files and the counters are the same bytes each time.
func TestVirtualClockRepeats(t *testing.T) {
	program := harness.BuiltPlain(t)
	paths := virtualScripts(t)
	var done atomic.Bool
	defer done.Store(true)
	for range runtime.NumCPU() {
		go func() {
			for n := 0; !done.Load(); n++ { // keeps a core busy
			}
		}()
	}
	for n := range repeats {
		var out bytes.Buffer
		result, err := golden.Run(context.Background(), golden.Options{
			Exe: program, SearchPath: os.Getenv("PATH"), Paths: paths, Stdout: &out,
		})
		if err != nil {
			t.Fatal(err)
		}
		if result.Failed > 0 || result.Passed != len(paths) {
			t.Fatalf("run %d: %d of %d passed\n%s", n+1, result.Passed, len(paths), out.String())
		}
	}
}

// virtualScripts are the shipped scripts whose golden run opens a configuration with the virtual clock.
func virtualScripts(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, name := range []string{"network/capture", "network/flows", "network/forward", "network/generate", "network/receive", "loop/tasks", "loop/timed_send", "loop/wire_faults"} {
		path, err := filepath.Abs(filepath.Join(tree.Root, "scripts", name+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}
