package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/require"
)

// TestWatch has a machine's beat continue, and end.
func TestWatch(t *testing.T) {
	t.Parallel()
	exchange := t.TempDir()
	beat := filepath.Join(exchange, "beat")
	running, stop := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	if err := os.WriteFile(beat, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		watch(running, exchange, stop)
		close(ended)
	}()
	select {
	case <-ended:
		t.Fatalf("it was stopped: %v", context.Cause(running))
	case <-time.After(3 * time.Second):
	}
	past := time.Now().Add(-2 * beatTime)
	if err := os.Chtimes(beat, past, past); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := context.Cause(running); !errors.Is(err, errStop) {
		t.Errorf("got %v", err)
	}
}

// TestCommand shows what a command sees of this machine, what stays of what it writes, and how its output and its exit
// code come back.
func TestCommand(t *testing.T) {
	t.Parallel()
	k := need(t)
	dir, share := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("from the host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := try(t, k, machine{dir: dir, share: share, env: []string{`DAQIRI_TEST=it's "quoted" $HOME`}}, `
		until [ -e /run/vm/beat ]; do sleep 0.1; done
		uname -r
		cat there
		echo "$DAQIRI_TEST"
		echo changed >there && cat there && touch "$0.new"
		echo kept >`+share+`/kept
		ip netns add other && ip link add veth0 type veth peer name veth1 netns other && ip -o -n other link show veth1 | cut -d@ -f1
		echo aside >/dev/stderr
		seq 100000
		exit 3`)
	if o.code != 3 || o.err != nil {
		t.Fatalf("exit code %d, %v, want 3\n%.2000s\n%s", o.code, o.err, o.stdout, o.stderr)
	}
	want := k.release + "\nfrom the host\nit's \"quoted\" $HOME\nchanged\n2: veth1\n1\n2\n3\n"
	if !strings.HasPrefix(o.stdout, want) || !strings.HasSuffix(o.stdout, "\n99999\n100000\n") || strings.Count(o.stdout, "\n") != 100005 {
		t.Errorf("it printed %d lines, %.200q, want %q …", strings.Count(o.stdout, "\n"), o.stdout, want)
	}
	if o.stderr != "aside\n" {
		t.Errorf("it printed %q", o.stderr)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "there")); string(text) != "from the host\n" {
		t.Errorf("a file of the host's is now %q (%v)", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(share, "kept")); string(text) != "kept\n" {
		t.Errorf("the shared folder's file is %q (%v)", text, err)
	}
}

func TestCommandKilled(t *testing.T) {
	t.Parallel()
	k := need(t)
	o := try(t, k, machine{}, `sleep 1000 & echo before; kill -KILL $$`)
	if o.code != 128+9 || o.err != nil || o.stdout != "before\n" {
		t.Errorf("exit code %d, %v, %q, want 137 and what it printed before", o.code, o.err, o.stdout)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	k := need(t)
	began := time.Now()
	o := try(t, k, machine{timeout: 3 * time.Second}, `sleep 1000`)
	if o.code != exitTimeout || o.err == nil || !strings.Contains(o.err.Error(), "killed after 3s") {
		t.Errorf("exit code %d, %v", o.code, o.err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestFaults are machines that do not come as far as the command.
func TestFaults(t *testing.T) {
	t.Parallel()
	k := need(t)
	if o := try(t, k, machine{modules: []string{"nonesuch"}}, `true`); o.code != exitFault || o.err == nil ||
		!strings.Contains(o.err.Error(), "nonesuch") {
		t.Errorf("with an unknown module: exit code %d, %v", o.code, o.err)
	}
	k.image = "/dev/null"
	if o := try(t, k, machine{}, `true`); o.code != exitFault || o.err == nil {
		t.Errorf("without a kernel: exit code %d, %v", o.code, o.err)
	}
}

// TestBootAgain has machines that end in their boot: they are booted again, a few times, and only where the command has not
// begun. The machines are a shell script in the place of qemu.
func TestBootAgain(t *testing.T) {
	for _, c := range []struct {
		name, nth string // what the nth boot does, with the exchange as $2
		boots     int
		code      int
		says      string
	}{
		{"at once", `: >$2/begun; echo 3 >$2/code`, 1, 3, ""},
		{"the third time", `[ $1 -lt 3 ] || echo 3 >$2/code; echo "int3: 0000" >$2/console`, 3, 3, ""},
		{"never", `echo "int3: $1" >$2/console`, boots, exitFault, "the machine ended in its boot\nint3: " + strconv.Itoa(boots)},
		{"in the command", `: >$2/begun; echo panic >$2/console`, 1, exitFault, "the machine ended early\npanic"},
		{"no machine", `echo "no memory"; exit 1`, 1, exitFault, "no memory"},
		{"a fault that it names", `echo "no such module" >$2/fault`, 1, exitFault, "no such module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			fake := `#!/bin/sh
				for a; do case $a in local,path=*,mount_tag=exchange,*) a=${a#local,path=}; exchange=${a%,mount_tag=*};; esac; done
				echo boot >>` + dir + `/boots
				nth() { ` + c.nth + `; }
				nth $(wc -l <` + dir + `/boots) "$exchange"`
			if err := os.WriteFile(filepath.Join(dir, "qemu-system-x86_64"), []byte(fake), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			o := try(t, need(t), machine{timeout: time.Minute}, "true")
			text, _ := os.ReadFile(filepath.Join(dir, "boots"))
			if n := strings.Count(string(text), "boot"); n != c.boots || o.code != c.code || (o.err == nil) != (c.says == "") ||
				o.err != nil && !strings.Contains(o.err.Error(), c.says) {
				t.Errorf("%d boots, exit code %d, %v; want %d, %d, %q", n, o.code, o.err, c.boots, c.code, c.says)
			}
		})
	}
}

// TestArchive reads an initramfs with cpio.
func TestArchive(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		require.Lack(t, "vm", "cpio is not installed")
	}
	var a archive
	a.add("dir", isDir|0o755, nil)
	a.add("dir/file", isFile|0o640, []byte("hello"))
	dir := t.TempDir()
	c := exec.Command("cpio", "-idm", "--quiet")
	c.Dir, c.Stdin = dir, strings.NewReader(string(a.end()))
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "dir/file"))
	if err != nil || string(text) != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
}
