// Package cli has the tests of the program itself: its commands, prompt, signals, reports, installation and documents.
package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daqiri/daqiri-run/host/cli"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

var update = flag.Bool("update", false, "rewrite the expected output in script/*.txtar, and docs/look.png")

// TestMain makes daqiri-run a command that tests can start: this test binary under another name. So is daqiri-run-broken, whose
// output panics at the word panic.
func TestMain(m *testing.M) {
	testscript.Main(harness.Tests{M: m}, map[string]func(){
		"daqiri-run": func() { os.Exit(cli.Main(state.FromOS())) },
		"daqiri-run-broken": func() {
			g := state.FromOS()
			g.Stdout = broken{g.Stdout}
			os.Exit(cli.Main(g))
		},
	})
}

// broken is an output with an error.
type broken struct{ io.Writer }

func (b broken) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("panic")) {
		panic("a fault of the output")
	}
	return b.Writer.Write(p)
}

// TestScripts runs script/*.txtar. Beside testscript's own commands these know
//
//	code N PROGRAM [ARGS]   run a program that ends with exit code N
//	portable FILE           replace the work folder in FILE by $WORK, for comparing
//
// and $PLAIN is the program without the race detector, for what starts it hundreds of times.
func TestScripts(t *testing.T) {
	plain := harness.BuiltPlain(t)
	harness.BuiltBench(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DAQIRI_TEST", "1")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("PLAIN", plain)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": runWithCode, "portable": makePortable},
	})
}

// runWithCode is the command code.
func runWithCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// makePortable is the command portable.
func makePortable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: portable FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK"), "$WORK")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// A stop by signal: the script prints "ready" where it is about to be stopped.
var stopCases = []struct {
	name, source string
	signals      []os.Signal
	code         int
	stderr       []string
}{
	{"in run", `
		local s = require "daqiri".open()
		s:after(0, function() print("ready") end)
		s:run{}
		print("after run")`, []os.Signal{syscall.SIGINT}, 130, []string{"default: ran for", "(Ctrl-C)", "every packet is accounted for"}},
	{"that the script ends itself", `
		local s = require "daqiri".open()
		s:after(0, function() print("ready") end)
		s:run{}
		os.exit(0)`, []os.Signal{syscall.SIGINT}, 0, []string{"default: ran for", "(Ctrl-C)"}},
	{"SIGTERM", `
		local s = require "daqiri".open()
		s:after(0, function() print("ready") end)
		s:run{}
		print("after run")`, []os.Signal{syscall.SIGTERM}, 143, []string{"(SIGTERM)"}},
	{"SIGHUP", `
		local s = require "daqiri".open()
		s:after(0, function() print("ready") end)
		s:run{}
		print("after run")`, []os.Signal{syscall.SIGHUP}, 129, []string{"(SIGHUP)"}},
	{"endless loop", `
		local s = require "daqiri".open()
		s:start()
		print("ready")
		while true do end`, []os.Signal{syscall.SIGINT}, 130, []string{"s.lua:5: the script was still busy", "default: ran for"}},
	{"endless loop in pcall", `
		local s = require "daqiri".open()
		s:start()
		print("ready")
		while true do pcall(function() while true do end end) end`, []os.Signal{syscall.SIGINT}, 130, []string{"default: ran for"}},
	{"endless find", `
		local s = require "daqiri".open()
		s:start()
		print("ready")
		string.find(("a"):rep(90000), ("a-"):rep(30) .. "b")`, []os.Signal{syscall.SIGINT}, 130, []string{"s.lua:5: the script was still busy", "default: ran for"}},
	{"a file that is never written", `
		local s = require "daqiri".open()
		s:start()
		print("ready")
		io.open("fifo"):read()`, []os.Signal{syscall.SIGINT}, 130, []string{"task main did not come back", "default: ran for"}},
	{"second Ctrl-C", `
		print("ready")
		while true do end`, []os.Signal{syscall.SIGINT, syscall.SIGINT}, 130, nil},
}

func TestStop(t *testing.T) {
	program, err := exec.LookPath("daqiri-run")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stopCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "s.lua"), []byte(c.source), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
				t.Fatal(err)
			}
			stdout, stderr, code := stopProgram(t, program, dir, c.signals)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if strings.Contains(c.source, "after run") && stdout != "after run\n" {
				t.Errorf("stdout after the stop: %q", stdout)
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr lacks %q", want)
				}
			}
			if t.Failed() {
				t.Logf("stderr:\n%s", stderr)
			}
		})
	}
}

