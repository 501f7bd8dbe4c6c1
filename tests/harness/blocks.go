package harness

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// blocksScript puts numbered packets together to batches of 50 and writes these as blocks, beside a capture of what came
// in: from a wire that loses, repeats and displaces some, or from a capture.
const blocksScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 20000, policy = "drop", clock = "virtual", fill = 165, source = "", options = "{}", pcap = "", pps = 1e6, endpoint = "", region = "host" }
local function queue(more)
  local q = { name = "q", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } }
  for k, v in pairs(more) do q[k] = v end
  return { queues = { q } }
end
local s = daqiri.open{ daqiri = { cfg = {
  version = 1, stream_type = "raw", master_core = 0,
  loopback = args.source == "" and { mode = "sw", clock = args.clock, seed = 7, loss = 0.01, dup = 0.01, reorder = 0.01 } or nil,
  memory_regions = {
    { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 1024 },
    { name = "batches", kind = args.region, affinity = 0, num_bufs = 64, buf_size = args.region == "host" and 50 * 600 or 8 * 4096 },
  },
  interfaces = { { name = "port", address = args.source == "" and "loop0" or "pcap:" .. args.source,
    replay = args.source ~= "" and { speed = "max" } or nil,
    rx = queue{ timeout_us = 100 }, tx = args.source == "" and queue{} or nil } },
} } }
local o = daqiri.from_json(args.options)
o.name, o.policy, o.header = "disk", args.policy, { site = 3 }
local blocks = s:reorder{ name = "blocks", memory_region = "batches", at = "payload", payload_byte_offset = 4, slot_bytes = 600,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, packets_per_batch = 50, fill = args.fill,
  timeout_us = args.clock == "virtual" and args.source == "" and 10000 or 5e6, -- real time passes while nothing runs
  policy = args.policy }
if args.endpoint ~= "" then
  o.bucket, o.endpoint, o.access_key, o.secret_key, o.prefix = "bucket", args.endpoint, "key", "a-secret", "run"
end
s:pipe(s:rx_queue("port"), blocks, args.endpoint ~= "" and s:write_s3(o) or s:write_blocks(o))
if args.pcap ~= "" then s:pipe(s:rx_queue("port"), s:write_pcap{ name = "seen", prefix = args.pcap, policy = "wait", manifest = false }) end
if args.source == "" then
  local tx = s:tx_queue("port")
  tx:pace{ pps = args.pps }
  tx:transmit{ count = args.packets, template = tx:template{ payload = ("\0"):rep(8) .. ("payload "):rep(75):sub(1, 596), vary = {
    { at = "payload", bit_offset = 0, bit_width = 32, step = 1 },
    { at = "payload", bit_offset = 32, bit_width = 32, step = 2654435761 } } } }
end
local l = s:run{ seconds = args.source == "" and args.packets / args.pps + 0.5 or 30 }
print(daqiri.json{ duplicates = l.blocks.dropped_by.duplicate, late = l.blocks.late,
  missing = l.blocks.missing, dropped = l.blocks.dropped, written = l.disk.written, lost = l.disk.dropped })
`

// blocksReader knows the page on the format and what was sent, and nothing of ours. With a capture it holds each block's
// bitmap to what came in. It prints how many blocks and packets there are.
const blocksReader = `
import struct, sys
u = lambda d, f, at: struct.unpack_from("<" + f, d, at)[0]
def fail(*what): sys.exit(" ".join(map(str, what)))
def sent(n): return (struct.pack(">I", (n * 2654435761) % 2**32) + b"payload " * 75)[:600]
def arrived(path):
    d = open(path, "rb").read()
    numbers, at = set(), 24
    while at < len(d):
        numbers.add(struct.unpack_from(">I", d, at + 16 + 42)[0])
        at += 16 + u(d, "I", at + 8)
    return numbers
