package reorder

import (
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// TestNewFormat makes a script for packets of a format, sends it 130 of them, of which one is lost and the last two are in a batch that does not become complete, and reads what
// it wrote with the reader and the dissector that were made with it.
func TestNewFormat(t *testing.T) {
	harness.Need(t, "numpy", "tshark")
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	program, dir, address := harness.Built(t), t.TempDir(), harness.FreeAddress(t)
	in := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := in(program, "new", "board", "--format", "simple", "--listen", address)
	if want := "made board.lua, board.yaml, board-reader.py and board-dissector.lua: run it with 'daqiri-run board.lua'\n"; err != nil || out != want {
		t.Fatalf("%v, want %s\n%s", err, want, out)
	}
	if out, err := in(program, "check", "board.lua", "board.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := &harness.Buffer{}
	run := exec.Command(program, "board.lua", "--seconds", "100")
	run.Dir, run.Stdout, run.Stderr = dir, seen, seen
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run.Process.Kill() }()
	harness.Until(t, "start", func() bool { return strings.Contains(seen.String(), "0 packets, 0 blocks") })
	conn, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for n := range uint64(130) {
		if n == 70 {
			continue
		}
		packet := append(binary.BigEndian.AppendUint64(nil, n), make([]byte, 100)...)
		packet[8] = byte(n)
		if _, err := conn.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	harness.Until(t, "blocks", func() bool { return strings.Contains(seen.String(), "129 packets, 3 blocks, missing packets: 1\n") })
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil || !strings.Contains(seen.String(), "3 blocks, missing packets: 1 of 130, without a place: 0\n") {
		t.Fatalf("%v\n%s", err, seen)
	}

	blocks, _ := filepath.Glob(filepath.Join(dir, "captures", "board-*.dqb"))
	captures, _ := filepath.Glob(filepath.Join(dir, "captures", "board-*.pcapng"))
	if len(blocks) != 1 || len(captures) != 1 {
		t.Fatalf("files %v %v", blocks, captures)
	}
	out, err = in(python, "board-reader.py", blocks[0])
	if want := "(3, 64, 100) batches [0, 1, 2] cells present [64, 63, 2]\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("%v, want %s\n%s", err, want, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "board.lua"))
	_, port, _ := net.SplitHostPort(address)
	as := "udp.port==" + port + ",daqiri_simple"
	if err != nil || !strings.Contains(string(script), "-d "+as+" ") {
		t.Errorf("%v, no %s in\n%s", err, as, script)
	}
	out, err = in("tshark", "-X", "lua_script:board-dissector.lua", "-d", as, "-r", captures[0])
	if err != nil || !strings.Contains(out, "seq 69\n") || strings.Contains(out, "seq 70\n") || !strings.Contains(out, "seq 129\n") {
		t.Errorf("%v\n%s", err, out)
	}

	for format, want := range map[string]string{"udp": "it declares no sequence of packets", "icmp": "name the interface of the frames", "simpel": "did you mean 'simple'?"} {
		if out, err := in(program, "new", "x", "--format", format); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %s\n%s", format, err, want, out)
		}
	}
	own := filepath.Join(dir, "folder", "own.lua")
	if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte(infoFormat[:len(infoFormat)-1]+`sequence = "seq" }`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := in(program, "new", "x", "--format", own); err == nil || !strings.Contains(out, "copy it to .") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := in(program, "new", "folder/x", "--format", "folder/own.lua"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script, err = os.ReadFile(filepath.Join(dir, "folder", "x.yaml"))
	if err != nil || !strings.Contains(string(script), ":4016\"") {
		t.Errorf("%v: not the port of the format in\n%s", err, script)
	}
	if out, err := in(program, "check", "folder/x.lua", "folder/x.yaml"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := in(program, "folder/x.lua", "--seconds", "0.1"); err == nil || !strings.Contains(out, "disk.written > 0") {
		t.Errorf("a run without packets: %v\n%s", err, out)
	}
}
