package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// captureWriter is Python for generators of captures: capture(path, [(payload, port)]) writes UDP packets, 1 ms apart, by turns over IPv4, IPv4 with a
// VLAN tag and IPv6.
const captureWriter = `
import random, struct, sys
random.seed(5)
def frame(payload, port, kind):
    udp = struct.pack(">HHHH", 4000, port, 8 + len(payload), 0) + payload
    if kind == 2:
        return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + udp
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    return bytes(12) + (b"\x81\0\0\7" if kind == 1 else b"") + b"\x08\0" + ip + udp
def capture(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHIIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 1))
        for i, (payload, port) in enumerate(packets):
            data = frame(payload, port, i % 3).ljust(60, b"\0")
            f.write(struct.pack("<IIII", 1700000000 + i // 1000, i % 1000 * 1000000, len(data), len(data)) + data)
`

// A recorder is a script that writes files from packets, tested with packets and a reader in Python that share no code with it.
type recorder struct {
	script   string
	generate string   // writes x.pcap
	args     []string // behind --source x.pcap
	check    string   // fails if the files are not as expected
	prints   []string // parts of the script's output
}

// in runs a program in the folder and returns its output. It fails the test if the program fails.
func in(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, out)
	}
	return string(out)
}

// run records the generated capture and checks the files. It returns the folder.
func (r *recorder) run(t *testing.T) string {
	t.Helper()
	harness.Need(t, "numpy", "jsonschema")
	python, err := harness.PythonWith("numpy", "jsonschema")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in(t, dir, python, "-c", captureWriter+r.generate)
	out := in(t, dir, harness.Built(t), append([]string{"--summary", "none", r.script, "--source", "x.pcap"}, r.args...)...)
	for _, part := range r.prints {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
	in(t, dir, python, "-c", r.check)
	return dir
}

// refused checks that the script fails with each text for its arguments.
func refused(t *testing.T, dir, script string, cases map[string][]string) {
	t.Helper()
	for text, args := range cases {
		cmd := exec.Command(harness.Built(t), append([]string{"--summary", "none", script}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), text) {
			t.Errorf("%v: %v, expected %q:\n%s", args, err, text, out)
		}
	}
}

// gvspStream has Mono12p images with a lost packet, a packet twice, packets in reverse order and no trailer, then larger images with ids of 64 bits and
// padded lines, and packets that belong to no image.
const gvspStream = `
import json
def head(long, block, kind, number):
    if long: return struct.pack(">HHIQI", 0, 0, (0x80 | kind) << 24, block, number)
    return struct.pack(">HHI", 0, block, kind << 24 | number)
def image(block, width, height, code, data, each, long=False, padding=0):
    parts = [data[i:i + each] for i in range(0, len(data), each)]
    return ([head(long, block, 1, 0) + struct.pack(">HHQIIIIIHH", 0, 1, 100 * block, code, width, height, 0, 0, padding, 0)]
        + [head(long, block, 3, i + 1) + p for i, p in enumerate(parts)]
        + [head(long, block, 2, len(parts) + 1) + struct.pack(">HHI", 0, 1, height)])
packets, images = [b"short", b"\0\0\0\7\3\0\0\1late"], []
def send(block, width, height, code, name, size, change=None, missing=None, **more):
    data = random.randbytes(size)
    list = image(block, width, height, code, data, 64, **more)
    packets.extend(change(list) if change else list)
    for k in missing or []: data = data[:64 * k - 64] + bytes(len(data[64 * k - 64:64 * k])) + data[64 * k:]
    images.append((block, width, height, "0x%08x" % code, name, data.hex(), missing or []))
small = (20, 15, 0x010c0047, "Mono12p", 450)
send(1, *small)
send(2, *small, missing=[3], change=lambda l: l[:3] + l[4:])
send(3, *small, change=lambda l: l[:4] + l[3:])
send(4, *small, change=lambda l: l[:1] + l[:0:-1])
send(5, *small, change=lambda l: l[:-1])
send(6, *small, missing=[8], change=lambda l: l[:-2] + l[-1:])
large = (33, 21, 0x01080001, "Mono8", 21 * 36)
send(1, *large, long=True, padding=3)
send(2, *large, long=True, padding=3, change=lambda l: l[1:])
send(3, 5, 5, 0x010800ff, None, 25, long=True)
packets.append(head(False, 9, 1, 0) + struct.pack(">HHQIIIIIHH", 0, 1, 0, 0x01080001, 0x7fffffff, 0x7fffffff, 0, 0, 0, 0))
json.dump(images, open("want.json", "w"))
capture("x.pcap", [(p, 20202) for p in packets] + [(b"other", 5)])
`

const gvspCheck = `
import json
want, raw, n = json.load(open("want.json")), open("cam.raw", "rb").read(), 0
got = [json.loads(line) for line in open("cam.jsonl")]
assert len(got) == len(want), (len(got), len(want))
for g, (block, width, height, code, name, data, missing) in zip(got, want):
    assert (g["block_id"], g["width"], g["height"], g["pixel_format"], g.get("type")) == (block, width, height, code, name), g
    assert g["offset"] == n and raw[n:n + g["bytes"]].hex() == data and g.get("missing", []) == missing, g
    assert g["complete"] == (not missing and (block, width) not in ((5, 20), (2, 33))), g
    assert g["received"].startswith("2023-11-14T22:13:20"), g
    n += g["bytes"]
assert n == len(raw)
`

// TestGvspRecord compares images and their descriptions with what Python generated.
func TestGvspRecord(t *testing.T) {
	r := recorder{"gvsp_record", gvspStream, []string{"--write", "cam", "--where", "udp_dst == 20202"}, gvspCheck,
		[]string{"9 images, 4 of them incomplete", "1 came twice", "3 before the first image", "1 others"}}
	dir := r.run(t)
	if err := os.WriteFile(filepath.Join(dir, "cut.pcap"), []byte("no capture"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "gvsp_record", map[string][]string{
		"cannot create cam.raw: it exists":    {"--source", "x.pcap", "--write", "cam"},
		"cannot open nosuch: neither a Linux": {"--source", "nosuch"},
		"--timeout 0.5 is not valid":          {"--timeout", "0.5"},
		"cut.pcap":                            {"--source", "cut.pcap", "--write", "cut"},
		"cannot create no/folder":             {"--write", "no/folder"},
		"udp_dsx":                             {"--source", "x.pcap", "--write", "y", "--where", "udp_dsx == 1"},
	})
}
