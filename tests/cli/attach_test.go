package cli

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/pty"
)

// attachJob starts a job that others may attach to.
func attachJob(t *testing.T) (socket string, out *harness.Buffer, cmd *exec.Cmd) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dqa") // names of sockets have at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(dropScript), 0o644); err != nil {
		t.Fatal(err)
	}
	socket, out = filepath.Join(dir, "job.sock"), &harness.Buffer{}
	cmd = exec.Command(harness.Built(t), "--attach="+socket, "--summary", "none", "x.lua")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	harness.Until(t, "job", func() bool { return strings.Contains(out.String(), "at five") })
	return socket, out, cmd
}

// attach runs the command attach with lines on its stdin.
func attachWith(t *testing.T, lines string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(harness.Built(t), append([]string{"attach"}, args...)...)
	cmd.Stdin = strings.NewReader(lines)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// TestAttach types into a job from outside: its locals, its output, errors, the log, one writer and several viewers, and its end.
func TestAttach(t *testing.T) {
	socket, out, job := attachJob(t)
	info, err := os.Lstat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v of the socket, want 0600: %v", info.Mode(), err)
	}
	output, code := attachWith(t, "count >= 5\nstep = 1e6\nprint('seen here', step)\n", socket)
	if code != 0 || !strings.Contains(output, "true\n") || !strings.Contains(output, "seen here\t1000000") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	output, code = attachWith(t, "help\nhelp q:alloc\nhelp count lost packets\n", socket)
	for _, want := range []string{"help WORDS explains", "  b:fill(tpl)", "daqiri-run doc cookbook 'Count lost packets by sequence number'"} {
		if code != 0 || !strings.Contains(output, want) || strings.Contains(out.String(), want) {
			t.Errorf("help: exit code %d, want %q here and not in the job's output:\n%s\n%s", code, want, output, out.String())
		}
	}
	output, code = attachWith(t, "oops.x\n", socket)
	if code != 1 || !strings.Contains(output, "unknown global 'oops'") {
		t.Errorf("an error: exit code %d:\n%s", code, output)
	}
	for _, want := range []string{`msg="a prompt has attached"`, `msg=typed chunk="step = 1e6"`, "seen here\t1000000"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the job's log lacks %s:\n%s", want, out.String())
		}
	}

	// A prompt on a terminal, beside which no second one may type, and three viewers look on; one of them is killed.
	x := pty.Open(t)
	typist := exec.Command(harness.Built(t), "attach", socket)
	typist.Env = append(os.Environ(), "TERM=xterm", "XDG_STATE_HOME="+t.TempDir())
	end := x.Start(typist)
	x.Watch("a prompt on x.lua", "> ")
	x.Type("s:sta\t", "s:sta")
	x.Type(ctrlC, "> ")
	x.Type("while true do end\r")
	time.Sleep(200 * time.Millisecond)
	x.Type(ctrlC, "interrupted", "> ")
	x.Type("step\r", "\r\n1000000\r\n", "> ")
	if output, code := attachWith(t, "1\n", socket); code != 4 || !strings.Contains(output, "another client has the prompt of this job: use --view") {
		t.Errorf("a second prompt: exit code %d:\n%s", code, output)
	}
	var views []*harness.Buffer
	for k := range 3 {
		v := exec.Command(harness.Built(t), "attach", "--view", socket)
		seen := &harness.Buffer{}
		v.Stdout, v.Stderr = seen, seen
		if err := v.Start(); err != nil {
			t.Fatal(err)
		}
		views = append(views, seen)
		defer func() { _ = v.Process.Kill(); _ = v.Wait() }()
		if k == 2 {
			harness.Until(t, "view of the third", func() bool { return strings.Contains(seen.String(), "loop0.rx.0") })
			_ = v.Process.Kill()
		}
	}
	for k, v := range views {
		harness.Until(t, "view", func() bool { return strings.Contains(v.String(), "loop0.rx.0") || k == 2 })
	}
	x.Type(ctrlD)
	if err := end(); err != nil {
		t.Errorf("%v after %q", err, x.Seen())
	}

	// The job's end ends who looks on, and the socket goes.
	output, _ = attachWith(t, "s:stop 'enough'\n", socket)
	if err := job.Wait(); err != nil {
		t.Errorf("the job: %v\n%s\n%s", err, out.String(), output)
	}
	if !strings.Contains(out.String(), "ended, counted by the prompt") {
		t.Errorf("the job has not seen what was typed:\n%s", out.String())
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Error("the socket is still there")
	}
	if output, code := attachWith(t, "", socket); code != 4 || !strings.Contains(output, "no job listens there: it is gone") {
		t.Errorf("a job that is gone: exit code %d: %s", code, output)
	}
}

