package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/pty"
)

// dropScript counts in a local of its main chunk, which a timer sees.
const dropScript = `
local daqiri = require "daqiri"
local s = daqiri.open()
local count, step = 0, 1
s:every(0.01, function()
  count = count + step
  if count == 5 then print "at five" end
end)
s:run{}
print("ended, " .. (count > 1e6 and "counted by the prompt" or "not"))
`

// onTerminal starts the program on a terminal.
func onTerminal(t *testing.T, args ...string) (x *pty.Terminal, cmd *exec.Cmd, end func() error) {
	t.Helper()
	x = pty.Open(t)
	cmd = exec.Command(harness.Built(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TERM=xterm", "XDG_STATE_HOME="+cmd.Dir)
	if err := os.WriteFile(filepath.Join(cmd.Dir, "x.lua"), []byte(dropScript), 0o644); err != nil {
		t.Fatal(err)
	}
	return x, cmd, x.Start(cmd)
}

const ctrlC, ctrlD, ctrlBackslash = "\x03", "\x04", "\x1c"

// TestDropIn: Ctrl-\ opens a prompt on a script that runs, whose locals can be read and set there; an error in a line harms nothing; the
// script continues meanwhile, after Ctrl-D, and a second prompt outlives it.
func TestDropIn(t *testing.T) {
	t.Parallel()
	x, _, end := onTerminal(t, "--summary", "none", "x.lua")
	x.Watch("at five")
	x.Type(ctrlBackslash, "Ctrl-D closes this prompt", "> ")
	x.Type("count >= 5, step\r", "\r\ntrue\t1\r\n", "> ")
	x.Type("step = 1e6\r", "> ")
	x.Type("oops.x\r", "unknown global 'oops'", "> ")
	x.Type("s:stats().seconds > 0\r", "\r\ntrue\r\n", "> ")
	x.Type(ctrlD, "\r\n", "loop0.rx") // the script's progress: the terminal is no longer the prompt's
	x.Type(ctrlBackslash, "Ctrl-D closes this prompt", "> ")
	x.Type("repeat daqiri.sleep(0.01) until count > 1e6\r", "> ") // the timer's next call may be late
	x.Type("count > 1e6\r", "\r\ntrue\r\n", "> ")
	x.Type("s:stop 'enough'\r", "ended, counted by the prompt")
	x.Type("step\r", "\r\n1000000\r\n", "> ")
	x.Type(ctrlD)
	if err := end(); err != nil {
		t.Errorf("%v after %q", err, x.Seen())
	}
}

// TestDropInInterrupt: Ctrl-C at the dropped prompt ends the line that runs, and with none the program, in order.
func TestDropInInterrupt(t *testing.T) {
	t.Parallel()
	x, cmd, end := onTerminal(t, "x.lua")
	x.Watch("at five")
	x.Type(ctrlBackslash, "> ")
	x.Type("print 'spinning' while true do end\r", "\r\nspinning")
	x.Type(ctrlC, "interrupted", "> ")
	x.Type(ctrlD, "\r\n", "loop0.rx")
	x.Type(ctrlC, "Ctrl-C: stopping", "ended, ", "every packet is accounted for")
	_ = end()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130 after %q", code, x.Seen())
	}
}

// TestPromptPlot: pictures of samples are drawn on the terminal, a waterfall in colors.
func TestPromptPlot(t *testing.T) {
	t.Parallel()
	x, _, end := onTerminal(t, "--summary", "none")
	x.Watch("help WORDS explains", "> ")
	x.Type("tx = daqiri.open():tx_queue 'loop0'\r", "> ")
	x.Type(`b = tx:alloc(4):fill(tx:template{ payload = ("\64\0\0\64\192\0\0\192"):rep(32) })`+"\r", "> ")
	x.Type("b:plot{ type = 'ci8' }\r", "Level (dBFS)\r\n    -6.02 ", "⣿", "Frequency (cycles/sample)", "> ")
	x.Type("b:plot{ type = 'ci8', kind = 'waterfall' }\r", "the newest on top", "\x1b[48;2;253;231;37m▀", "> ")
	x.Type("b:plot{ type = 'i13le' }\r", "\"i13le\" is not a valid sample type", "> ")
	x.Type(ctrlD)
	if err := end(); err != nil {
		t.Errorf("%v after %q", err, x.Seen())
	}
}

// TestPromptLocals: locals stay for the next lines, those of a script before the prompt too; the hint comes once.
func TestPromptLocals(t *testing.T) {
	t.Parallel()
	x, _, end := onTerminal(t, "--summary", "none", "-i", "x.lua", "--flag")
	x.Watch("at five")
	x.Type(ctrlC, "stopping") // ends s:run
	_ = end()
	x, _, end = onTerminal(t, "--summary", "none")
	x.Watch("help WORDS explains", "> ")
	x.Type("local a, b = 1\r", "a local stays for the next lines", "> ")
	x.Type("b = a + 1\r", "> ")
	x.Type("a, b, rawget(_G, 'b')\r", "\r\n1\t2\tnil\r\n", "> ")
	x.Type("local c = 3\r", "> ")
	x.Type("local q = daqiri.open():tx_queue('loop0')\r", "> ")
	x.Type("q:s\t", "q:send") // and nothing that only receive queues have
	x.Type(ctrlC, "> ")
	x.Type("q:o\t\t", "q:o")
	x.Type(ctrlC, "> ")
	x.Type("help(q.alloc)\r", "q:alloc(n)", "Of a transmit queue", "> ")
	x.Type("help(daqiri)\r", "daqiri.args ", "daqiri.open ", "daqiri-run help daqiri", "> ") // in short
	x.Type("help(string)\r", "this table is not documented", "> ")
	x.Type(ctrlD)
	if err := end(); err != nil {
		t.Errorf("%v after %q", err, x.Seen())
	}
	if n := strings.Count(x.Seen(), "stays for the next lines"); n != 1 {
		t.Errorf("the hint came %d times", n)
	}
	if strings.Contains(x.Seen(), "on_burst") {
		t.Error("a transmit queue is completed by what receive queues have")
	}
}

// TestTop: --top draws the whole view in place, within the terminal's 80 columns; without a terminal SIGUSR2 asks for it.
func TestTop(t *testing.T) {
	t.Parallel()
	x, cmd, end := onTerminal(t, "--top", "x.lua")
	x.Watch("at five", "packets/s", "loop0.rx.0", "region packets: 0 of 4,096 buffers in use", "\x1b[", "A\r\x1b[J", "packets/s")
	x.Type(ctrlC, "every packet is accounted for")
	_ = end()
	for _, line := range strings.Split(x.Seen(), "\r\n") {
		if n := len([]rune(escapes.ReplaceAllString(line, ""))); strings.Contains(line, "packets/s") && n > 80 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}

	quiet := exec.Command(harness.Built(t), "--summary", "none", "x.lua")
	quiet.Dir = cmd.Dir
	var out harness.Buffer
	quiet.Stdout, quiet.Stderr = &out, &out
	if err := quiet.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = quiet.Process.Kill() })
	harness.Until(t, "script that runs", func() bool { return strings.Contains(out.String(), "at five") })
	if err := quiet.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "view", func() bool {
		return strings.Contains(out.String(), "loop0.tx.0") && strings.Contains(out.String(), "packets/s")
	})
	if err := quiet.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _ = quiet.Wait(); quiet.ProcessState.ExitCode() != 130 {
		t.Errorf("exit code %d:\n%s", quiet.ProcessState.ExitCode(), out.String())
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
