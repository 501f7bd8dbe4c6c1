package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/tests/levels"
)

// sightTimeout ends tests that a fault has made endless; that, too, is a fault seen.
const sightTimeout = 8 * time.Minute

// A bench is where faults are tried: copies of the project, and what is known of the tests. Objects of C come from ccache: a fault changes one
// file, and compiling the engine again takes minutes.
type bench struct {
	dir  string
	env  []string
	dpdk bool // the library of the engine dpdk can be made

	mu    sync.Mutex
	sound map[string]error // by sight: nil where it passes without a fault
}

// A result is what became of a fault.
type result struct {
	fault fault
	seen  bool
	level levels.Level // that sees it
	how   string
	took  time.Duration
}

func (r result) String() string {
	word := "SURVIVED"
	if r.seen {
		word = "seen"
	}
	return fmt.Sprintf("%-8s %-4s %-32s %4.0f s  %s", word, r.level, r.fault.name, r.took.Seconds(), r.how)
}

func newBench() (*bench, error) {
	dir, err := os.MkdirTemp("", "daqiri-run-mutate-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, sound: map[string]error{}}
	if _, err := exec.LookPath("ccache"); err != nil {
		return nil, fmt.Errorf("%w: without it each fault compiles the whole engine again (make deps installs it)", err)
	}
	b.env = append(append(os.Environ(), levels.Env()...), "CC=ccache gcc", "CCACHE_NOHASHDIR=1", "CCACHE_SLOPPINESS=random_seed,include_file_mtime,include_file_ctime")
	b.dpdk = exec.Command("pkg-config", "--exists", "libdpdk").Run() == nil
	return b, nil
}

func (b *bench) remove() { _ = os.RemoveAll(b.dir) }

// work tries faults in a copy of its own, to which each is put back before the next.
func (b *bench) work(i int, next <-chan fault, results chan<- result) error {
	root := filepath.Join(b.dir, fmt.Sprint("copy", i))
	err := copyTree(root)
	for f := range next {
		r := result{fault: f, how: "the copy of the project failed"}
		if err == nil {
			r, err = b.try(root, f)
		}
		results <- r
	}
	return err
}

// projectFiles are the regular files that git knows, with what is not committed.
func projectFiles() ([]string, error) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() { // not deleted, nor a link to what was built
			names = append(names, name)
		}
	}
	return names, nil
}

// copyTree copies the project's files, and links to the folder build.
func copyTree(root string) error {
	names, err := projectFiles()
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	built, err := filepath.EvalSymlinks("build")
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil {
		built, err = filepath.Abs(built)
	}
	if err != nil {
		return err
	}
	return os.Symlink(built, filepath.Join(root, "build"))
}

// try puts f into the copy, asks its tests one after another until one fails, and takes it out again.
func (b *bench) try(root string, f fault) (result, error) {
	r, from := result{fault: f}, time.Now()
	path := filepath.Join(root, filepath.FromSlash(f.file))
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	changed, err := f.apply(string(text))
	if err != nil {
		return r, err
	}
	var sounds []string
	for _, s := range f.sees {
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			return r, err
		}
		output, failed := b.ask(root, s)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return r, err
		}
		if r.seen, r.how = b.judge(root, s, output, failed); r.seen {
			r.level = s.level()
			break
		}
		sounds = append(sounds, r.how)
	}
	if !r.seen {
		r.how = strings.Join(sounds, "; ")
	}
	r.took = time.Since(from)
	return r, nil
}

var (
	notBuilt = regexp.MustCompile(`(?m)^\S+\.[ch]:\d+:\d+: (fatal )?error: .*|.*\[(build|setup) failed\]`)
	notRun   = regexp.MustCompile(`(?m)no tests to run|--- SKIP.*|^skip .*`)
)

// judge reports whether a test that ended so has seen the fault: it failed, it was built, and without the fault it passes.
func (b *bench) judge(root string, s sight, output string, failed error) (seen bool, how string) {
	if m := notBuilt.FindString(output); m != "" && failed != nil {
		return false, fmt.Sprintf("does not compile: %s", m)
	}
	if failed == nil {
		return false, strings.TrimSpace(fmt.Sprintf("%v: passed %s", s, notRun.FindString(output)))
	}
	b.mu.Lock()
	sound, known := b.sound[s.String()]
	b.mu.Unlock()
	if !known {
		var output string
		if output, sound = b.ask(root, s); sound != nil {
			fmt.Printf("%v fails without a fault:\n%s\n", s, output)
		}
		b.mu.Lock()
		b.sound[s.String()] = sound
		b.mu.Unlock()
	}
	if sound != nil {
		return false, fmt.Sprintf("%v: fails without the fault, too", s)
	}
	return true, s.String()
}

// ask runs a test in the copy.
func (b *bench) ask(root string, s sight) (output string, failed error) {
	ctx, cancel := context.WithTimeout(context.Background(), sightTimeout)
	defer cancel()
	line := []string{"go", "test", "-v", "-count", "1", "-timeout", "4m"}
	switch s.kind {
	case "c":
		pkg, pattern := s.goTest()
		line = append(line, pkg, "-run", pattern)
	case "go":
		if b.dpdk {
			if output, failed = b.command(ctx, root, "make", "--no-print-directory", "libdaqiri_dpdk.so"); failed != nil {
				return output, failed
			}
		}
		line = append(line, s.args[0], "-run", s.args[1])
	case "golden":
		line = []string{"go", "run", "./cmd/daqiri-run", "test", s.args[0]}
	}
	return b.command(ctx, root, line...)
}

// command runs a program in the copy.
func (b *bench) command(ctx context.Context, root string, line ...string) (output string, failed error) {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.Env = root, append(b.env[:len(b.env):len(b.env)], "CCACHE_BASEDIR="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what tests start ends with them
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil { // a test that was ended for its time leaves its programs
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return string(out), err
}
