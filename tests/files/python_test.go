package files

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
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

// pythonReader compares what the package reads with what was sent, computed again.
const pythonReader = `
import json, sys, numpy as np
if len(sys.argv) > 1: sys.path.insert(0, sys.argv[1])
import daqiri_run
summary = json.loads(sys.stdin.read())
files = {f.rsplit(".", 1)[1]: f for f in summary["files"]}
b = daqiri_run.blocks(files["dqb"])
assert len(b) == summary["batches"], (len(b), summary)
assert b["data"].dtype == np.float32 and b["data"].shape == (len(b), 8, 4), b["data"].shape
came = daqiri_run.present(b)[:, :8]
assert (came.sum(axis=1) == b["packets"]).all()
assert summary["missing"] > 0
for k in range(len(b)):
    for slot in range(8):
        n = int(b["batch_id"][k]) * 8 + slot
        want = [n, 256, -1, 2] if came[k, slot] else [0, 0, 0, 0]
        assert b["data"][k, slot].tolist() == want, (k, slot, b["data"][k, slot], want)
flat = daqiri_run.raw(files["raw"], np.dtype(">u2"), (-1, 6))
assert len(flat) == summary["out"], (len(flat), summary)
seq = flat[:, 0].astype(int) * 65536 + flat[:, 1]
assert (np.diff(seq) > 0).all() and (flat[:, 2] == seq).all() and (flat[:, 3:] == [256, 65535, 2]).all()
kept = {int(b["batch_id"][k]) * 8 + s for k in range(len(b)) for s in range(8) if came[k, s]}
assert kept == set(seq.tolist())
for bad in (files["raw"],):
    try: daqiri_run.blocks(bad); sys.exit("a raw file is read as blocks")
    except ValueError: pass
print("right")
`

