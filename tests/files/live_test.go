package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// liveScript assembles numbered packets, of which the wire loses some, to blocks of 8 and lends these. It waits for its readers before it sends, and
// ends when all blocks have been lent.
const liveScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ policy = "wait", lend = 4, readers = 4, attach = 1, batches = 200, timeout = 60, bufs = 64, mode = "0600" }
local function queue() return { queues = { { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", loss = 0.05, seed = 5 },
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 256 },
    { name = "batches", kind = "host", affinity = 0, num_bufs = args.bufs, buf_size = 8 * 16, shared = true } },
  interfaces = { { name = "port", address = "loop0", rx = queue(), tx = queue() } } } } }
local blocks = s:reorder{ name = "blocks", memory_region = "batches", at = "payload", payload_byte_offset = 4, slot_bytes = 8, policy = "wait",
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, packets_per_batch = 8, fill = "zero",
  data_types = { input_type = "int16", output_type = "fp32", endianness = "network" } }
local live = s:share{ name = "live", path = "./live", lend = args.lend, readers = args.readers, policy = args.policy, timeout = args.timeout,
  mode = args.mode, header = { site = 3 } }
s:pipe(s:rx_queue("port"), blocks, live, s:count{ name = "behind" })
while #live.readers < args.attach do daqiri.sleep(0.01) end
local seq = daqiri.format{ seq = { at = "payload", bit_offset = 0, bit_width = 32 }, a = { at = "payload", bit_offset = 32, bit_width = 16 } }
local tx = s:tx_queue("port")
tx:pace{ pps = 20000 }
tx:transmit{ count = args.batches * 8, template = tx:template{ format = seq, payload = ("\0"):rep(6) .. "\1\0\255\255\0\2",
  vary = { seq = { start = 0 }, a = { start = 0 } } } }
s:every(0.01, function() if s:stats().behind.out >= args.batches - 8 then -- later ones may be open until the end
  s:stop "all blocks were lent" end end)
local l = s:run{ seconds = 120 }
print(daqiri.json{ live = l.live, behind = l.behind.out, batches = l.blocks.batches + l.blocks.partial, lost = l.blocks.dropped })
`

// livePrelude starts a script of liveScript and attaches to it.
const livePrelude = `
import gc, json, mmap, os, signal, socket, struct, subprocess, sys, time, warnings
import numpy as np
sys.path.insert(0, sys.argv[1])
import daqiri_run
parent = os.getpid()

def start(**args):
    return subprocess.Popen([sys.argv[2], "--summary", "none", "live.lua"] + ["--%s=%s" % a for a in args.items()], stdout=subprocess.PIPE, text=True)

def attach():
    while True:
        try: return daqiri_run.attach("./live")
        except (FileNotFoundError, ConnectionRefusedError) as e:
            if "readers" in str(e): raise
            assert os.getpid() != parent or run.poll() is None
            time.sleep(0.01)

def right(b):
    assert b.data.dtype == np.float32 and b.data.shape == (8, 4) and len(b.present) == 8, (b.data.dtype, b.data.shape, b.present)
    assert b.present.sum() == b.packets == b.present_cells
    for slot in range(8):
        n = b.batch_id * 8 + slot
        want = [n % 65536, 256, -1, 2] if b.present[slot] else [0, 0, 0, 0]
        assert b.data[slot].tolist() == want, (b.batch_id, slot, b.data[slot], want)

def ended():
    out, _ = run.communicate()
    assert run.returncode == 0, run.returncode
    l = json.loads(out)
    assert l["live"]["in"] == l["live"]["out"] == l["behind"] == l["batches"] and l["live"]["held"] == 0 and l["live"]["dropped"] == 0, l
    assert not os.path.exists("live")
    return l
`

// liveCases are programs that read with the Python package; each prints "right".
var liveCases = map[string]string{
	"all blocks": `
run = start()
with attach() as live:
    got = []
    for b in live:
        right(b)
        assert (b.samples() == b.data.reshape(-1)).all() and live.header == '{"site":3}' and b.missed == 0
        got.append(b.batch_id)
l = ended()
assert got == list(range(len(got))) and len(got) == l["batches"] == l["live"]["lent"], (len(got), l)
assert live.reason == "all blocks were lent" and live.missed == 0 and l["live"]["readers"] == 1 and l["live"]["missed"] == 0
assert l["lost"] == 0
`,
	"two readers in one process": `
run = start(attach=2)
a, b = attach(), attach()
n = 0
for x, y in zip(a, b):
    right(x); right(y)
    assert x.batch_id == y.batch_id == n
    n += 1
l = ended()
assert n == l["batches"] and l["live"]["lent"] == 2 * n, (n, l)
`,
	"a reader that releases nothing": `
run = start(attach=2, policy="drop", batches=250)
idle, live = attach(), attach()
kept = [idle._receive()]
n = sum(1 for b in live)
l = ended()
blocks = 0
while kept[-1][0] != 5:
    blocks += kept[-1][0] == 3
    kept.append(idle._receive())
missed = struct.unpack_from("<Q", kept[-1][1], 24)[0]
assert blocks == 4 and missed == l["batches"] - 4, (blocks, missed, l)
assert n + live.missed == l["batches"] and l["live"]["missed"] == missed + live.missed and l["lost"] == 0, (n, live.missed, l)
`,
	"a reader that is waited for": `
