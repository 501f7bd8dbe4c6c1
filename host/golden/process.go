package golden

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// maxOutput is the maximum number of bytes kept per stream; a script that writes more is killed.
	maxOutput = 8 << 20
	// pipeGrace is how long other processes may keep a stream open after the script's end.
	pipeGrace = 2 * time.Second
)

var errTooMuch = errors.New("wrote more than 8 MiB to one stream")

// errTimeout is the cause of a test's end at its time limit.
type errTimeout struct{ limit time.Duration }

func (e errTimeout) Error() string { return fmt.Sprintf("timed out after %v and was killed", e.limit) }

// outcome is the result of a script's process.
type outcome struct {
	stdout, stderr string
	exit           int
	// broken explains why there is no exit code to compare; nil if there is one.
	broken error
	took   time.Duration
}

// sandbox is the temporary folder of one test: work is the script's working folder and HOME, tmp its TMPDIR.
type sandbox struct{ root, work, tmp, summary string }

func newSandbox() (sandbox, error) {
	root, err := os.MkdirTemp("", "daqiri-test-")
	if err != nil {
		return sandbox{}, err
	}
	s := sandbox{root, filepath.Join(root, "work"), filepath.Join(root, "tmp"), filepath.Join(root, "summary.json")}
	for _, dir := range []string{s.work, s.tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return s, errors.Join(err, os.RemoveAll(root))
		}
	}
	return s, nil
}

// execute runs the script in the sandbox and waits for its end, at most opts.Timeout. If the timeout, ctx or the output limit ends it, its whole
// process group is killed.
func execute(ctx context.Context, opts Options, c testCase, e expectation, box sandbox) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Timeout, errTimeout{opts.Timeout})
	defer cancel()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)

	args := []string{"run"}
	if e.counters != nil {
		args = append(args, "--summary-json", box.summary)
	}
	cmd := exec.CommandContext(ctx, opts.Exe, append(append(args, c.script), e.args...)...)
	cmd.Dir = box.work
	cmd.Env = append([]string{"PATH=" + opts.SearchPath, "HOME=" + box.work, "TMPDIR=" + box.tmp, "PWD=" + box.work,
		"DAQIRI_TEST=1"}, e.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = pipeGrace
	stdout, stderr := &bounded{overflow: abort}, &bounded{overflow: abort}
	cmd.Stdout, cmd.Stderr = stdout, stderr

	started := time.Now()
	err := cmd.Run()
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(started)}
	o.exit, o.broken = exitOf(ctx, cmd, err)
	return o
}

// exitOf converts a process's end to its exit code, or to an error if the code is meaningless.
func exitOf(ctx context.Context, cmd *exec.Cmd, err error) (int, error) {
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil && err != nil:
		return 0, context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		// A process that still holds a stream is in the group, so its id can't have been reused.
		_ = killGroup(cmd)
		return 0, errors.New("left a process behind that held its output open; it was killed")
	case errors.As(err, &ended):
		status, ok := ended.Sys().(syscall.WaitStatus)
		if ok && status.Signaled() {
			return 0, fmt.Errorf("killed by signal %d (%v)", status.Signal(), status.Signal())
		}
		return ended.ExitCode(), nil
	}
	return 0, err
}

func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// bounded keeps the first maxOutput bytes and calls overflow if there are more.
type bounded struct {
	buf      bytes.Buffer
	overflow context.CancelCauseFunc
}

func (b *bounded) Write(p []byte) (int, error) {
	room := maxOutput - b.buf.Len()
	if len(p) > room {
		b.buf.Write(p[:room])
		b.overflow(errTooMuch)
		return len(p), nil
	}
	return b.buf.Write(p)
}

func (b *bounded) String() string { return b.buf.String() }
