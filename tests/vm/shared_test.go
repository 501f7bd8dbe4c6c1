package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A shared machine runs the scripts of several tests, one after another: a boot, and what an emulated machine reads and translates
// for the first time, take longer than most of them. Each script gets processes, a /proc and a /dev/shm of its own.
type shared struct {
	dir   string             // in sharedDir: a script is put there as job.sh, and leaves the files out, err and code
	stop  context.CancelFunc // ends the machine
	ended chan struct{}      // closed when it has ended
	why   error
}

// sharedDir is a folder that shared machines and this one have in common, for what a script leaves.
var sharedDir = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(programsDir, "shared")
	return dir, os.Mkdir(dir, 0o755)
})

//go:embed shared.sh
var sharedScript string

// idle are the shared machines without a script. A test takes one out, or boots another.
var idle struct {
	sync.Mutex
	machines []*shared
	running  sync.WaitGroup
}

// rdmaMust runs a script on a machine with two soft-RoCE devices, and fails t unless it succeeds; its output. The variables env are
// "NAME=value", the folder dir is the script's.
func rdmaMust(t *testing.T, k kernel, dir string, env []string, script string) string {
	t.Helper()
	s := takeShared(t, k)
	output, code, err := s.run(dir, env, rdmaScript+"\n"+script)
	if err != nil {
		s.stop() // it is in an unknown state
		t.Fatalf("%v\n%s", err, output)
	}
	idle.Lock()
	idle.machines = append(idle.machines, s)
	idle.Unlock()
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	return output
}

func takeShared(t *testing.T, k kernel) *shared {
	t.Helper()
	idle.Lock()
	defer idle.Unlock()
	if n := len(idle.machines); n > 0 {
		s := idle.machines[n-1]
		idle.machines = idle.machines[:n-1]
		return s
	}
	dir := inShared(t, "machine")
	ctx, stop := context.WithCancel(context.Background())
	s := &shared{dir: dir, stop: stop, ended: make(chan struct{})}
	m := machine{modules: rdmaModules, memory: 2048, dir: dir, share: filepath.Dir(dir), timeout: 12 * time.Hour, stdout: os.Stderr, stderr: os.Stderr}
	if wide() {
		m.memory = 6144
	}
	idle.running.Go(func() {
		defer close(s.ended)
		code, err := m.run(ctx, k, []string{"sh", "-c", sharedScript})
		s.why = fmt.Errorf("the shared machine ended with %d: %w", code, err)
	})
	return s
}

// inShared makes a folder in sharedDir.
func inShared(t *testing.T, name string) string {
	t.Helper()
	dir, err := sharedDir()
	if err == nil {
		dir, err = os.MkdirTemp(dir, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// endShared ends all shared machines.
func endShared() {
	idle.Lock()
	for _, s := range idle.machines {
		s.stop()
	}
	idle.Unlock()
	idle.running.Wait()
}

// run has the machine run a script. A machine whose kernel stopped is booted again and repeats the script.
func (s *shared) run(dir string, env []string, script string) (output string, code int, err error) {
	var job strings.Builder
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(&job, "export %s=%s\n", name, quote(value))
	}
	fmt.Fprintf(&job, "cd %s || exit\n%s\n", quote(dir), script)
	if err := s.put(job.String()); err != nil {
		return "", 0, err
	}
	code, err = s.wait()
	out, _ := os.ReadFile(s.file("out"))
	if code != 0 || err != nil {
		complaints, _ := os.ReadFile(s.file("err"))
		out = append(out, complaints...)
	}
	return string(out), code, err
}

func (s *shared) file(name string) string { return filepath.Join(s.dir, name) }

// put gives the machine a script, in an order that has it run once.
func (s *shared) put(script string) error {
	for _, old := range []string{"job.sh", "code"} {
		if err := os.Remove(s.file(old)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := os.WriteFile(s.file("job.new"), []byte(script), 0o600); err != nil {
		return err
	}
	return os.Rename(s.file("job.new"), s.file("job.sh"))
}

// wait waits for the script's exit code.
func (s *shared) wait() (code int, err error) {
	limit := scriptLimit()
	late := time.After(limit)
	for tick := time.Tick(100 * time.Millisecond); ; {
		if text, err := os.ReadFile(s.file("code")); err == nil {
			return strconv.Atoi(strings.TrimSpace(string(text)))
		}
		select {
		case <-tick:
		case <-s.ended:
			return 0, s.why
		case <-late:
			return 0, fmt.Errorf("the script did not end within %v", limit)
		}
	}
}

// scriptLimit is how long a script may take, with a boot.
func scriptLimit() time.Duration {
	if wide() {
		return time.Hour
	}
	return patience
}