// TestAttachViewKeys: on a terminal a viewer changes by the key t, keeps within the terminal when that is made smaller, and leaves by q, which gives the terminal back.
func TestAttachViewKeys(t *testing.T) {
	socket, _, _ := attachJob(t)
	x := pty.Open(t)
	v := exec.Command(harness.Built(t), "attach", "--view", socket)
	v.Env = append(os.Environ(), "TERM=xterm")
	end := x.Start(v)
	x.Watch("packets/s", "t: everything or one line, q: leave")
	x.Type("t", "loop0.rx 0 pps")
	x.Type("t", "packets/s")
	x.Resize(8, 40)
	from := len(x.Seen())
	x.Watch("\x1b[J", "\x1b[J", "\x1b[J")
	frames := strings.Split(x.Seen()[from:], "\x1b[J")
	lines := strings.Split(strings.TrimRight(frames[len(frames)-2], "\r\n"), "\r\n") // the last one that is whole, and was begun at the new size
	if len(lines) < 4 || len(lines) > 8 {
		t.Errorf("%d lines on a terminal of 8: %q", len(lines), lines)
	}
	for _, line := range lines {
		if n := len([]rune(escapes.ReplaceAllString(line, ""))); n > 40 {
			t.Errorf("%d columns on a terminal of 40: %q", n, line)
		}
	}
	x.Type("q")
	if err := end(); err != nil {
		t.Errorf("%v after %q", err, x.Seen())
	}
}

// TestAttachRefused: another user, another version, and something that is not a job.
func TestAttachRefused(t *testing.T) {
	harness.Need(t, "root", "nc")
	socket, out, _ := attachJob(t)
	program := filepath.Join(filepath.Dir(socket), "daqiri-run")
	if text, err := exec.Command("cp", harness.Built(t), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	stranger := func(args ...string) *exec.Cmd {
		return exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups"}, args...)...)
	}
	for _, mode := range []os.FileMode{0o600, 0o666} { // also where a process has opened the socket to all
		for path, m := range map[string]os.FileMode{socket: mode, filepath.Dir(socket): 0o755} {
			if err := os.Chmod(path, m); err != nil {
				t.Fatal(err)
			}
		}
		cmd := stranger(program, "attach", socket)
		text, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(string(text), "only its user may attach to a job") {
			t.Errorf("mode %v: exit code %d: %s", mode, code, text)
		}
	}
	// The job asks as well: the socket is open to all now.
	if text, _ := stranger("timeout", "60", "nc", "-U", socket).CombinedOutput(); !strings.Contains(string(text), "only its user may attach to a job") {
		t.Errorf("the job says to a stranger: %s", text)
	}
	if strings.Contains(out.String(), "has attached") {
		t.Errorf("a stranger has attached:\n%s", out.String())
	}
	// And who attaches asks whose job it is.
	theirs := filepath.Join(t.TempDir(), "a.sock")
	for _, dir := range []string{filepath.Dir(filepath.Dir(theirs)), filepath.Dir(theirs)} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	fake := stranger("nc", "-lU", theirs)
	if err := fake.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fake.Process.Kill(); _ = fake.Wait() }()
	harness.Until(t, "socket of the stranger", func() bool { _, err := os.Stat(theirs); return err == nil })
	if output, code := attachWith(t, "", theirs); code != 4 || !strings.Contains(output, "user 65534 at the other: only its user may attach to a job") {
		t.Errorf("a job of a stranger: exit code %d: %s", code, output)
	}

	other := filepath.Join(filepath.Dir(socket), "other.sock")
	l, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	greetings := []string{`{"protocol":1,"version":"0.0.9","pid":1}`, `{"protocol":9}`, "SSH-2.0-OpenSSH"}
	go func() {
		for _, text := range greetings {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte(text + "\n"))
				_ = c.Close()
			}
		}
	}()
	for k, want := range []string{"the job is of daqiri-run 0.0.9", "and this is", "no job of daqiri-run answers there"} {
		if output, code := attachWith(t, "", other); code != 4 || !strings.Contains(output, want) {
			t.Errorf("%s: exit code %d: %s", greetings[k], code, output)
		}
	}

	// A client that sends nonsense, or nothing, does no harm.
	for _, text := range []string{"", "{\n", `{"protocol":1,"mode":"prompt"}` + "\n" + strings.Repeat("x", 5<<20)} {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Write([]byte(text))
		var h map[string]any
		if err := json.NewDecoder(c).Decode(&h); err != nil {
			t.Errorf("no greeting: %v", err)
		}
		_ = c.Close()
	}
	harness.Until(t, "prompt that is free again", func() bool {
		output, code := attachWith(t, "6*7\n", socket)
		return code == 0 && strings.Contains(output, "42")
	})
}
