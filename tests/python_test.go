package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pythonScript sends numbered packets with two samples of 16 bits each, some of which the wire loses, and writes the floats that they
// become in blocks, and the packets that came as a flat file.
const pythonScript = `
local daqiri = require "daqiri"
local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = "virtual", loss = 0.05, seed = 5 } } })
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local blocks = s:reorder{ name = "blocks", memory_region = "packets", packets_per_batch = 8, timeout_us = 1000, fill = "zero",
  sequence_number = { bit_offset = 336, bit_width = 32 }, payload_byte_offset = 46, slot_bytes = 8,
  data_types = { input_type = "int16", output_type = "fp32", endianness = "network" } }
s:pipe(rx, blocks, s:write_blocks{ name = "disk", policy = "wait" })
s:pipe(rx, s:write_raw{ name = "flat", per = "file", policy = "wait", packet_data_offset = 42 })
local seq = daqiri.format{ seq = { at = "payload", bit_offset = 0, bit_width = 32 }, a = { at = "payload", bit_offset = 32, bit_width = 16 } }
tx:pace{ pps = 1e5 }
tx:transmit{ count = 400, template = tx:template{ format = seq, payload = ("\0"):rep(6) .. "\1\0\255\255\0\2",
  vary = { seq = { start = 0 }, a = { start = 0 } } } }
local l = s:run{ seconds = 0.1 }
print(daqiri.json{ files = l.files, batches = l.blocks.batches + l.blocks.partial, missing = l.blocks.missing, out = l.flat.out })
`

// pythonReader compares what the package reads with what was sent, computed anew.
const pythonReader = `
import json, sys, numpy as np
if len(sys.argv) > 1: sys.path.insert(0, sys.argv[1])
import daqiri_run
said = json.loads(sys.stdin.read())
files = {f.rsplit(".", 1)[1]: f for f in said["files"]}
b = daqiri_run.blocks(files["dqb"])
assert len(b) == said["batches"], (len(b), said)
assert b["data"].dtype == np.float32 and b["data"].shape == (len(b), 8, 4), b["data"].shape
came = daqiri_run.present(b)[:, :8]
assert (came.sum(axis=1) == b["packets"]).all()
assert said["missing"] > 0
for k in range(len(b)):
    for slot in range(8):
        n = int(b["batch_id"][k]) * 8 + slot
        want = [n, 256, -1, 2] if came[k, slot] else [0, 0, 0, 0]
        assert b["data"][k, slot].tolist() == want, (k, slot, b["data"][k, slot], want)
flat = daqiri_run.raw(files["raw"], np.dtype(">u2"), (-1, 6))
assert len(flat) == said["out"], (len(flat), said)
seq = flat[:, 0].astype(int) * 65536 + flat[:, 1]
assert (np.diff(seq) > 0).all() and (flat[:, 2] == seq).all() and (flat[:, 3:] == [256, 65535, 2]).all()
kept = {int(b["batch_id"][k]) * 8 + s for k in range(len(b)) for s in range(8) if came[k, s]}
assert kept == set(seq.tolist())
for bad in (files["raw"],):
    try: daqiri_run.blocks(bad); sys.exit("a raw file is read as blocks")
    except ValueError: pass
print("right")
`

// pythonShown stands around what python/README.md shows: the files that it names, and what it has read.
const pythonShown = `
import json, os, sys, numpy as np
if len(sys.argv) > 1: sys.path.insert(0, sys.argv[1])
os.rename(next(f for f in json.loads(sys.stdin.read())["files"] if f.endswith(".dqb")), "disk_000000.dqb")
np.arange(3 * 2048, dtype="int16").tofile("disk.raw")
%s
assert len(b) > 0 and b["data"].shape[1:] == (8, 4) and x.shape == (3, 1024, 2) and x[2, 1023, 1] == 3 * 2048 - 1
print("right")
`

// TestPythonReader reads with the Python package what a script wrote.
func TestPythonReader(t *testing.T) {
	need(t, "numpy")
	python, err := scapyPython()
	if err != nil {
		python = "/usr/bin/python3"
	}
	folder, err := filepath.Abs(filepath.Join(rootDir, "python"))
	if err != nil {
		t.Fatal(err)
	}
	readBack(t, python, folder)
}

// TestPythonInstalls installs the package by pip into an environment of its own, without a network, and reads with it.
func TestPythonInstalls(t *testing.T) {
	need(t, "pip")
	python, err := pipPython()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, venv := filepath.Join(dir, "python"), filepath.Join(dir, "venv")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(rootDir, "python"))); err != nil { // pip builds where the source is
		t.Fatal(err)
	}
	inside := filepath.Join(venv, "bin", "python")
	for _, args := range [][]string{
		{python, "-m", "venv", "--system-site-packages", venv},
		{inside, "-m", "pip", "install", "--no-index", "--no-build-isolation", source},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	where, err := exec.Command(inside, "-c", "import daqiri_run; print(daqiri_run.__file__)").Output()
	if err != nil || !strings.HasPrefix(string(where), venv) {
		t.Fatalf("it lies at %s (%v)", where, err)
	}
	readBack(t, inside)
}

// readBack has a Python read what a script wrote; further arguments are the reader's.
func readBack(t *testing.T, python string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(pythonScript), 0o644); err != nil {
		t.Fatal(err)
	}
	write := exec.Command(built(t), "--summary", "none", "x.lua")
	write.Dir = dir
	said, err := write.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	shown := blocksOf(readFile(t, "python/README.md"), "python")
	if len(shown) != 1 {
		t.Fatalf("python/README.md shows %d programs", len(shown))
	}
	for _, program := range []string{pythonReader, fmt.Sprintf(pythonShown, shown[0])} {
		read := exec.Command(python, append([]string{"-c", program}, args...)...)
		read.Dir, read.Stdin = dir, strings.NewReader(string(said))
		if out, err := read.CombinedOutput(); err != nil || !strings.Contains(string(out), "right") {
			t.Errorf("%v: %s\n%s\n%s", err, out, said, program)
		}
	}
}