run = start(attach=2, policy="wait", timeout=5) # once for the idle reader, and for all blocks that remain at the end
idle, live = attach(), attach()
got = [b.batch_id for b in live if right(b) is None]
l = ended()
assert got == list(range(l["batches"])) and l["live"]["missed"] == l["batches"] - 4, (len(got), l)
`,
	"a reader that is killed": `
run = start(attach=2)
pid = os.fork()
if pid == 0:
    child = attach()
    next(child), next(child)
    signal.pause()
live = attach()
got = 0
for b in live:
    right(b)
    got += 1
    if got == 3: os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
l = ended()
assert got == l["batches"] and l["live"]["readers"] == 2, (got, l)
`,
	"one reader too many": `
run = start(readers=1)
live = attach()
try: attach(); sys.exit("a second reader")
except ConnectionRefusedError as e: assert "1 readers" in str(e), e
assert sum(1 for b in live) == ended()["batches"]
`,
	"memory is read-only": `
run = start()
live = attach()
b = next(live)
try: b.data[0, 0] = 1; sys.exit("a view is writable")
except ValueError: pass
for fd in os.listdir("/proc/self/fd"):
    try: link = os.readlink("/proc/self/fd/" + fd)
    except OSError: continue
    if not link.startswith("/memfd:"): continue
    try: mmap.mmap(int(fd), 0, prot=mmap.PROT_READ | mmap.PROT_WRITE); sys.exit("the region was mapped for writing")
    except PermissionError: pass
    if os.getuid() != 0:
        try: os.open("/proc/self/fd/" + fd, os.O_RDWR); sys.exit("the region was opened for writing")
        except PermissionError: pass
# A private copy, as DLPack needs it: writes stay here.
right(b)
t = np.from_dlpack(b)
before = b.copy()
assert (t == b.data).all() and t.flags.c_contiguous
b.tensor()[:] = 77
assert (b.data == before).all() and (b.tensor() == 77).all()
del t
live.close()
ended()
`,
	"views that outlive their block": `
run = start()
live = attach()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    kept = []
    for b in live:
        x = b.data                      # a variable of the loop is not reported
        if b.batch_id == 7: kept.append(b.data[1:])
        if b.batch_id == 9: old = b
    assert len(caught) == 1 and "batch 7 " in str(caught[0].message), [str(w.message) for w in caught]
try: old.data; sys.exit("a released block has data")
except ValueError as e: assert "batch 9" in str(e)
live.close()
ended()
`,
	"invalid messages": `
run = start(attach=3)
live = attach()
for message in (b"x" * 64, struct.pack("<III", 4, 3, 99).ljust(64, b"\0"), b"short", b"y" * 200):
    bad = attach()
    bad._socket.send(message)
    while bad._receive()[0] != 5: pass       # the program ends the connection
others = [attach(), attach()]
for many in zip(live, *others):
    for b in many: right(b)
assert ended()["live"]["readers"] == 7
`,
	"the program is killed": `
run = start()
live = attach()
b = next(live)
right(b)
run.kill()
run.wait()
right(b)                                   # its memory stays
n = sum(1 for b in live)
assert n <= 4 and live.reason == "the program has ended", (n, live.reason)
`,
	"a run from Python": `
text = open("live.lua").read().replace('path = "./live", ', "")
with open("own.lua", "w") as f: f.write(text)
with daqiri_run.run("own.lua", program=sys.argv[2], batches=100) as own:
    got = [b.batch_id for b in own if right(b) is None]
assert got == list(range(len(got))) and len(got) >= 90 and own.returncode == 0, (len(got), own.returncode)
lines = {l["name"]: l for s in own.summary["sessions"] for l in s["ledger"]["lines"] if l["kind"] == "stage"}
assert lines["live"]["in"] == len(got), lines["live"]
assert not os.path.exists(own._folder)
with daqiri_run.run("own.lua", program=sys.argv[2], batches=100000) as own:
    right(next(own))
assert own.returncode == 130 and own.summary, own.returncode
try: next(daqiri_run.run("own.lua", program=sys.argv[2], stream="absent", nothing=1)); sys.exit("a script without the stream")
except RuntimeError as e: assert "exit code" in str(e), e
`,
	"another user": `
if os.getuid() != 0: print("right"); sys.exit()
os.chmod(".", 0o711)
for mode, attaches in (("0600", False), ("0666", True)):
    run = start(mode=mode) # waits for a reader
    pid = os.fork()
    if pid == 0:
        while not os.path.exists("live"):
            if ") Z " in open("/proc/%d/stat" % run.pid).read(): os._exit(2) # the program has ended
            time.sleep(0.01)
        os.setuid(65534)
        try:
            for b in daqiri_run.attach("./live"): right(b)
            os._exit(0)
        except PermissionError: os._exit(13)
        except BaseException as e: print(e); os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == (0 if attaches else 13), (mode, code)
    if not attaches:
        for b in attach(): right(b)
    ended()
`,
}

// TestLive has Python programs attach to a stream of s:share and compare its blocks with what was sent.
func TestLive(t *testing.T) {
	harness.Need(t, "numpy")
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(filepath.Join(tree.Root, "python"))
	if err != nil {
		t.Fatal(err)
	}
	program := harness.Built(t)
	for name, text := range liveCases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "live.lua"), []byte(liveScript), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(python, "-c", livePrelude+text+"\nprint('right')", folder, program)
			var stderr strings.Builder
			cmd.Dir, cmd.Stderr = dir, &stderr
			if out, err := cmd.Output(); err != nil || !strings.HasSuffix(string(out), "right\n") {
				t.Errorf("%v: %s%s", err, out, &stderr)
			}
		})
	}
}
