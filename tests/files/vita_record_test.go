package files

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// vitaStreams writes a capture of four streams, by the layouts of VITA 49.0 and 49.2. Sample k of a stream is a function of k. Stream 7 has a class id,
// trailers, lost packets, one packet twice, two in the wrong order, another frequency and level, another rate, and a restart; stream 8
// has pad bits and no times, 9 has floats. Stream 10 has real samples and longer losses than are filled.
const vitaStreams = `
import numpy as np
packets = []
def data(sid, count, payload, t=None, pad=None, trailer=False):
    words = (len(payload) + 3) // 4 + 1 + (sid is not None) + 2 * (pad is not None) + 3 * (t is not None) + trailer
    first = (sid is not None) << 28 | (pad is not None) << 27 | trailer << 26 | (0x600000 if t is not None else 0) | count % 16 << 16 | words
    s = struct.pack(">I", first)
    if sid is not None: s += struct.pack(">I", sid)
    if pad is not None: s += struct.pack(">II", pad << 27 | 0x6a621e, 0)
    if t is not None: s += struct.pack(">IQ", t // 10**12, t % 10**12)
    s += payload.ljust((len(payload) + 3) // 4 * 4, b"\xee") + (b"\x40\0\0\0" if trailer else b"")
    packets.append(s)
def context(sid, complex, form, bits, rate, frequency=None, level=None):
    bandwidth = rate // 2
    cif = 0x20208000 | (0x08000000 if frequency is not None else 0) | (0x01000000 if level is not None else 0)
    body = struct.pack(">Iq", cif, bandwidth << 20)
    if frequency is not None: body += struct.pack(">q", frequency << 20)
    if level is not None: body += struct.pack(">Hh", 0, int(level * 128))
    body += struct.pack(">qII", rate << 20, 1 << 31 | complex << 29 | form << 24 | (bits - 1) << 6 | bits - 1, 0)
    packets.append(struct.pack(">II", 0x40000000 | len(body) // 4 + 2, sid) + body)
def samples16(k): return np.stack([k % 30011, -(k % 20011)], 1).astype(">i2").tobytes()
def of7(i, t0=1700000000 * 10**12, shift=0): # packet i of 50 samples, at 1 MS/s
    data(7, i, samples16(np.arange(50 * i, 50 * i + 50)), t0 + (50 * i + shift) * 10**6, 0, True)
data(7, 0, samples16(np.arange(50)), 1700000000 * 10**12)   # before the context packet: of unknown type
context(7, 1, 0, 16, 10**6, 10**10, -23.5)
for i in [*range(1, 10), *range(11, 14), 15, 14, 15, *range(16, 20), *range(61, 70)]: of7(i)
context(7, 1, 0, 16, 10**6, 10**10, -23.5)                   # no change
context(7, 1, 0, 16, 10**6, 2 * 10**10, -3)
for i in range(70, 80): of7(i)
of7(3, 1800000000 * 10**12, 50)                               # the sender restarted: no gap has this count and time
of7(4, 1800000000 * 10**12, 50)
context(7, 1, 0, 16, 10**7)
of7(5, 1800000000 * 10**12, 50)
context(8, 1, 0, 8, 1000)
for i in [0, 1, 4, 5, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]: data(8, i, bytes([i, i + 1] * 31), None, 16)
context(9, 0, 14, 32, 48000, 0)
for i in range(3): data(9, i, np.arange(20 * i, 20 * i + 20, dtype=">f4").tobytes(), i * 20 * 10**12 // 48000)
context(10, 0, 16, 8, 1000)
for i in [0, 1, 500, 501]: data(10, i, bytes([i % 256] * 12), 1700000000 * 10**12 + i * 12 * 10**9)
packets += [b"abc", struct.pack(">I", 0x10000009) + b"cut short", struct.pack(">II", 0x50000002, 7)]
capture("x.pcap", [(p, 4991) for p in packets])
`

