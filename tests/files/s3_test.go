package files

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// s3Script uploads numbered packets of `size` bytes: its number stands at the start of each payload.
const s3Script = `
local daqiri = require "daqiri"
local args = daqiri.args{ endpoint = "", bucket = "bucket", per = 0, bytes = 0, n = 1000, size = 1000, pps = 1e6, policy = "wait",
  staging = 256e6, uploads = 8, attempts = 10, end_timeout = 30, object_timeout = 300, checksum = "crc32c", key = "key", secret = "a-secret" }
local s = daqiri.open("s3.yaml")
local w = s:write_s3{ name = "up", bucket = args.bucket, prefix = "run", endpoint = args.endpoint, policy = args.policy,
  packets_per_object = args.per > 0 and args.per or nil, bytes_per_object = args.bytes > 0 and args.bytes or nil,
  staging = args.staging, uploads = args.uploads, attempts = args.attempts, end_timeout = args.end_timeout, object_timeout = args.object_timeout, checksum = args.checksum,
  access_key = args.key, secret_key = args.secret }
s:pipe(s:rx_queue("port"), w)
local tx = s:tx_queue("port")
tx:pace{ pps = args.pps }
tx:transmit{ count = args.n, template = tx:template{ payload_bytes = args.size - 42,
  vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } } }
s:after(0.05, function() print("moving") end)
s:run{ packets = args.n }
`

const s3Config = harness.LoopHead + harness.LoopTail

// numbers are those of the packets of so many bytes in an object.
func numbers(t *testing.T, object []byte, size int) []uint32 {
	t.Helper()
	if len(object)%size != 0 {
		t.Fatalf("an object of %d bytes: packets have %d", len(object), size)
	}
	var out []uint32
	for ; len(object) > 0; object = object[size:] {
		out = append(out, binary.BigEndian.Uint32(object[42:]))
	}
	return out
}

// s3Run is a run of the program: exit code, summary and what it reports of the writer.
type s3Run struct {
	code   int
	stderr string
	in     uint64
	out    uint64
	lost   map[string]uint64
	extra  map[string]uint64
	took   time.Duration
}

