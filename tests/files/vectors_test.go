package files

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// vectorScript converts payloads of 420 bytes, whole units of every type, and writes the floats to a flat file for each type.
const vectorScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ bytes = "", dir = ".", types = "" }
local bytes = args.bytes:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end)
for name in args.types:gmatch("%S+") do
  local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 256, buf_size = 512 },
      { name = "converted", kind = "host", affinity = 0, num_bufs = 64, buf_size = 8192 } },
    interfaces = { { name = "port", address = "loop0",
      tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "packets" } } } },
      rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 16, timeout_us = 10, memory_regions = { "packets" } } } } } } } } }
  s:pipe(s:rx_queue "port", s:convert{ name = "converted", memory_region = "converted", at = "payload", policy = "wait",
    data_types = { input_type = name, output_type = "f32" } },
    s:write_raw{ name = "floats", dir = args.dir .. "/" .. name, policy = "wait", packet_data_offset = 42, manifest = false })
  s:start()
  local tx, n = s:tx_queue "port", #bytes / 420
  local b = tx:alloc(n)
  b:fill(tx:template{ udp_dst = 7148, payload_bytes = 420 })
  for i = 1, n do b:packet(i):set_bytes(42, bytes:sub(420 * i - 419, 420 * i)) end
  b:checksums()
  assert(tx:send(b))
  local l = s:run{ seconds = 0.001 }
  assert(l.floats.written == n, name)
end
`

// vectorCheck decodes the bytes by whole integers, which have all bits of a unit, and compares them with the files.
const vectorCheck = `
import glob, re, struct, sys
data = bytes.fromhex(sys.argv[1])
def unpack(name):
    kind, bits, tail = re.fullmatch(r"([iuo])(\d+)(.*)", name).groups()
    bits, low = int(bits), tail in (".lsb", "le")
    swapped = data
    if tail == ".w32le": swapped = b"".join(data[i:i + 4][::-1] for i in range(0, len(data), 4))
    whole, out = int.from_bytes(swapped, "little" if low else "big"), []
    n = len(data) * 8 // bits
    for i in range(n):
        code = whole >> (i * bits if low else len(data) * 8 - (i + 1) * bits) & (1 << bits) - 1
        if kind == "o": code -= 1 << bits - 1
        if kind == "i" and code >> bits - 1: code -= 1 << bits
        out.append(float(code))
    return out
for name in sys.argv[3:]:
    files = glob.glob(sys.argv[2] + "/" + name + "/*.raw")
    assert len(files) == 1, files
    got = open(files[0], "rb").read()
    want = unpack(name)
    assert got == struct.pack("<%df" % len(want), *want), name
    print(name, "is right")
`

// TestVectors converts pseudo-random bytes of each packing: they are what Python's integers make of the bits.
func TestVectors(t *testing.T) {
	types := []string{"i2", "i2.lsb", "o2.lsb", "i4", "i4.lsb", "o4", "i10", "u10.lsb", "i12", "i12.w32le", "u12.lsb", "u14", "i16be", "i16le", "o8", "o16be", "u16le", "i24be"}
	data, x := make([]byte, 9*420), uint32(1)
	for i := range data {
		x = (1103515245*x + 12345) & (1<<31 - 1)
		data[i] = byte(x >> 16)
	}
	harness.Need(t, "scapy") // for python3
	python, _ := harness.ScapyPython()
	program, dir, text := harness.Built(t), t.TempDir(), hex.EncodeToString(data)
	script := filepath.Join(dir, "vectors.lua")
	if err := os.WriteFile(script, []byte(vectorScript), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, script, "--dir", dir, "--types", strings.Join(types, " "), "--bytes", text).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(python, append([]string{"-c", vectorCheck, text, dir}, types...)...).CombinedOutput()
	if err != nil || strings.Count(string(out), "is right") != len(types) {
		t.Errorf("%v\n%s", err, out)
	}
}
