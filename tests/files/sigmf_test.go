package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// sigmfScript sends packets 0 to 399, and from 800 on, with two complex samples each, some of which the wire loses, and records the samples in order.
const sigmfScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ clock = "virtual", loss = 0.05, rotate = 0, count = 400, seconds = 0.1 }
local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = args.clock, loss = args.loss, seed = 5 } } })
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local blocks = s:reorder{ name = "blocks", memory_region = "packets", packets_per_batch = 8, timeout_us = 1000, fill = "zero",
  sequence_number = { bit_offset = 336, bit_width = 32 }, payload_byte_offset = 46, slot_bytes = 8,
  data_types = { input_type = "int16", output_type = "int16", endianness = "network" } }
local seq = daqiri.format{ seq = { at = "payload", bit_offset = 0, bit_width = 32 }, a = { at = "payload", bit_offset = 32, bit_width = 16 } }
s:pipe(rx, blocks, s:write_sigmf{ name = "radio", policy = "wait", rotate = args.rotate > 0 and { packets = args.rotate } or nil,
  samples = { type = "ci16le", rate = 250e6, frequency = 1.4e9 }, header = { ["core:description"] = 'a "test"\n', ["site:antenna"] = { 1, 2 } } })
tx:pace{ pps = 1e5 }
local function send(from, count)
  return tx:transmit{ count = count, template = tx:template{ format = seq, payload = ("\0"):rep(6) .. "\1\0\255\255\0\2",
    vary = { seq = { start = from }, a = { start = from } } } }
end
send(0, 400)
s:after("20ms", function() send(800, args.count) end)
s:run{ seconds = args.seconds }
`

// sigmfReader checks recordings by a schema of the keys that SigMF 1.2 requires, and every sample by what was sent. Its argument is "all" if every
// missing sample must be listed.
const sigmfReader = `
import glob, json, re, sys, jsonschema, numpy as np
whole = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
time = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
keys = {"propertyNames": {"pattern": r"^[a-z_]+:[a-z0-9_]+$"}, "type": "object"}
schema = {"type": "object", "additionalProperties": False, "required": ["global", "captures", "annotations"], "properties": {
    "global": {**keys, "required": ["core:datatype", "core:version"], "properties": {"core:offset": whole,
        "core:datatype": {"enum": [c + t for c in "cr" for t in ("i8", "u8", *(k + n + e for k in "iu" for n in ("16", "32") for e in ("_le", "_be")), "f32_le", "f64_le")]},
        "core:version": {"const": "1.2.0"}, "core:sample_rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e12}}},
    "captures": {"type": "array", "minItems": 1, "items": {**keys, "required": ["core:sample_start"], "properties": {
        "core:sample_start": whole, "core:global_index": whole, "core:datetime": time, "core:frequency": {"type": "number"}}}},
    "annotations": {"type": "array", "items": {**keys, "required": ["core:sample_start", "core:sample_count"], "properties": {
        "core:sample_start": whole, "core:sample_count": whole, "core:label": {"const": "gap"}}}}}}
jumps = gaps = n = 0
for name in sorted(glob.glob("*.sigmf-meta")):
    meta = json.load(open(name))
    jsonschema.validate(meta, schema)
    g = meta["global"]
    assert g["core:datatype"] == "ci16_le" and g["core:sample_rate"] == 250e6, g
    assert g["core:description"] == 'a "test"\n' and g["site:antenna"] == [1, 2], g
    data = np.fromfile(name.replace("-meta", "-data"), "<i2")
    data = data[: len(data) // 2 * 2].reshape(-1, 2)
    assert g["core:offset"] == n, (name, g, n)
    n += len(data)
    starts = [c["core:sample_start"] - g["core:offset"] for c in meta["captures"]]
    assert starts[0] == 0 and starts == sorted(starts), starts
    at = np.zeros(len(data), np.int64)
    for c, start, end in zip(meta["captures"], starts, starts[1:] + [len(data)]):
        assert c["core:frequency"] == 1.4e9 and re.match("20", c["core:datetime"]), c
        at[start:end] = c["core:global_index"] + np.arange(end - start)
        jumps += start > 0
    want = np.where((at % 2 == 0)[:, None], np.stack([at // 2, np.full_like(at, 256)], 1).astype("<i2"), np.array([-1, 2]))
    for a in meta["annotations"]:
        start = a["core:sample_start"] - g["core:offset"]
        want[start : start + a["core:sample_count"]] = 0
        gaps += a["core:sample_count"]
    same = (data == want).all(axis=1)
    if sys.argv[1] == "all": assert same.all(), (name, np.argmin(same))
    else: assert (same | (data == 0).all(axis=1)).all(), name
print("right", jumps, gaps, n)
`

// readSigMF checks the recordings of a folder, and returns the jumps within files, missing samples and samples.
func readSigMF(t *testing.T, dir, listed string) string {
	t.Helper()
	python, err := harness.PythonWith("numpy", "jsonschema")
	if err != nil {
		t.Fatal(err)
	}
	read := exec.Command(python, "-c", sigmfReader, listed)
	read.Dir = dir
	out, err := read.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "right ") {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "right "))
}

// sigmfWriter is a run of sigmfScript in a new folder.
func sigmfWriter(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	harness.Need(t, "numpy", "jsonschema")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(sigmfScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), append([]string{"--summary", "none", "x.lua"}, args...)...)
	cmd.Dir = dir
	return cmd
}

// TestSigMF compares the samples of recordings with what was sent, by the metadata alone: one file, and rotated ones.
func TestSigMF(t *testing.T) {
	for _, c := range []struct{ name, rotate, jumps string }{{"one file", "0", "1 "}, {"rotated", "7", "1 "}, {"rotated at the jump", "50", "0 "}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := sigmfWriter(t, "--rotate", c.rotate)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got := readSigMF(t, cmd.Dir, "all"); !strings.HasPrefix(got, c.jumps) || strings.Contains(got, " 0 ") || !strings.HasSuffix(got, " 1600") {
				t.Errorf("jumps, missing samples and samples: %s", got)
			}
		})
	}
}

// TestSigMFKilled kills a recorder after its metadata has the jump: what is on the disk is a recording.
func TestSigMFKilled(t *testing.T) {
	cmd := sigmfWriter(t, "--clock", "real", "--loss", "0", "--count", "10000000", "--seconds", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	harness.WaitFor(t, "the jump in the metadata", func() bool {
		text, err := os.ReadFile(filepath.Join(cmd.Dir, "radio.sigmf-meta"))
		return err == nil && strings.Count(string(text), "core:sample_start") > 1
	})
	harness.WaitFor(t, "samples", func() bool { return larger(filepath.Join(cmd.Dir, "radio.sigmf-data"), 100_000) })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := readSigMF(t, cmd.Dir, "some"); strings.HasPrefix(got, "0 ") {
		t.Errorf("jumps, missing samples and samples: %s", got)
	}
}
