package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// slack is how much longer than asked for a process may take before it is killed.
	slack = 30 * time.Second
	// pipeGrace is how long a stream may stay open after its process has ended.
	pipeGrace = time.Second
)

// process is a program that prints JSON lines: one of ours, or a baseline loop.
type process struct {
	name   string
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr written
	cancel context.CancelFunc
}

// A written is what a program has written so far. It may be read while the program writes.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *written) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *written) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// awaits returns once the program has written these words to stderr.
func (p *process) awaits(ctx context.Context, words string) error {
	for deadline := time.Now().Add(slack); !strings.Contains(p.stderr.String(), words); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("%s: did not say %q: %s", p.name, words, p.stderr.String())
		}
	}
	return nil
}

// command makes a program that is killed with all that it started when ctx ends.
func (b *bench) command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = b.dir
	cmd.Env = append([]string{"PATH=" + b.opts.SearchPath, "HOME=" + b.dir, "TMPDIR=" + b.dir, "LC_ALL=C"}, b.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeGrace
	return cmd
}

// start starts a program for at most d and some slack. The caller ends it with finish or stop.
func (b *bench) start(ctx context.Context, d time.Duration, argv ...string) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, d+slack)
	p := &process{name: filepath.Base(argv[0]), cmd: b.command(ctx, argv...), cancel: cancel}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	p.out = bufio.NewReader(out)
	return p, nil
}

// next is the next line that the program prints.
func (p *process) next() (figures, error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		if failed := p.finish(); failed != nil {
			return nil, failed
		}
		return nil, fmt.Errorf("%s: ended without a result", p.name)
	}
	f := figures{}
	if err := json.Unmarshal(line, &f); err != nil {
		return nil, fmt.Errorf("%s: printed %q: %w", p.name, bytes.TrimSpace(line), err)
	}
	return f, nil
}

// finish waits for the program's end.
func (p *process) finish() error {
	defer p.cancel()
	_, _ = io.Copy(io.Discard, p.out)
	err := p.cmd.Wait()
	if err == nil {
		return nil
	}
	return programError(p.name, err, []byte(p.stderr.String()))
}

// stop ends the program, wherever it is. It may have ended already.
func (p *process) stop() {
	p.cancel()
	_ = p.cmd.Wait()
}

// last runs a program to its end and returns the line that it printed.
func (b *bench) last(ctx context.Context, d time.Duration, argv ...string) (figures, error) {
	p, err := b.start(ctx, d, argv...)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	f, err := p.next()
	if err != nil {
		return nil, err
	}
	return f, p.finish()
}

// ours is the command line of one of our scripts.
func (b *bench) ours(script string, args ...string) []string {
	return append([]string{b.opts.Exe, "run", "--summary", "none", b.script(script)}, args...)
}

// peer is the command line of a baseline loop.
func (b *bench) peer(loop string, args ...string) []string {
	return append([]string{b.opts.Peer, "peer", loop}, args...)
}

// find is the path of an external program, "" where it isn't installed; the folders of system commands are searched
// too.
func (b *bench) find(name string) string {
	for _, dir := range append(filepath.SplitList(b.opts.SearchPath), "/usr/sbin", "/sbin") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// output runs an external program and returns what it printed to stdout.
func (b *bench) output(ctx context.Context, argv ...string) (string, error) {
	stdout, _, err := b.outputs(ctx, argv...)
	return stdout, err
}

// outputs is output with stderr.
func (b *bench) outputs(ctx context.Context, argv ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := b.command(ctx, argv...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err != nil {
		err = programError(filepath.Base(argv[0]), err, append(errs.Bytes(), out.Bytes()...))
	}
	return out.String(), errs.String(), err
}

// programError names the program and its last output.
func programError(name string, err error, output []byte) error {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if text := strings.Join(lines[:min(len(lines), 3)], " / "); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// freePort is a port of 127.0.0.1 that is free at this moment, neither for TCP nor for UDP.
func freePort() (string, error) {
	for range 16 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		_, port, err := net.SplitHostPort(l.Addr().String())
		u, udpErr := net.ListenPacket("udp", l.Addr().String())
		_ = l.Close()
		if err != nil {
			return "", err
		}
		if udpErr == nil {
			return port, u.Close()
		}
	}
	return "", errors.New("no port is free for both TCP and UDP")
}

// text writes a duration in seconds for a command line.
func text(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