// pythonMade compares what the package reads with files that struct packs as native/writer/BLOCKS.md has them. All numbers of a file's
// header but cells and present_bits differ, and bytes which mean nothing are 0x55, so that a field which is read at another place is seen.
const pythonMade = `
import struct, sys, numpy as np
sys.path.insert(0, sys.argv[1])
import daqiri_run

def head(kind=3, bits=12, extra_at=96, version=1):
    text = struct.pack("<8sIIQIIIIII16sIIIIqQ64sII", b"DQBATCH", version, 12288, 8192, 4096, 3, 16, 12, 4, kind, b"words", bits, 72, extra_at, 1,
        1234567890123, 17, b"disk", 176, 20)
    assert len(text) == 168
    return text.ljust(12288, b"\x55")

def block(k, data):
    text = struct.pack("<8sQQqqIIIiQ", b"BATCH", 1 << 40 | k, 1 << 50 | k, 10**18 + k, 2 * 10**18 + k, 100 + k, 200 + k, 300 + k, -1 - k, 48)
    text = text.ljust(72, b"\x55") + bytes([0b10100000 + k, 0b00000110])
    text = text.ljust(96, b"\x55") + struct.pack("<3Q", 400 + k, 1 << 60 | k, 1 << 63 | k)
    return (text.ljust(4096, b"\x55") + data).ljust(8192, b"\x55")

def write(text):
    with open("made.dqb", "wb") as f: f.write(text)
    return "made.dqb"

# Elements of each kind: its struct letter and values of which every byte counts.
kinds = {0: ("B", [1, 200]), 1: ("B", [0x1f, 0xf1]), 2: ("b", [-128, 5]), 3: ("h", [-2, 0x0102]), 4: ("i", [-3, 0x01020304]), 5: ("e", [1.5, -0.25]),
    6: ("H", [0x3f80, 0xc000]), 7: ("f", [1.5, -2.0**-20]), 8: ("d", [1 / 3, -1e300])}
for kind, (letter, values) in kinds.items():
    n = 48 // struct.calcsize(letter)
    sent = [[values[(i + i // 3 + k) % 2] for i in range(n)] for k in range(2)]
    whole = head(kind) + b"".join(block(k, struct.pack("<%d%s" % (n, letter), *sent[k])) for k in range(2))
    for more in (0, 8191):                             # a third block that is not whole
        b = daqiri_run.blocks(write(whole + bytes(more)))
        assert b["data"].shape == (2, 3, n // 3) and b["data"].reshape(2, n).tolist() == sent, (kind, b["data"], sent)
        for k in range(2):
            got = [b[name][k].tolist() for name in ("batch_id", "ordinal", "first_ns", "last_ns", "packets", "present_cells", "flags", "fill", "extra")]
            assert got == [1 << 40 | k, 1 << 50 | k, 10**18 + k, 2 * 10**18 + k, 100 + k, 200 + k, 300 + k, -1 - k, [400 + k, 1 << 60 | k, 1 << 63 | k]], got
        assert b["present"].tolist() == [[0b10100000, 6], [0b10100001, 6]], b["present"]
assert daqiri_run.present(b)[1].tolist() == [i in (0, 5, 7, 9, 10) for i in range(16)]
# With present = "slot", and without the rule extra.
b = daqiri_run.blocks(write(head(bits=3, extra_at=0) + block(0, bytes(48))))
assert len(b) == 1 and b["present"].shape == (1, 1) and "extra" not in b.dtype.names
assert len(daqiri_run.blocks(write(head() + bytes(8191)))) == 0
for text in (head()[:167], b"X" + head()[1:], head(version=2)):
    try: daqiri_run.blocks(write(text)); sys.exit("%r is read as blocks" % text[:12])
    except ValueError: pass

# A raw file from an offset on, which need not be a multiple of an element: each byte is its own place.
with open("made.raw", "wb") as f: f.write(bytes(range(100)))
for offset in (0, 1, 6, 50, 97):
    n = (100 - offset) // 2
    x = daqiri_run.raw("made.raw", "<u2", offset=offset)
    assert x.tolist() == [offset + 2 * i + 256 * (offset + 2 * i + 1) for i in range(n)], (offset, x)
    x = daqiri_run.raw("made.raw", "u1", (1, 3), offset)
    assert x.tolist() == [[offset, offset + 1, offset + 2]], (offset, x)
x = daqiri_run.raw("made.raw", "u1", (-1, 2, 5), 7)
assert x.shape == (9, 2, 5) and x[8, 1, 4] == 7 + 89, x
assert daqiri_run.raw("made.raw", offset=100).shape == (0,)
for shape, offset, why in ((51,), 50, "a byte behind the end of a file is read"), ((-1, 0), 0, "nothing is counted"):
    try: daqiri_run.raw("made.raw", "u1", shape, offset); sys.exit(why)
    except ValueError: pass
print("right")
`

// pythonHDF5 has h5dump, and h5py, read what the package makes of a block file of two whole blocks and a part.
const pythonHDF5 = `
import os, re, struct, subprocess, sys, numpy as np
sys.path.insert(0, sys.argv[1])
import daqiri_run, h5py
head = struct.pack("<8sIIQIIIIII", b"DQBATCH", 1, 4096, 8192, 4096, 3, 16, 12, 4, 3).ljust(64, b"\0") + struct.pack("<III", 12, 72, 96)
values = [[1000 * k - 7 * i for i in range(24)] for k in range(3)]
def block(k): return (struct.pack("<8sQ", b"BATCH", 70 + k).ljust(72, b"\0") + bytes([5 + k, 8])).ljust(4096, b"\0") + struct.pack("<24h", *values[k]).ljust(4096, b"\0")
os.mkdir("d")
with open("d/made.dqb", "wb") as f: f.write(head.ljust(4096, b"\0") + block(0) + block(1) + block(2)[:8191])
assert daqiri_run.hdf5("d/made.dqb") == "d/made.h5"
assert os.stat("d/made.h5").st_size < 20000
folder = os.getcwd()
os.chdir("/")
text = subprocess.run(["h5dump", "-y", "-w", "0", "-d", "/data", folder + "/d/made.h5"], check=True, capture_output=True, text=True).stdout
shown = [int(v) for v in re.findall(r"-?\d+", text[text.index("DATA {"):])]
assert shown == values[0] + values[1] and "( 2, 3, 8 )" in text and "H5T_STD_I16LE" in text, text
with h5py.File(folder + "/d/made.h5") as f:
    assert f["data"][1].ravel().tolist() == values[1] and f["batch_id"][:].tolist() == [70, 71] and f["extra"].shape == (2, 3)
    assert f["present"][1].tolist() == [i in (1, 2, 11) for i in range(16)], f["present"][1]
os.chdir(folder)
before = open("d/made.h5", "rb").read()
try: daqiri_run.hdf5("d/made.dqb"); sys.exit("a file is replaced")
except FileExistsError: pass
assert open("d/made.h5", "rb").read() == before and sorted(os.listdir("d")) == ["made.dqb", "made.h5"], os.listdir("d")
with open("none.dqb", "wb") as f: f.write(head.ljust(4096, b"\0"))
try: daqiri_run.hdf5("none.dqb"); sys.exit("no block is a data set")
except ValueError: pass
print("right")
`