// upload runs the script; meanwhile, where it is given, is called once packets move.
func upload(t *testing.T, endpoint string, meanwhile func(*os.Process), args ...string) s3Run {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"s3.lua": s3Script, "s3.yaml": s3Config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := harness.Built(t)
	cmd := exec.Command(program, append([]string{"--summary", "full", "--summary-json", "s.json", "s3.lua", "--endpoint", endpoint}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DAQIRI_TEST=1", "HOME="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer deadline.Stop()
	if meanwhile != nil {
		if _, err := io.ReadFull(stdout, make([]byte, len("moving\n"))); err == nil {
			meanwhile(cmd.Process)
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait()
	r := s3Run{code: cmd.ProcessState.ExitCode(), stderr: stderr.String(), took: time.Since(from)}
	data, err := os.ReadFile(filepath.Join(dir, "s.json"))
	if err == nil {
		r.read(t, data)
	}
	for name, text := range map[string]string{"stderr": r.stderr, "the summary": string(data)} {
		if strings.Contains(text, harness.S3Secret) {
			t.Errorf("%s has the secret key", name)
		}
	}
	return r
}

func (r *s3Run) read(t *testing.T, data []byte) {
	t.Helper()
	var report struct {
		Sessions []struct{ Ledger harness.LedgerJSON }
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	for _, s := range report.Sessions {
		for _, l := range s.Ledger.Lines {
			if l.Name != "up" {
				continue
			}
			r.in, r.out, r.lost, r.extra = l.In, l.Out, l.Dropped, l.Extra
			sum := l.Out + l.Held
			for _, n := range l.Dropped {
				sum += n
			}
			if sum != l.In || l.Held != 0 {
				t.Errorf("in %d, out %d, held %d, dropped %v: they don't add up", l.In, l.Out, l.Held, l.Dropped)
			}
		}
	}
}

// TestS3Shapes compares objects of every shape, on the server's disk, with the packets that were sent.
func TestS3Shapes(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		n, size int
		objects []int // packets in each; the last one stands for all that follow
	}{
		"a packet each":    {[]string{"--n", "300"}, 300, 1000, []int{1}},
		"256 packets each": {[]string{"--n", "1000", "--per", "256"}, 1000, 1000, []int{256, 256, 256, 232}},
		"by bytes":         {[]string{"--n", "1000", "--bytes", "99999"}, 1000, 1000, []int{99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 10}},
		"in parts":         {[]string{"--n", "20000", "--per", "20000", "--size", "1471"}, 20000, 1471, []int{20000}},
		"md5":              {[]string{"--n", "20000", "--per", "15000", "--checksum", "md5"}, 20000, 1000, []int{15000, 5000}},
		"small staging":    {[]string{"--n", "40000", "--per", "9000", "--staging", "16777216"}, 40000, 1000, []int{9000, 9000, 9000, 9000, 4000}},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.NewS3Server(t)
			r := upload(t, "http://"+s.Address, nil, c.args...)
			if r.code != 0 || r.out != uint64(c.n) {
				t.Fatalf("exit code %d, %d packets uploaded\n%s", r.code, r.out, r.stderr)
			}
			next := uint32(0)
			all := s.Objects()
			for i, o := range all {
				got := numbers(t, o, c.size)
				if want := c.objects[min(i, len(c.objects)-1)]; len(got) != want {
					t.Errorf("object %d has %d packets, not %d", i, len(got), want)
				}
				for _, n := range got {
					if n != next {
						t.Fatalf("object %d: packet %d where %d should be", i, n, next)
					}
					next++
				}
			}
			if int(next) != c.n || r.extra["objects"] != uint64(len(all)) {
				t.Errorf("%d packets in %d objects; the ledger counts %d objects", next, len(all), r.extra["objects"])
			}
		})
	}
}

// TestS3Refused: what can't work ends the run before packets move, and names the remedy.
func TestS3Refused(t *testing.T) {
	s := harness.NewS3Server(t)
	endpoint := "http://" + s.Address
	if r := upload(t, endpoint, nil, "--n", "1"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for _, c := range []struct{ key, value, want string }{
		{"bucket", "nobody", "make bucket nobody at " + endpoint},
		{"secret", "wrong", "the secret key is not the one that " + endpoint},
		{"key", "nobody", "access key"},
		{"per", "7", "bucket bucket has objects of this name already: run_0; hint: choose another prefix"},
	} {
		if r := upload(t, endpoint, nil, "--"+c.key, c.value); r.code != 4 || !strings.Contains(r.stderr, "writer up: ") || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit code %d and\n%s", c.key, r.code, r.stderr)
		}
	}
	s.Kill()
	if r := upload(t, endpoint, nil); r.code != 4 || !strings.Contains(r.stderr, "connection refused") {
		t.Errorf("no server: exit code %d and\n%s", r.code, r.stderr)
	}
}

// TestS3Restart kills the server in mid-run and starts it again: every packet is there in the end.
func TestS3Restart(t *testing.T) {
	s := harness.NewS3Server(t)
	const n = 40000
	r := upload(t, "http://"+s.Address, func(*os.Process) {
		s.Kill()
		time.Sleep(300 * time.Millisecond)
		s.Start()
	}, "--n", strconv.Itoa(n), "--per", "64", "--pps", "40000")
	if r.code != 0 || r.out != n || r.extra["retries"] == 0 {
		t.Fatalf("exit code %d, %d uploaded, %d retries\n%s", r.code, r.out, r.extra["retries"], r.stderr)
	}
	next := uint32(0)
	for _, o := range s.Objects() {
		for _, k := range numbers(t, o, 1000) {
			if k != next {
				t.Fatalf("packet %d where %d should be", k, next)
			}
			next++
		}
	}
	if next != n {
		t.Errorf("%d packets in objects", next)
	}
}

// TestS3Gone kills the server for good: what is not there is counted, and the exit code and the summary say so.
func TestS3Gone(t *testing.T) {
	s := harness.NewS3Server(t)
	r := upload(t, "http://"+s.Address, func(*os.Process) { s.Kill() }, "--n", "20000", "--per", "64", "--pps", "40000", "--end_timeout", "1")
	there := 0
	for _, o := range s.Objects() {
		there += len(numbers(t, o, 1000))
	}
	const want = "it was not uploaded in the 1s that the end waits" // and not until object_timeout, which is longer
	if r.code != 6 || r.lost["write_error"] == 0 || !strings.Contains(r.stderr, "error: writer up: object run_") || !strings.Contains(r.stderr, want) {
		t.Errorf("exit code %d, lost %v\n%s", r.code, r.lost, r.stderr)
	}
	if int(r.out) > there || r.in != 20000 { // an object can be there whose answer was lost
		t.Errorf("in %d, out %d, and on the server's disk %d", r.in, r.out, there)
	}
}

// TestS3Slow has a slow way to the server and little staging memory: one policy loses packets, counted, the other none.
func TestS3Slow(t *testing.T) {
	s := harness.NewS3Server(t)
	slow := throttle(t, s.Address, 20<<20)
	const n = 40000 // 40 MB: more than the staging memory takes
	r := upload(t, "http://"+slow, nil, "--n", strconv.Itoa(n), "--per", "256", "--staging", "16777216", "--policy", "drop")
	there := 0
	for _, o := range s.Objects() {
		there += len(numbers(t, o, 1000))
	}
	if r.code != 0 || r.lost["behind"] == 0 || int(r.out) != there || r.in != n {
		t.Errorf("drop: exit code %d, in %d, out %d, on the disk %d, lost %v\n%s", r.code, r.in, r.out, there, r.lost, r.stderr)
	}
	s = harness.NewS3Server(t)
	slow = throttle(t, s.Address, 20<<20)
	r = upload(t, "http://"+slow, nil, "--n", strconv.Itoa(n), "--per", "256", "--staging", "16777216", "--pps", "100000")
	if r.code != 0 || r.out != r.in || len(r.lost) != 0 || r.extra["stall_ns"] == 0 {
		t.Errorf("wait: exit code %d, in %d, out %d, lost %v, stall %d ns\n%s", r.code, r.in, r.out, r.lost, r.extra["stall_ns"], r.stderr)
	}
}

// TestS3Hanging has a server that takes requests and answers none: every object is given up in its time, and counted.
func TestS3Hanging(t *testing.T) {
	s := harness.NewS3Server(t)
	hang := func(*os.Process) { _ = s.Cmd.Process.Signal(syscall.SIGSTOP) }
	r := upload(t, "http://"+s.Address, hang, "--n", "40000", "--per", "5000", "--pps", "40000", "--object_timeout", "0.4", "--end_timeout", "10")
	want := "http://" + s.Address + " did not take it in 400ms"
	if r.code != 6 || r.lost["write_error"] == 0 || !strings.Contains(r.stderr, "error: writer up: object run_") || !strings.Contains(r.stderr, want) {
		t.Errorf("exit code %d, lost %v\n%s", r.code, r.lost, r.stderr)
	}
	if r.in != 40000 || r.out+r.lost["write_error"] != r.in {
		t.Errorf("in %d, out %d, lost %v", r.in, r.out, r.lost)
	}
}

// s3Virtual checks what it handed over as soon as time has moved on: it is there, each time.
const s3Virtual = `
local daqiri = require "daqiri"
local args = daqiri.args{ endpoint = "" }
local s = daqiri.open(((io.open("s3.yaml"):read("*a")):gsub('loopback: "sw"', 'loopback: { mode: sw, clock: virtual }')))
local w = s:write_s3{ name = "up", bucket = "bucket", endpoint = args.endpoint, access_key = "key", secret_key = "a-secret" }
local tx, rx = s:tx_queue("port"), s:rx_queue("port")
s:start()
local from = s:clock()
for i = 0, 19 do
  rx:get_burst{ timeout_us = 0 }
  local b = tx:alloc(5)
  b:set_lengths(100)
  assert(tx:send(b))
  local h = assert(w:write(assert(rx:get_burst{ timeout_us = 1e6 }), { prefix = "run/" .. i, packet_data_offset = 60 }))
  daqiri.sleep(1e-6)
  assert(h:poll() and h.completed_packets == 5 and h.bytes_written == 200, i .. ": " .. h.completed_packets)
end
assert(s:clock() - from < 25e6, "time went on while uploads ran")
`

// TestS3Virtual has a slow way to the store on the virtual clock: time stands still while objects are on their way.
func TestS3Virtual(t *testing.T) {
	s, dir := harness.NewS3Server(t), t.TempDir()
	for name, text := range map[string]string{"s3.lua": s3Virtual, "s3.yaml": s3Config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(harness.Built(t), "s3.lua", "--endpoint", "http://"+throttle(t, s.Address, 10<<20))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if found, _ := filepath.Glob(filepath.Join(s.Dir, "data/bucket/run/*_*")); len(found) != 100 {
		t.Errorf("%d objects", len(found))
	}
}

// TestS3API runs the script that tests the reference's functions against the server, and checks what is on its disk.
func TestS3API(t *testing.T) {
	program := harness.Built(t)
	root, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	for _, clock := range []string{"real", "virtual"} {
		s := harness.NewS3Server(t)
		cmd := exec.Command(program, "stdlib/api/testdata/s3.lua", "--endpoint", "http://"+s.Address, "--clock", clock)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "DAQIRI_PATH="+filepath.Join(root, "bindings/suite/testdata"),
			"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY="+harness.S3Secret)
		var output strings.Builder
		cmd.Stderr = &output
		out, err := cmd.Output()
		n, bad := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil || bad != nil || n < 1 {
			t.Fatalf("%s: %v: %s\n%s", clock, err, out, output.String())
		}
		want := map[string]string{}
		for i := range 3 {
			want[fmt.Sprintf("day/one_%d", i)] = strings.Repeat("p", 20)
			want[fmt.Sprintf("two_%d", i)] = ""
			if i < 2 {
				want[fmt.Sprintf("methods_%d", i)] = "pp"
				want[fmt.Sprintf("whole_%d", i)] = "..."
			}
			for k := range n {
				want[fmt.Sprintf("many%d_%d", k, i)] = "..." // a frame of 62 bytes
			}
		}
		for name, text := range want {
			data, err := os.ReadFile(filepath.Join(s.Dir, "data/bucket", name))
			if err != nil || (text != "..." && string(data) != text) || (text == "..." && len(data) != 62) {
				t.Errorf("%s: object %s has %q, %v", clock, name, data, err)
			}
		}
	}
}

// TestS3Blocks has blocks of reordered packets as objects, which are block files: a reader that knows the page on the
// format compares every bit and byte.
func TestS3Blocks(t *testing.T) {
	harness.Need(t, "scapy") // for python3
	s, dir := harness.NewS3Server(t), t.TempDir()
	cmd := harness.BlocksRun(t, harness.Built(t), dir, "--endpoint", "http://"+s.Address, "--options", `{"packets_per_object": 60}`, "--pcap", "seen")
	var output strings.Builder
	cmd.Stderr = &output
	out, err := cmd.Output()
	f := map[string]int{}
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil || !strings.Contains(output.String(), "every packet is accounted for") || !strings.Contains(output.String(), "disk uploaded 400 packets") {
		t.Fatalf("%v: %s\n%s", err, out, output.String())
	}
	objects := s.Objects()
	files := make([]string, len(objects))
	for i, o := range objects {
		files[i] = fmt.Sprintf("%06d.dqb", i)
		if err := os.WriteFile(filepath.Join(dir, files[i]), o, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blocks, packets, holes := harness.ReadBlocks(t, dir, "seen.pcap", files)
	if len(objects) != 7 || blocks != 400 || blocks != f["written"] || holes != f["missing"] || holes < 100 {
		t.Errorf("%d objects, %d blocks, %d packets, %d holes: %v", len(objects), blocks, packets, holes, f)
	}
	python, err := harness.PythonWith("numpy")
	if err != nil {
		require.Lack(t, "numpy", err.Error())
	}
	shipped, err := exec.Command(python, filepath.Join(tree.Root, "scripts/read_blocks.py"), filepath.Join(dir, files[0])).CombinedOutput()
	if err != nil || !strings.Contains(string(shipped), "(60, 50, 600) batches [0, 1, 2, ") {
		t.Errorf("scripts/read_blocks.py: %v: %.300s", err, shipped)
	}
}

// TestS3Interrupt presses Ctrl-C while uploads are on their way: they end, and so does the program.
func TestS3Interrupt(t *testing.T) {
	s := harness.NewS3Server(t)
	slow := throttle(t, s.Address, 20<<20)
	r := upload(t, "http://"+slow, func(p *os.Process) { _ = p.Signal(syscall.SIGINT) }, "--n", "1000000000", "--per", "64", "--pps", "40000")
	there := 0
	for _, o := range s.Objects() {
		there += len(numbers(t, o, 1000))
	}
	if r.code != 130 || r.out == 0 || int(r.out) != there || r.out != r.in {
		t.Errorf("exit code %d, in %d, out %d, on the disk %d, lost %v\n%s", r.code, r.in, r.out, there, r.lost, r.stderr)
	}
}

// throttle makes a way to an address that lets so many bytes a second through, all connections together.
func throttle(t *testing.T, to string, rate int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	const piece = 64 << 10
	tokens := make(chan struct{})
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		tick := time.NewTicker(time.Second * piece / time.Duration(rate))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			select {
			case tokens <- struct{}{}:
			case <-done:
				return
			}
		}
	}()
	forward := func(c net.Conn) {
		defer c.Close()
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(c, up); _ = c.Close() }()
		buf := make([]byte, piece)
		for {
			n, err := c.Read(buf)
			if n > 0 {
				select {
				case <-tokens:
				case <-done:
					return
				}
				if _, err := up.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go forward(c)
		}
	}()
	return fmt.Sprint(l.Addr())
}
