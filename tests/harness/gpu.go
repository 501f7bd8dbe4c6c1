package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
)

// FlatMost is how many KiB the host's memory may grow by: with the race detector it is three times as large.
const FlatMost = 12 << 10

// WriteScript writes a script to a folder of its own and returns its path.
func WriteScript(t *testing.T, text string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.lua")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return script
}

// Balanced is what the summary prints where the ledger is complete.
const Balanced = "every packet is accounted for"

// OnGPU is a run of a script on the stand-ins, with what goes wrong; its output and exit code.
func OnGPU(t *testing.T, fault, script string, args ...string) (string, int) {
	t.Helper()
	all, err := gpu.Variables()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(Built(t), append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "DAQIRI_FAKE_CUDA="+fault, "XDG_CACHE_HOME="+t.TempDir())
	for name, value := range all {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if value, ok := strings.CutPrefix(fault, "env "); ok {
		cmd.Env = append(cmd.Env, "DAQIRI_FAKE_CUDA=", value)
	}
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}