// pythonDamaged reads block files with random damage: what is read is what the file has where its header puts it, or it is a ValueError. Its
// arguments are the package's folder and how many files.
const pythonDamaged = `
import random, struct, sys
sys.path.insert(0, sys.argv[1])
import daqiri_run
slots, slot_bytes, r, read, refused = 4, 6, random.Random(1), 0, 0
head = struct.pack("<8sIIQIIIIII", b"DQBATCH", 1, 4096, 8192, 4096, slots, slot_bytes, slots, slot_bytes, 3).ljust(64, b"\0") + struct.pack("<III", slots, 64, 72)
blocks = b"".join(struct.pack("<8sQ", b"BATCH", k).ljust(4096, b"\0") + bytes(range(k, k + 24)).ljust(4096, b"\0") for k in range(3))
whole = head.ljust(4096, b"\0") + blocks
words = (0, 1, 7, 64, 2**15, 2**31 - 1, 2**31, 2**32 - 4096, 2**32 - 1)
for n in range(int(sys.argv[2])):
    file = bytearray(whole)
    for _ in range(r.choice((0, 1, 1, 2, 4))):
        if r.random() < 0.5:
            struct.pack_into("<I", file, 4 * r.randrange(42), r.choice(words))
        else:
            file[r.choice((r.randrange(168), r.randrange(len(file))))] = r.randrange(256)
    del file[r.choice((len(file), len(file), r.randrange(len(file)))):]
    with open("damaged.dqb", "wb") as f: f.write(file)
    try: b = daqiri_run.blocks("damaged.dqb")
    except ValueError: refused += 1; continue
    read += 1
    header, stride, data_at, slots, slot_bytes = struct.unpack_from("<IQIII", file, 12)
    assert len(b) == max(0, len(file) - header) // stride, (n, len(b))
    for k in range(len(b)):
        at = header + k * stride
        assert b[k]["data"].tobytes() == file[at + data_at : at + data_at + slots * slot_bytes], n
        assert int(b[k]["batch_id"]) == struct.unpack_from("<Q", file, at + 8)[0], n
        daqiri_run.present(b[k:k + 1]), [b[k][name].tobytes() for name in b.dtype.names]
assert read > n // 10 and refused > n // 10, (read, refused)
for args in (("O",), ("S0",), ("u1", (-2,)), ("u1", (2**40,)), ("u1", (-1,), -1), ("u1", (-1,), 2**40)):
    try: daqiri_run.raw("damaged.dqb", *args); sys.exit("raw%r is read" % (args,))
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
	harness.Need(t, "numpy")
	python, err := harness.ScapyPython()
	if err != nil {
		python = "/usr/bin/python3"
	}
	folder, err := filepath.Abs(filepath.Join(tree.Root, "python"))
	if err != nil {
		t.Fatal(err)
	}
	readBack(t, python, folder)
}

// TestPythonLayout reads with the Python package files whose bytes are put together by hand.
func TestPythonLayout(t *testing.T) { pythonSays(t, pythonMade) }

// TestPythonHDF5 reads by h5dump the HDF5 file that the Python package makes of a block file.
func TestPythonHDF5(t *testing.T) {
	harness.Need(t, "h5py", "h5dump")
	pythonSays(t, pythonHDF5)
}

// TestPythonDamaged reads damaged files with the Python package (DAQIRI_TEST_DAMAGED: how many).
func TestPythonDamaged(t *testing.T) {
	pythonSays(t, pythonDamaged, cmp.Or(os.Getenv("DAQIRI_TEST_DAMAGED"), "3000"))
}

// pythonSays runs a Python script, whose first argument is the package's folder, and which prints "right".
func pythonSays(t *testing.T, script string, args ...string) {
	t.Helper()
	harness.Need(t, "numpy")
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(filepath.Join(tree.Root, "python"))
	if err != nil {
		t.Fatal(err)
	}
	read := exec.Command(python, append([]string{"-c", script, folder}, args...)...)
	read.Dir = t.TempDir()
	if out, err := read.CombinedOutput(); err != nil || string(out) != "right\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPythonInstalls installs the package by pip, from its folder and from the wheel of `make wheel`, without a network, and reads with it. What is
// installed has type hints and docstrings, and the wheel has the version of the program.
func TestPythonInstalls(t *testing.T) {
	harness.Need(t, "pip")
	python, err := harness.PipPython()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, build := filepath.Join(dir, "python"), filepath.Join(dir, "build")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(tree.Root, "python"))); err != nil { // pip builds where the source is
		t.Fatal(err)
	}
	version, err := exec.Command(harness.Built(t), "--version").Output()
	fields := strings.Fields(string(version))
	if err != nil || len(fields) < 2 {
		t.Fatalf("%q: %v", version, err)
	}
	command(t, "make", "-C", tree.Root, "wheel", "BUILD="+build, "PYTHON="+python)
	wheel := filepath.Join(build, "daqiri_run_reader-"+fields[1]+"-py3-none-any.whl")
	for name, from := range map[string]string{"folder": source, "wheel": wheel} {
		venv := filepath.Join(dir, name)
		inside := filepath.Join(venv, "bin", "python")
		command(t, python, "-m", "venv", "--system-site-packages", venv)
		command(t, inside, "-m", "pip", "install", "--no-index", "--no-build-isolation", from)
		where, err := exec.Command(inside, "-c", pythonTyped).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(where), venv) {
			t.Fatalf("%s: it lies at %s (%v)", name, where, err)
		}
		readBack(t, inside)
	}
}

// pythonTyped checks that the installed package is marked as typed and that its public functions have type hints and docstrings. It prints where it lies.
const pythonTyped = `
import inspect, os, daqiri_run
folder = os.path.dirname(daqiri_run.__file__)
assert os.path.exists(os.path.join(folder, "py.typed"))
for name in daqiri_run.__all__:
    thing = getattr(daqiri_run, name)
    assert inspect.getdoc(thing), name
    for part in [thing] if inspect.isfunction(thing) else [f for n, f in vars(thing).items() if inspect.isfunction(f)]:
        hints = part.__annotations__
        wanted = [p for p in inspect.signature(part).parameters if p not in ("self", "_")]
        assert all(p in hints for p in wanted) and ("return" in hints or part.__name__ == "__init__"), (name, part)
        assert inspect.getdoc(part) or part.__name__.startswith("_"), (name, part)
print(daqiri_run.__file__)
`

// command runs a program that must succeed.
func command(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

// readBack has a Python read what a script wrote; further arguments are the reader's.
func readBack(t *testing.T, python string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(pythonScript), 0o644); err != nil {
		t.Fatal(err)
	}
	write := exec.Command(harness.Built(t), "--summary", "none", "x.lua")
	write.Dir = dir
	output, err := write.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	shown := harness.BlocksOf(tree.Read(t, "python/README.md"), "python")
	if len(shown) != 1 {
		t.Fatalf("python/README.md shows %d programs", len(shown))
	}
	for _, program := range []string{pythonReader, fmt.Sprintf(pythonShown, shown[0])} {
		read := exec.Command(python, append([]string{"-c", program}, args...)...)
		read.Dir, read.Stdin = dir, strings.NewReader(string(output))
		if out, err := read.CombinedOutput(); err != nil || !strings.Contains(string(out), "right") {
			t.Errorf("%v: %s\n%s\n%s", err, out, output, program)
		}
	}
}
