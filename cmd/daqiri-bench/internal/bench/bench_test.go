package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain makes the test binary the program that is measured, which becomes a shell: scripts take 2 s for what baseline
// loops do in 1. The PATH that the run passes on selects how it behaves.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "--port" {
		serveS3(os.Args[2], os.Args[len(os.Args)-1])
	}
	if len(os.Args) < 2 || os.Args[1] != "run" && os.Args[1] != "peer" {
		os.Exit(m.Run())
	}
	seconds := map[string]int{"run": 2, "peer": 1}[os.Args[1]]
	line := fmt.Sprintf(`echo '{"packets":6e6,"bursts":1e6,"bytes":1e9,"seconds":%d,"cpu_seconds":%[1]d,"bytes_per_second":1e9,"allocations":4e6}'`, seconds)
	mode, where, _ := strings.Cut(os.Getenv("PATH"), "=")
	switch mode {
	case "fail":
		line = "echo script: no such verb >&2; exit 1"
	case "mute":
		line = "exit 0"
	case "hang":
		line = "echo $$ >" + where + "; PATH=/usr/bin:/bin exec sleep 60"
	}
	panic(syscall.Exec("/bin/sh", []string{"sh", "-c", line}, os.Environ()))
}

// serveS3 is what an S3 server looks like from outside: it listens, and its folder has objects. It does not return.
func serveS3(address, dir string) {
	if os.Getenv("PATH") == "refuse" {
		fmt.Println("no such folder")
		os.Exit(1)
	}
	if os.Getenv("PATH") != "empty" {
		object := filepath.Join(dir, "bucket", "packets_0")
		if err := errors.Join(os.WriteFile(object, nil, 0o644), os.Truncate(object, s3Probe*s3Object)); err != nil {
			panic(err)
		}
	}
	l, err := net.Listen("tcp", address)
	for err == nil {
		_, err = l.Accept()
	}
	fmt.Println(err)
	os.Exit(1)
}

// program is a bench whose program is this test.
func program(t *testing.T, mode string) *bench {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{opts: Options{Exe: exe, Peer: exe, SearchPath: mode, TempDir: t.TempDir()}, dir: t.TempDir()}
}

func named(t *testing.T, name string) Case {
	t.Helper()
	chosen, err := choose([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return chosen[0]
}

func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases {
		if c.About == "" || c.unit == "" || c.seconds <= 0 || c.run == nil || seen[c.Name] {
			t.Errorf("case %q: not whole, or there twice", c.Name)
		}
		seen[c.Name] = true
	}
	for _, want := range []string{"loop_1024", "loop_copy", "script_handler", "script_modify", "rewrite", "gaps", "udp_1024", "udp_8000", "udp_65000",
		"udp_plain_1024", "udp_plain_8000", "tcp", "write_pcap_1024", "write_pcap_8000", "write_pcapng_1024", "write_pcapng_8000", "write_raw_1024", "write_raw_8000", "write_blocks_1024", "write_blocks_8000",
		"reorder_256", "reorder_1024", "reorder_4096", "reorder_8192", "share", "convert", "convert_12", "s3",
		"loop_flows_2", "loop_flows_8", "loop_flows_64", "loop_queues", "loop_changes", "udp_pairs", "column", "place", "heaps_1024", "heaps_8192",
		"capture_pcap", "xdp", "replay", "replay_veth", "replay_gaps", "latency", "pacing", "start"} {
		if !seen[want] {
			t.Errorf("no case %s", want)
		}
	}
	for _, c := range []struct{ name, near string }{{"lop_1024", "loop_1024"}, {"tpc", "tcp"}, {"nothing of the kind", ""}} {
		var unknown *UnknownCaseError
		if _, err := choose([]string{"start", c.name}); !errors.As(err, &unknown) || unknown.Name != c.name || unknown.Near != c.near {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		list []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 2}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{5, 1, 100, 4, 2}, 4}} {
		if got := median(c.list); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.list, got, c.want)
		}
	}
}

