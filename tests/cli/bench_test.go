package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// benchRuns are the runs of the scripts behind `daqiri-run bench` that need arguments, a peer or rights. A script without a run
// here has one with --seconds alone.
var benchRuns = []struct {
	script, args string
	prepare      func(b *benchRun)                               // makes what the run needs
	check        func(b *benchRun, got, sent map[string]float64) // beside what all runs show
}{
	{script: "loop", args: "--seconds 0.2"}, {script: "loop", args: "--seconds 0.2 --copy"},
	{script: "loop", args: "--seconds 0.2 --handler=false --batch 32"},
	{script: "modify", args: "--seconds 0.2", check: func(b *benchRun, got, _ map[string]float64) { b.same(got, "lost", 0); b.positive(got, "counted") }},
	{script: "rewrite", args: "--seconds 0.2", check: func(b *benchRun, got, _ map[string]float64) { b.same(got, "rewritten", got["packets"]) }},
	{script: "rewrite", args: "--seconds 0.2 --stage=false"},
	{script: "loop_changes", args: "--queues 10 --seconds 0.2"},
	{script: "share", args: "--seconds 0.2 --size 1024"},
	{script: "share", args: "--seconds 0.2 --size 1024 --path {dir}/live", prepare: withReader, check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "lent")
		read := b.reader()
		b.positive(read, "blocks")
		if read["blocks"] < got["lent"] || read["skipped"] < read["missed"] {
			b.t.Errorf("the script lent %v, the reader got %v", got, read)
		}
	}},
	{script: "start"},
	{script: "udp", args: "--port {port} --size 8000 --seconds 0.2", check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "offered_pps")
		b.same(got, "bytes", 8000*got["packets"])
	}},
	{script: "udp_receive", args: "--listen 127.0.0.1:{port} --size 1024 --seconds 0.1", prepare: senderOf(1024), check: received},
	{script: "latency", args: "--listen 127.0.0.1:{port} --count 20", prepare: senderOf(64), check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "n", "p50")
	}},
	{script: "capture", args: "--listen 127.0.0.1:{port} --size 8000 --dir {dir}", prepare: senderOf(8000), check: func(b *benchRun, got, sent map[string]float64) {
		received(b, got, sent)
		b.fileBytes(24 + int(got["packets"])*(16+42+8000))
	}},
	{script: "tcp", args: "--port {port} --seconds 0.2"},
	{script: "write", args: "--form pcap --size 1000 --bytes 1e6 --dir {dir}", check: wrote(24 + 1000*1016)},
	{script: "write", args: "--form raw --size 1000 --bytes 1e6 --dir {dir}", check: wrote(1e6)},
	{script: "write", args: "--form pcapng --size 1000 --bytes 1e6 --dir {dir}", check: wrote(0)},
	{script: "write", args: "--form blocks --size 1024 --bytes 8e6 --dir {dir}", check: wrote(0)},
	{script: "write", args: "--form blocks --size 8192 --bytes 8e6 --memory gpu --dir {dir}", prepare: onStandIns, check: wrote(0)},
	{script: "replay", args: "--file {capture} --seconds 1"},
	{script: "replay", args: "--file {capture} --to veth0 --seconds 1", prepare: inCable},
	{script: "flows", args: "--seconds 0.2 --most 200", check: func(b *benchRun, got, _ map[string]float64) { b.positive(got, "adds", "adds_by_100", "changes") }},
	{script: "flows", args: "--seconds 0.2 --most 200 --device veth0", prepare: inCable,
		check: func(b *benchRun, got, _ map[string]float64) {
			b.positive(got, "xdp_changes_1", "xdp_changes_100", "xdp_changes_200")
		}},
	{script: "s3", args: "--endpoint {endpoint} --objects 3 --per 8", prepare: withS3, check: func(b *benchRun, got, _ map[string]float64) {
		b.same(got, "objects", 3)
		found, _ := filepath.Glob(filepath.Join(b.s3.Dir, "data/bucket/packets_*"))
		b.same(map[string]float64{"objects on the server": float64(len(found))}, "objects on the server", 3)
	}},
	{script: "gpu_pipeline", args: "--ports {port} --memory host --samples 100 --per 4 --pps 100 --seconds 0.5", check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "blocks", "p50")
		b.same(got, "in_blocks", got["received"]-got["late"]) // a busy machine can be later than a block waits
	}},
	{script: "gpu_pipeline", args: "--ports {port} --samples 100 --per 4 --pps 100 --poll direct --seconds 0.5", prepare: onStandIns, check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "blocks", "p50", "list_p50", "kernel_p50")
		b.same(got, "in_blocks", got["received"]-got["late"]) // a busy machine can be later than a block waits
	}},
	{script: "gpu_pipeline", args: "--ports {port},{port2} --samples 100 --per 4 --pps 50 --seconds 0.5", prepare: onStandIns, check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "blocks", "checked")
		b.same(got, "in_blocks", got["received"]-got["late"]) // a busy machine can be later than a block waits
	}},
	{script: "gpu_pipeline", args: "--workload gemm --ports {port} --samples 100 --per 4 --pps 100 --seconds 0.5", prepare: onStandIns, check: worked},
	{script: "gpu_pipeline", args: "--workload fft --ports {port} --samples 128 --per 4 --pps 100 --seconds 0.5", prepare: onStandIns, check: worked},
	{script: "gpu_pipeline", args: "--ports {port} --gpu=false --seconds 0.2"},
	{script: "gpu_pipeline", args: "--ports {port} --gpu=false --pps 1000 --timeout 0 --seconds 0.2", check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "n", "p50", "p99")
	}},
	{script: "gn_rings", args: "--what echo --seconds 0.5", check: func(b *benchRun, got, _ map[string]float64) { b.positive(got, "n", "p50", "p999") }},
	{script: "gn_rings", args: "--what post --rings 2 --proxies 2 --seconds 0.5", check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "posted", "descriptors")
		b.same(got, "refused", 0)
	}},
	{script: "gn_rings", args: "--what post --bytes 4096 --seconds 0.5", check: func(b *benchRun, got, _ map[string]float64) {
		b.same(got, "bytes", 4096*got["descriptors"])
	}},
	{script: "gn_engine", args: "--what send --rings 2 --seconds 0.5", check: func(b *benchRun, got, _ map[string]float64) {
		b.positive(got, "packets", "least_share")
	}},
	{script: "gn_engine", args: "--what receive --read --seconds 0.5", check: func(b *benchRun, got, _ map[string]float64) { b.positive(got, "packets") }},
	{script: "gn_engine", args: "--what receive --by cpu --seconds 0.5", check: func(b *benchRun, got, _ map[string]float64) { b.positive(got, "packets") }},
	{script: "dpdk", args: "--a vdev:net_null0 --seconds 0.2", prepare: withDPDK},
	{script: "dpdk", args: "--a vdev:net_null0 --handler=false --seconds 0.2", prepare: withDPDK},
	{script: "xdp", args: "--left left --right right --count 64 --seconds 0.3", prepare: withRing},
}

