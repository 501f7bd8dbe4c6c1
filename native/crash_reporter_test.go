package native

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

// deep uses one KiB of stack per level.
func deep(n int) int {
	var room [128]int
	if n == 0 {
		return 0
	}
	room[n%len(room)] = n
	return deep(n-1) + room[(n+1)%len(room)]
}

// deaths are failures that a program cannot catch. They run in a separate process.
var deaths = map[string]func(){
	"stack overflow of Go": func() {
		debug.SetMaxStack(1 << 20)
		fmt.Println(deep(1 << 20))
	},
	"panic on a goroutine": func() {
		go func() { panic("lost") }()
		select {}
	},
	"fault in C": func() { new(Session).Now() },
}

const deathVariable = "DAQIRI_DEATH"

// TestDeath crashes the process in each way: the exit code is 70, and the crash reporter prints the last record.
func TestDeath(t *testing.T) {
	if die := deaths[os.Getenv(deathVariable)]; die != nil {
		debug.SetTraceback("crash")
		HandleAbort()
		w, err := NewCrashReporter(os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if err := w.Keep(&LastRecord{Text: fmt.Sprintf("record %d\n", n)}); err != nil {
				t.Fatal(err)
			}
		}
		die()
		os.Exit(0)
	}
	for name := range deaths {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestDeath$")
			cmd.Env = append(os.Environ(), deathVariable+"="+name)
			out, _ := cmd.CombinedOutput()
			text := string(out)
			if code := cmd.ProcessState.ExitCode(); code != 70 || !strings.HasSuffix(text, "before its end:\nrecord 2\n") ||
				!strings.Contains(text, "ended by the fatal error above") {
				t.Errorf("exit code %d\n%s", code, text)
			}
		})
	}
}