func TestCompare(t *testing.T) {
	var order strings.Builder
	turn := 0.0
	as := func(who string, value func() float64) side {
		return func(_ context.Context, d time.Duration) (sample, error) {
			if d != time.Second {
				t.Errorf("%s was given %v of 10 s", who, d)
			}
			order.WriteString(who)
			return sample{value(), figures{"lost": turn}}, nil
		}
	}
	r := Result{Name: "x", length: 10 * time.Second}
	r.compareWith("somebody")
	ours := as("o", func() float64 { turn++; return turn })
	if err := r.compare(context.Background(), ours, as("p", func() float64 { return 2 })); err != nil {
		t.Fatal(err)
	}
	if got := order.String(); got != "oppooppoop" {
		t.Errorf("order %s", got)
	}
	if *r.Value != 3 || *r.PeerValue != 2 || *r.Ratio != 1.5 || *r.RatioMin != 0.5 || *r.RatioMax != 2.5 || len(r.Pairs) != pairCount {
		t.Errorf("%+v", r)
	}
	if r.Figures["lost"] != 3 || r.Figures["peer_lost"] == 0 {
		t.Errorf("figures %v", r.Figures)
	}
}

// TestMissingPeer: what has no peer is null, not 0 and not absent.
func TestMissingPeer(t *testing.T) {
	r := program(t, t.TempDir()).run(context.Background(), named(t, "tcp"))
	data, err := json.Marshal(r)
	if err != nil || r.Error != "" {
		t.Fatal(err, r.Error)
	}
	for _, want := range []string{`"value":4,`, `"peer":null`, `"peer_value":null`, `"ratio":null`, `"note":"iperf3 is not installed"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
	}
}

func TestProgram(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ name, mode, fault string }{
		{"loop_1024", "", ""},
		{"udp_8000", "", ""},
		{"loop_1024", "fail", "script: no such verb"},
		{"loop_1024", "mute", "ended without a result"},
	} {
		r := program(t, c.mode).run(ctx, named(t, c.name))
		switch {
		case c.fault != "":
			if !strings.Contains(r.Error, c.fault) || !strings.HasPrefix(r.Error, "case loop_1024: ours: ") || r.Value != nil {
				t.Errorf("%s: error %q, want %q", c.mode, r.Error, c.fault)
			}
		case r.Error != "" || r.Ratio == nil || *r.Ratio != 0.5:
			t.Errorf("%s: %+v, want half of the peer's rate", c.name, r)
		}
	}
	convert := program(t, "").run(ctx, named(t, "convert"))
	if convert.Error != "" || *convert.Value != 1 || *convert.Ratio != 1 || convert.Figures["int4_fp32"] != 1 || convert.Figures["peer_copy"] != 1 {
		t.Errorf("%+v, want 1 GB of all", convert)
	}
	packed := program(t, "").run(ctx, named(t, "convert_12"))
	if packed.Error != "" || math.Abs(*packed.Value-32.0/44) > 1e-9 || math.Abs(*packed.Ratio-48.0/44) > 1e-9 {
		t.Errorf("%+v, want the bytes out of 1 GB", packed)
	}
	handler := program(t, "").run(ctx, named(t, "script_handler"))
	if handler.Error != "" || *handler.Value != 0 || handler.Figures["allocations"] != 4 || handler.Better != "lower" {
		t.Errorf("%+v, want no difference and 4 allocations", handler)
	}
}

// TestS3 has a server that the case starts, in a folder that it removes.
func TestS3(t *testing.T) {
	for _, c := range []struct{ mode, server, fault, skipped string }{
		{"", "self", "", ""},
		{"fail", "self", "script: no such verb", ""},
		{"refuse", "self", "ended before it listened on 127.0.0.1:", ""},
		{"empty", "self", "0 bytes are in", ""},
		{"", "nowhere", "", "needs the S3 server versitygw"},
		{"", "", "", "needs the S3 server versitygw"},
	} {
		b := program(t, c.mode)
		b.opts.Seconds = 1e-3
		if b.opts.S3Server = c.server; c.server == "self" {
			b.opts.S3Server = b.opts.Exe
		}
		r := b.run(t.Context(), named(t, "s3"))
		switch {
		case c.fault != "" || c.skipped != "":
			if !strings.Contains(r.Error, c.fault) || !strings.Contains(r.Skipped, c.skipped) || (r.Error == "") != (c.fault == "") || r.Value != nil {
				t.Errorf("%+v: error %q, skipped %q", c, r.Error, r.Skipped)
			}
		case r.Error != "" || r.Ratio == nil || *r.Ratio != 0.5 || r.Figures["cpu_seconds_per_gb"] != 2:
			t.Errorf("%+v, want half of the peer's rate", r)
		}
		if left, _ := filepath.Glob(filepath.Join(b.dir, "s3-*")); len(left) != 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// TestRun ends a run while a program hangs: it is killed, and its folder is gone.
func TestRun(t *testing.T) {
	b, folder := program(t, ""), t.TempDir()
	pidFile := filepath.Join(t.TempDir(), "pid")
	opts := Options{Exe: b.opts.Exe, Peer: b.opts.Exe, SearchPath: "hang=" + pidFile, TempDir: folder, Cases: []string{"start"}}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stopped by the test")
	pid := 0
	go func() {
		for pid == 0 {
			text, _ := os.ReadFile(pidFile)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			time.Sleep(time.Millisecond)
		}
		cancel(stop)
	}()
	if _, err := Run(ctx, opts); !errors.Is(err, stop) {
		t.Errorf("ended with %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", pid, err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestReport(t *testing.T) {
	skip := Case{Name: "veth", unit: "Gbit/s", seconds: 1, run: func(context.Context, *bench, *Result) error { return errUnavailable{"needs root"} }}
	broken := Case{Name: "broken", unit: "ms", lower: true, seconds: 1, run: func(context.Context, *bench, *Result) error { return errors.New("no") }}
	b := program(t, "")
	report := Report{Schema: Schema, Host: readHost("1.2"), Cases: []Result{b.run(t.Context(), skip)}}
	if report.Failed() {
		t.Error("a skipped case has not failed")
	}
	report.Cases = append(report.Cases, b.run(t.Context(), broken), b.run(t.Context(), named(t, "loop_copy")))
	if !report.Failed() {
		t.Error("a case failed")
	}
	data, err := report.JSON()
	var shape struct {
		Schema int
		Host   map[string]any
		Cases  []map[string]any
	}
	if err != nil || json.Unmarshal(data, &shape) != nil || shape.Schema != 1 || len(shape.Cases) != 3 {
		t.Fatalf("%v\n%s", err, data)
	}
	for _, key := range []string{"cpus", "model", "kernel", "memory_bytes", "version"} {
		if v, ok := shape.Host[key]; !ok || v == "" || v == 0.0 {
			t.Errorf("host: %s is %v", key, v)
		}
	}
	for _, c := range shape.Cases {
		for _, key := range []string{"name", "value", "unit", "better", "peer", "peer_value", "ratio"} {
			if _, ok := c[key]; !ok {
				t.Errorf("case %v: no %s", c["name"], key)
			}
		}
	}
	var text []string
	for _, r := range report.Cases {
		text = append(text, r.Text())
	}
	if want := []string{"veth            skipped: needs root\n", "broken          failed: case broken: no\n"}; !slices.Equal(text[:2], want) {
		t.Errorf("text %q", text[:2])
	}
	if !strings.Contains(text[2], "0.5 (0.50 to 0.50)") && !strings.Contains(text[2], "0.50 (0.50 to 0.50)") {
		t.Errorf("text %q", text[2])
	}
}

// TestGapErrors compares captures whose gaps are known, one of them without its last frame.
func TestGapErrors(t *testing.T) {
	b, want := &bench{dir: t.TempDir()}, []int64{0, 1000, 2e9, 2e9 + 5}
	for _, tt := range []struct {
		n      int
		off    int64 // of each gap, ns
		median float64
		fault  string
	}{{4, 0, 0, ""}, {4, 7000, 7, ""}, {3, 0, 0, "3 of 4 frames arrived"}} {
		path, err := b.captureOf(tt.n, func(k int) int64 { return want[k] + int64(k)*tt.off })
		if err != nil {
			t.Fatal(err)
		}
		s, err := gapErrors(want, path)
		if output := fmt.Sprint(err); (err != nil || tt.fault != "") && output != tt.fault || s.value != tt.median || s.more["max"] != tt.median {
			t.Errorf("%+v: %+v, %v", tt, s, err)
		}
	}
}