const vitaCheck = `
import glob, json, jsonschema, numpy as np
count = {"type": "integer", "minimum": 0}
item = {"type": "object", "propertyNames": {"pattern": "^(core|vita):[a-z_]+$"}}
schema = {"type": "object", "additionalProperties": False, "required": ["global", "captures", "annotations"], "properties": {
    "global": {**item, "required": ["core:datatype", "core:version", "core:sample_rate", "core:extensions"]},
    "captures": {"type": "array", "minItems": 1, "items": {**item, "required": ["core:sample_start", "core:datetime"], "properties": {
        "core:sample_start": count, "core:global_index": count, "core:datetime": {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}}}},
    "annotations": {"type": "array", "items": {**item, "required": ["core:sample_start", "core:sample_count"]}}}}
names = {"ci16_be": ">i2", "ci8": "i1", "rf32_be": ">f4", "ru8": "u1"}
def read(name):
    meta = json.load(open("run_" + name + ".sigmf-meta"))
    jsonschema.validate(meta, schema)
    g = meta["global"]
    x = np.fromfile("run_" + name + ".sigmf-data", names[g["core:datatype"]])
    return g, meta["captures"], meta["annotations"], x.reshape(-1, 2) if g["core:datatype"][0] == "c" else x
def gaps(list): return [(a["core:sample_start"], a["core:sample_count"]) for a in list if a["core:label"] == "gap"]
def same(x, k, gap=()):
    want = np.stack([k % 30011, -(k % 20011)], 1)
    for start, n in gap: want[start:start + n] = 0
    assert (x == want).all(), np.argmin((x == want).all(axis=1))
g, c, a, x = read("00000007")
assert g["core:sample_rate"] == 1e6 and len(c) == 3, c
assert [s["core:sample_start"] for s in c] == [0, 3450, 3950], c
assert (c[0]["core:frequency"], c[0]["vita:reference_level"], c[0]["vita:bandwidth"]) == (1e10, -23.5, 5e5), c
assert (c[1]["core:frequency"], c[1]["vita:reference_level"]) == (2e10, -3), c
assert c[0]["core:datetime"] == "2023-11-14T22:13:20.00005Z" and c[1]["core:datetime"] == "2023-11-14T22:13:20.0035Z", c
assert c[2]["core:datetime"] == "2027-01-15T08:00:00.0002Z", c
assert gaps(a) == [(450, 50), (950, 2050)], a
same(x, np.concatenate([np.arange(50, 4000), np.arange(150, 250)]), gaps(a))
g, c, a, x = read("00000007_2")
assert g["core:sample_rate"] == 1e7
same(x, np.arange(250, 300))
g, c, a, x = read("00000008")
assert gaps(a) == [(62, 62)] and x.shape == (558, 2), (a, x.shape)
i = np.arange(558) // 31
assert (x == np.where((i // 2 == 1)[:, None], 0, np.stack([i, i + 1], 1))).all()
g, c, a, x = read("00000009")
assert g["core:datatype"] == "rf32_be" and c[0]["core:frequency"] == 0 and (x == np.arange(60)).all()
g, c, a, x = read("0000000a")
assert [(s["core:sample_start"], s["core:global_index"]) for s in c] == [(0, 0), (24, 6000)] and not a, c
assert (x == np.repeat([0, 1, 500 % 256, 501 % 256], 12)).all()
`

// TestVitaRecord compares recordings with the streams that Python generated, sample by sample.
func TestVitaRecord(t *testing.T) {
	r := recorder{"vita_record", vitaStreams, []string{"--write", "run"}, vitaCheck,
		[]string{"1 late", "7 context", "1 of unknown type", "2 malformed", "restarted 1 times"}}
	dir := r.run(t)
	refused(t, dir, "vita_record", map[string][]string{
		"cannot create run_00000007.sigmf-meta: it exists": {"--source", "x.pcap", "--write", "run"},
		"i12 is not a type of SigMF recordings":            {"--type", "i12"},
		"x is not a type of SigMF recordings":              {"--type", "x"},
		"cannot open nosuch":                               {"--source", "nosuch"},
	})
}

// TestVitaPacked checks that packets of a type that SigMF lacks are counted and fail the run, beside streams that are recorded, one of them
// without an id and context packets.
func TestVitaPacked(t *testing.T) {
	harness.Need(t, "numpy")
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	helpers, _, _ := strings.Cut(vitaStreams, "data(7, 0,")
	in(t, dir, python, "-c", captureWriter+helpers+`
context(1, 1, 0, 12, 1000)
context(2, 1, 0, 8, 1000)
for i in range(4):
    data(1, i, bytes(24))
    data(2, i, bytes(24))
    data(None, i, bytes([i] * 10))
capture("x.pcap", [(p, 4991) for p in packets])
`)
	cmd := exec.Command(harness.Built(t), "--summary", "none", "vita_record", "--source", "x.pcap", "--write", "run", "--type", "u8", "--rate", "8000")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit: %v", err)
	}
	for _, part := range []string{"run_00000001: ci12 is not a type", "run_00000002: 48 samples", "run_data: 48 samples", "4 packets are not recorded"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
}