// stopProgram runs s.lua in dir, sends the signals once it has printed "ready", and returns what it wrote after that
// and its exit code: -1 where it did not end by itself and was killed.
func stopProgram(t *testing.T, program, dir string, signals []os.Signal) (stdout, stderr string, code int) {
	t.Helper()
	cmd, out, errors := harness.StartReady(t, dir, program, "s.lua")
	for i, s := range signals {
		if i > 0 {
			time.Sleep(500 * time.Millisecond) // two signals at once are one
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(out); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	return rest.String(), errors.String(), cmd.ProcessState.ExitCode()
}

// A reader that goes away ends the script in order.
func TestBrokenPipe(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.lua"), []byte(`
		local s = require "daqiri".open()
		s:every(0.001, function() print("line") end)
		s:run{}`), 0o644); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-c", "{ daqiri-run s.lua; echo code $? >&2; } | head -n 1")
	shell.Dir = dir
	var stdout, stderr bytes.Buffer
	shell.Stdout, shell.Stderr = &stdout, &stderr
	if err := shell.Run(); err != nil {
		t.Fatal(err)
	}
	if stdout.String() != "line\n" || !strings.HasSuffix(stderr.String(), "code 141\n") || !strings.Contains(stderr.String(), "default: ran for") {
		t.Errorf("stdout %q, stderr\n%s", stdout.String(), stderr.String())
	}
}

// scripts/network/capture.lua records what this project did not send: every datagram, byte for byte, in order, and the ledger
// counts as many.
func TestCaptureRecordsOthers(t *testing.T) {
	const datagrams = 2000
	program, err := exec.LookPath("daqiri-run")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join(tree.Root, "scripts/network/capture.lua"))
	if err != nil {
		t.Fatal(err)
	}
	address := harness.FreeAddress(t)
	dir := t.TempDir()
	cmd := exec.Command(program, "--summary-json", "summary.json", script, "--listen", address, "--generate=false",
		"--seconds", "120")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DAQIRI_TEST=1", "HOME="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer deadline.Stop()

	defer func() {
		if t.Failed() {
			t.Logf("stderr:\n%s", stderr.String())
		}
	}()
	sent := sendDatagrams(t, address, datagrams, filepath.Join(dir, "captures"))
	time.Sleep(200 * time.Millisecond) // what is in the kernel's buffers still counts
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
		t.Fatalf("ended with %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "captures", "*.pcap"))
	if err != nil || len(files) != 1 {
		t.Fatalf("captures: %q, %v", files, err)
	}
	got := pcapPayloads(t, files[0])
	if !slices.Equal(got, sent) {
		t.Errorf("the capture holds %d datagrams that are not the %d sent", len(got), len(sent))
	}
	var summary struct {
		Sessions []struct {
			Ledger struct {
				Lines []struct {
					Name    string
					In, Out int
				}
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &summary); err != nil {
		t.Fatal(err)
	}
	for _, line := range summary.Sessions[0].Ledger.Lines {
		if (line.Name == "rx_port" || line.Name == "disk") && (line.In != len(sent) || line.Out != len(sent)) {
			t.Errorf("ledger: %s: %d in, %d out; %d were sent", line.Name, line.In, line.Out, len(sent))
		}
	}
}

// sendDatagrams sends n numbered datagrams of different lengths once folder is there, which is when a process listens.
func sendDatagrams(t *testing.T, address string, n int, folder string) []string {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if files, _ := filepath.Glob(filepath.Join(folder, "*.pcap")); len(files) > 0 {
			break
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal("no capture file after 30 s")
		}
	}
	time.Sleep(200 * time.Millisecond) // from the file to the session's start
	c, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var sent []string
	for i := range n {
		text := fmt.Sprintf("%06d:%s", i, strings.Repeat("x", i%1400))
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, text)
		if i%50 == 49 {
			time.Sleep(time.Millisecond)
		}
	}
	return sent
}

// pcapPayloads reads the UDP payloads of a nanosecond pcap of Ethernet frames with IPv4, of either byte order.
func pcapPayloads(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(data) < 24:
		t.Fatalf("%s: %d bytes are no pcap", file, len(data))
	case binary.LittleEndian.Uint32(data) == 0xa1b23c4d:
	case binary.BigEndian.Uint32(data) == 0xa1b23c4d:
		order = binary.BigEndian
	default:
		t.Fatalf("%s: magic number % x is not that of a nanosecond pcap", file, data[:4])
	}
	if link := order.Uint32(data[20:]); link != 1 {
		t.Fatalf("%s: link type %d, want Ethernet", file, link)
	}
	var payloads []string
	const headers = 14 + 20 + 8
	for rest := data[24:]; len(rest) > 0; {
		if len(rest) < 16 || len(rest) < 16+int(order.Uint32(rest[8:])) {
			t.Fatalf("%s: packet %d is cut off", file, len(payloads))
		}
		frame := rest[16 : 16+order.Uint32(rest[8:])]
		rest = rest[16+len(frame):]
		if len(frame) < headers {
			t.Fatalf("%s: packet %d has %d bytes", file, len(payloads), len(frame))
		}
		end := headers - 8 + int(binary.BigEndian.Uint16(frame[38:])) // UDP length
		payloads = append(payloads, string(frame[headers:end]))
	}
	return payloads
}

// The script in README.md runs as it stands, with the configuration there and on the virtual clock.
func TestReadmeScript(t *testing.T) {
	dir := t.TempDir()
	for language, name := range map[string]string{"lua": "record.lua", "yaml": "udp.yaml"} {
		_, text, ok := strings.Cut(tree.Read(t, "README.md"), "```"+language+"\n")
		text, _, ended := strings.Cut(text, "```")
		if !ok || !ended {
			t.Fatalf("README.md has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config, err := filepath.Abs(filepath.Join(tree.Root, "scripts/loop/virtual.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "record.lua", "udp.yaml"}, {"record.lua", "--config", config, "--seconds", "0.01"},
		{"--set", "interfaces.rx_port.socket_config.local_addr=udp://" + harness.FreeAddress(t), "record.lua", "--seconds", "0.1"}} {
		cmd := exec.Command("daqiri-run", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("daqiri-run %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