// benchRun is one run of a script.
type benchRun struct {
	t        *testing.T
	program  string
	values   map[string]string // of {names} in its arguments
	wrap     []string          // a command that it runs in
	env      []string
	sendSize int // of datagrams that a plain sender sends once it is ready; 0: none are sent
	silent   func() float64
	reader   func() map[string]float64 // waits for the reader's end and returns its counts
	s3       *harness.S3Server
}

// TestBenchScripts runs every script behind `daqiri-run bench`, and checks what it measured from outside where there is an
// outside: files, objects, a sender's count, the device's counters.
func TestBenchScripts(t *testing.T) {
	program := harness.Built(t)
	files, err := filepath.Glob(filepath.Join(tree.Root, "cmd/daqiri-bench/internal/bench/scripts/*.lua"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	listed := map[string]bool{"rdma": true} // tests/vm runs it, where RDMA devices are
	for _, r := range benchRuns {
		listed[r.script] = true
		t.Run(r.script+" "+r.args, func(t *testing.T) {
			b := &benchRun{t: t, program: program, values: map[string]string{"dir": t.TempDir(), "port": require.Port(t), "port2": require.Port(t), "capture": shippedCapture(t)}}
			if r.prepare != nil {
				r.prepare(b)
			}
			got, sent := b.run(r.script, r.args)
			if r.check != nil {
				r.check(b, got, sent)
			}
		})
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		if !listed[name] {
			t.Run(name, func(t *testing.T) { (&benchRun{t: t, program: program}).run(name, "--seconds 0.2") })
		}
	}
}

// run runs the script and returns the figures that it and its sender printed. What counts has to be above 0, and what was
// dropped 0.
func (b *benchRun) run(script, args string) (got, sent map[string]float64) {
	b.t.Helper()
	path, err := filepath.Abs(filepath.Join(tree.Root, "cmd/daqiri-bench/internal/bench/scripts", script+".lua"))
	if err != nil {
		b.t.Fatal(err)
	}
	var pairs []string
	for name, value := range b.values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	args = strings.NewReplacer(pairs...).Replace(args) // at once: a folder's name has the test's, with its braces
	argv := append(append(b.wrap, b.program, "run", "--cores", "auto", "--summary", "none", path), strings.Fields(args)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), b.env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if b.sendSize > 0 {
		lines.Scan()
		sent = b.send()
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if err := cmd.Wait(); err != nil {
		b.t.Fatalf("%v: %v\n%s", argv, err, stderr.String())
	}
	if b.silent != nil {
		got = map[string]float64{"packets": b.silent()}
	} else if err := json.Unmarshal([]byte(last), &got); err != nil {
		b.t.Fatalf("%v in %q\n%s", err, last, stderr.String())
	}
	for name, v := range got {
		switch name {
		case "packets", "bytes", "seconds", "cpu_seconds":
			b.positive(got, name)
		case "dropped":
			b.same(got, name, 0)
		case "missing", "lost", "gaps": // the kernel's, on a busy machine
			if v < 0 {
				b.t.Errorf("%s is %v", name, v)
			}
		}
	}
	return got, sent
}

// send has the plain sender send to the script's port.
func (b *benchRun) send() map[string]float64 {
	b.t.Helper()
	out, err := exec.Command(harness.BuiltBench(b.t), "peer", "udp-send", "--port", b.values["port"], "--size", strconv.Itoa(b.sendSize),
		"--pps", "200", "--for", "1s", "--no-marks").Output()
	var sent map[string]float64
	if err == nil {
		err = json.Unmarshal(out, &sent)
	}
	if err != nil {
		b.t.Fatalf("sender: %v: %s", err, out)
	}
	return sent
}

func (b *benchRun) positive(got map[string]float64, names ...string) {
	b.t.Helper()
	for _, name := range names {
		if got[name] <= 0 {
			b.t.Errorf("%s is %v", name, got[name])
		}
	}
}

func (b *benchRun) same(got map[string]float64, name string, want float64) {
	b.t.Helper()
	if v, ok := got[name]; !ok || v != want {
		b.t.Errorf("%s is %v, want %v", name, v, want)
	}
}

// fileBytes compares what lies in the run's folder, manifests aside; 0: any.
func (b *benchRun) fileBytes(want int) {
	b.t.Helper()
	sum := 0
	files, _ := os.ReadDir(b.values["dir"])
	for _, f := range files {
		if info, err := f.Info(); err == nil && filepath.Ext(f.Name()) != ".json" && filepath.Ext(f.Name()) != ".jsonl" {
			sum += int(info.Size())
		}
	}
	if want > 0 && sum != want || sum == 0 {
		b.t.Errorf("%d bytes are in the folder, want %d", sum, want)
	}
}

func wrote(bytes int) func(*benchRun, map[string]float64, map[string]float64) {
	return func(b *benchRun, _, _ map[string]float64) { b.fileBytes(bytes) }
}

// received: a receiver gets what was sent; less where this machine was busy for so long that it took the sender for done.
func received(b *benchRun, got, sent map[string]float64) {
	if got["received"] <= 0 || got["received"] > sent["packets"] {
		b.t.Errorf("%v of %v received", got["received"], sent["packets"])
	}
}

// worked: what a library made of the last block was what the script reckons.
func worked(b *benchRun, got, _ map[string]float64) { b.positive(got, "blocks", "checked") }

func senderOf(size int) func(*benchRun) { return func(b *benchRun) { b.sendSize = size } }

// withReader attaches a reader to the script's stream.
func withReader(b *benchRun) {
	cmd := exec.Command(harness.BuiltBench(b.t), "peer", "share", "--path", filepath.Join(b.values["dir"], "live"), "--for", "1m")
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = cmd.Process.Kill() })
	b.reader = func() (read map[string]float64) {
		if err := errors.Join(cmd.Wait(), json.Unmarshal([]byte(out.String()), &read)); err != nil {
			b.t.Fatalf("reader: %v: %s%s", err, &out, &stderr)
		}
		return read
	}
}

// inCable runs the script at the sending end of a cable.
func inCable(b *benchRun) {
	harness.Need(b.t, "xdp")
	c := harness.NewCable(b.t)
	b.wrap = []string{"ip", "netns", "exec", c.Send}
}

// withRing runs the script where both ends of a pair are; it prints nothing, and the devices count.
func withRing(b *benchRun) {
	harness.Need(b.t, "xdp")
	c := harness.NewCable(b.t)
	c.Host("ip", "-n", c.Send, "link", "add", "left", "type", "veth", "peer", "name", "right")
	c.Host("ip", "-n", c.Send, "link", "set", "left", "up")
	c.Host("ip", "-n", c.Send, "link", "set", "right", "up")
	b.wrap = []string{"ip", "netns", "exec", c.Send}
	b.silent = func() float64 {
		n, _ := strconv.ParseFloat(strings.TrimSpace(c.In(c.Send, "cat", "/sys/class/net/left/statistics/rx_packets")), 64)
		return max(0, n-10*64) // round and round
	}
}

// onStandIns runs the script on a GPU that every machine has.
func onStandIns(b *benchRun) {
	all, err := gpu.Variables()
	if err != nil {
		b.t.Fatal(err)
	}
	b.env = []string{"XDG_CACHE_HOME=" + b.t.TempDir()}
	for name, value := range all {
		b.env = append(b.env, name+"="+value)
	}
}

func withDPDK(b *benchRun) {
	harness.Need(b.t, "dpdk")
	lib, err := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.env = []string{"DAQIRI_DPDK=" + lib}
}

func withS3(b *benchRun) {
	b.s3 = harness.NewS3Server(b.t)
	b.values["endpoint"] = "http://" + b.s3.Address
	b.env = []string{"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=" + harness.S3Secret}
}

// shippedCapture is a capture of the golden scripts.
func shippedCapture(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(tree.Root, "scripts/network/capture.files.d/captures/*.pcap"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}
