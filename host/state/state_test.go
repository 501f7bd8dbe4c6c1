package state

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func TestFromOS(t *testing.T) {
	t.Setenv("DAQIRI_STATE_TEST", "a=b")
	g := FromOS()
	if g.Env["DAQIRI_STATE_TEST"] != "a=b" {
		t.Errorf("environment value = %q, want %q", g.Env["DAQIRI_STATE_TEST"], "a=b")
	}
	if len(g.Args) == 0 || g.Args[0] != os.Args[0] {
		t.Errorf("args = %q", g.Args)
	}
	if !filepath.IsAbs(g.WorkDir) || !filepath.IsAbs(g.Executable) {
		t.Errorf("work dir %q and executable %q are not both absolute", g.WorkDir, g.Executable)
	}
	if g.Stdin != os.Stdin || g.Stdout != os.Stdout || g.Stderr != os.Stderr {
		t.Error("standard streams are not the process's")
	}
	if g.Logger.Out != os.Stderr {
		t.Error("the logger does not write to stderr")
	}
}

func TestEnvironKeepsTheFirst(t *testing.T) {
	env := environ([]string{"A=1", "A=2", "EMPTY=", "junk"})
	if env["A"] != "1" || len(env) != 2 {
		t.Errorf("environ = %v", env)
	}
}

func TestColor(t *testing.T) {
	for _, c := range []struct {
		name string
		tty  bool
		env  map[string]string
		want bool
	}{
		{"terminal", true, map[string]string{"TERM": "xterm"}, true},
		{"pipe", false, map[string]string{"TERM": "xterm"}, false},
		{"NO_COLOR", true, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		{"empty NO_COLOR", true, map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true},
		{"dumb", true, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Global{StdoutTTY: c.tty, StderrTTY: c.tty, Env: c.env}
			if g.ColorStdout() != c.want || g.ColorStderr() != c.want {
				t.Errorf("color = %v and %v, want %v", g.ColorStdout(), g.ColorStderr(), c.want)
			}
		})
	}
}

func TestSignals(t *testing.T) {
	ch, stop := subscribe()
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-ch; got != syscall.SIGTERM {
		t.Errorf("signal = %v, want %v", got, syscall.SIGTERM)
	}
}

func TestLoggerText(t *testing.T) {
	var out bytes.Buffer
	g := &Global{Stderr: &out, Logger: NewLogger(&out, false)}
	g.Logger.Debug("hidden")
	g.Logger.WithField("queue", "rx0").Warn("pool is empty")
	if s := out.String(); !strings.Contains(s, `level=warning msg="pool is empty" queue=rx0`) || strings.Contains(s, "hidden") ||
		strings.Contains(s, "\x1b") {
		t.Errorf("log = %q", s)
	}
	out.Reset()
	NewLogger(&out, true).Warn("bright")
	if !strings.Contains(out.String(), "\x1b[") {
		t.Errorf("coloured log without colour: %q", out.String())
	}
}

func TestLoggerJSON(t *testing.T) {
	var out bytes.Buffer
	g := &Global{Stderr: &out, Logger: NewLogger(&out, false)}
	if err := g.ConfigureLogger("debug", "json"); err != nil {
		t.Fatal(err)
	}
	g.Logger.WithField("n", 3).Debug("seen")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if line["msg"] != "seen" || line["level"] != "debug" || line["n"] != 3.0 {
		t.Errorf("line = %v", line)
	}
}

func TestLogLevel(t *testing.T) {
	var out bytes.Buffer
	g := &Global{Logger: NewLogger(&out, false)}
	for _, c := range []struct{ set, was, shown string }{
		{"warn", "info", "warning error"}, {"off", "warn", ""}, {"error", "off", "error"}, {"", "error", "error"},
	} {
		if was := g.LogLevel(c.set); was != c.was {
			t.Errorf("before %q it was %q, want %q", c.set, was, c.was)
		}
		out.Reset()
		g.Logger.Warn("a")
		g.Logger.Error("b")
		shown := strings.Join(strings.Fields(strings.Join(levelWords.FindAllString(out.String(), -1), " ")), " ")
		if shown != c.shown {
			t.Errorf("at %q: %q is shown, want %q", g.LogLevel(""), shown, c.shown)
		}
	}
}

var levelWords = regexp.MustCompile(`\b(warning|error)\b`)

func TestConfigureLoggerErrors(t *testing.T) {
	for _, c := range []struct{ name, level, format, want string }{
		{"level", "loud", "", `log level "loud": not one of debug, info, warn, error`},
		{"a level of the logger's own", "panic", "", `log level "panic": not one of debug, info, warn, error`},
		{"format", "", "xml", `log format "xml": not one of text, json`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Global{Logger: NewLogger(&bytes.Buffer{}, false)}
			if err := g.ConfigureLogger(c.level, c.format); err == nil || err.Error() != c.want {
				t.Errorf("error = %v, want %s", err, c.want)
			}
		})
	}
}
