package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRaceIsSeen: a race of a program whose streams nothing reads, and which is killed, is found.
func TestRaceIsSeen(t *testing.T) {
	if !raced() {
		return // there is nothing to see races with
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.24\n",
		"main.go": `package main

import (
	"os"
	"syscall"
	"time"
)

func main() {
	n, done := 0, make(chan bool)
	go func() { n++; done <- true }()
	n++
	<-done
	if os.Args[1] == "killed" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	}
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-race", "-o", "m", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, end := range []string{"killed", "ended"} {
		reports := t.TempDir()
		run := exec.Command(filepath.Join(dir, "m"), end)
		run.Env = append(os.Environ(), "GORACE="+raceOptions(reports))
		_ = run.Run()
		if got := racesIn(reports); !strings.Contains(got, "WARNING: DATA RACE") {
			t.Errorf("%s: nothing seen: %q", end, got)
		}
	}
}