came = arrived(sys.argv[1]) if sys.argv[1] else None
blocks, packets, holes, ids = 0, 0, 0, set()
for path in sys.argv[2:]:
    d = open(path, "rb").read()
    if not d: continue
    head, step, data_at, slots, size, cells = u(d, "I", 12), u(d, "Q", 16), u(d, "I", 24), u(d, "I", 28), u(d, "I", 32), u(d, "I", 36)
    if d[:8] != b"DQBATCH\0" or u(d, "I", 8) != 1 or (slots, size, cells, u(d, "I", 64)) != (50, 600, 50, 50): fail(path, "header", d[:100])
    if d[96:160].rstrip(b"\0") != b"disk" or d[u(d, "I", 160):][:u(d, "I", 164)] != b'{"site":3}': fail(path, "names", d[96:160])
    if "%06d.dqb" % u(d, "Q", 88) != path[-10:]: fail(path, "index", u(d, "Q", 88))
    before = -1
    for at in range(head, len(d) - step + 1, step):
        batch, fill, there = u(d, "Q", at + 8), u(d, "i", at + 52), u(d, "Q", at + u(d, "I", 68))
        if d[at:at+8] != b"BATCH\0\0\0" or batch in ids or batch <= before or u(d, "Q", at + 16) != batch: fail(path, at, "batch", batch)
        if u(d, "I", at + 40) != bin(there).count("1") or u(d, "I", at + 44) != u(d, "I", at + 40) or u(d, "Q", at + 56) != 30000: fail(path, batch, "count")
        if fill != 165 or any(d[at+data_at+30000:at+step]): fail(path, batch, "fill or padding", fill)
        for slot in range(slots):
            n, got = batch * slots + slot, d[at+data_at+slot*size:][:size]
            is_there = there >> slot & 1
            if got != (sent(n) if is_there else b"\xa5" * size): fail(path, batch, slot, "bytes", is_there, got[:16])
            if came is not None and is_there != (n in came): fail(path, batch, slot, "bit", is_there)
            holes += not is_there
        ids.add(batch); before = batch
        blocks += 1; packets += bin(there).count("1")
if came is not None and packets != len(came): fail(len(came), "packets came,", packets, "are in the blocks")
print(blocks, packets, holes)
`

// BlocksRun is a run of blocksScript in dir.
func BlocksRun(t *testing.T, program, dir string, args ...string) *exec.Cmd {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "blocks.lua"), []byte(blocksScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"blocks.lua"}, args...)...)
	cmd.Dir = dir
	return cmd
}

// ReadBlocks has python3 read block files, with the capture of what came in (or none).
func ReadBlocks(t *testing.T, dir, capture string, files []string) (blocks, packets, holes int) {
	t.Helper()
	cmd := exec.Command("/usr/bin/python3", append([]string{"-c", blocksReader, capture}, files...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the files' reader: %v: %s", err, out)
	}
	if _, err := fmt.Sscan(string(out), &blocks, &packets, &holes); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return blocks, packets, holes
}

// blocksManifest is what a manifest reports of block files.
type blocksManifest struct {
	State string
	Files []struct {
		Path           string
		Bytes, Packets int
		CRC32C         string
		FirstBatch     int `json:"first_batch"`
		LastBatch      int `json:"last_batch"`
	}
	Ledger struct {
		Lines []struct {
			Name              string
			In, Out, OutBytes int
			Held              int
			Dropped           map[string]int
		}
	}
}

// CheckBlocksManifest holds a manifest to the files that it names, and returns these.
func CheckBlocksManifest(t *testing.T, dir, path string) (files []string) {
	t.Helper()
	var m blocksManifest
	text, err := os.ReadFile(filepath.Join(dir, path))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || m.State != "finished" {
		t.Fatalf("manifest: state %q, %v", m.State, err)
	}
	blocks := 0
	for _, f := range m.Files {
		data, err := os.ReadFile(filepath.Join(dir, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))); sum != f.CRC32C || len(data) != f.Bytes {
			t.Errorf("%s: %d bytes with checksum %s, the manifest has %+v", f.Path, len(data), sum, f)
		}
		const block = 4096 + 32768
		first, last := int(data[4096+8])|int(data[4096+9])<<8, int(data[len(data)-block+8])|int(data[len(data)-block+9])<<8
		if n := (len(data) - 4096) / block; n != f.Packets || first != f.FirstBatch || last != f.LastBatch {
			t.Errorf("%s: %d blocks from %d to %d, the manifest has %+v", f.Path, n, first, last, f)
		}
		blocks += f.Packets
		files = append(files, f.Path)
	}
	for _, l := range m.Ledger.Lines {
		if l.Name == "disk" && (l.Out != blocks || l.In != blocks || l.Held != 0) {
			t.Errorf("%d blocks are in the files, the manifest's ledger has %+v", blocks, l)
		}
	}
	return files
}
