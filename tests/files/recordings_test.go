package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// recordingScript sends packets 0 to 399 and 800 to 1199 with two complex samples each, some of which the wire loses, to a writer of recordings.
const recordingScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ kind = "write_dada" }
local s = daqiri.open(nil, { set = { loopback = { mode = "sw", clock = "virtual", loss = 0.05, seed = 5 } } })
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local blocks = s:reorder{ name = "blocks", memory_region = "packets", packets_per_batch = 8, timeout_us = 1000, fill = "zero",
  sequence_number = { bit_offset = 336, bit_width = 32 }, payload_byte_offset = 46, slot_bytes = 8,
  data_types = { input_type = "int16", output_type = "int16", endianness = "network" } }
local seq = daqiri.format{ seq = { at = "payload", bit_offset = 0, bit_width = 32 }, a = { at = "payload", bit_offset = 32, bit_width = 16 } }
local header = args.kind == "write_dada" and { NCHAN = 1, NPOL = 1, BW = 250, TELESCOPE = "a 'test'", FLAG = true }
  or { OBSNCHAN = 1, NPOL = 1, OBSBW = -250.5, TELESCOP = "a 'test'", FLAG = true }
s:pipe(rx, blocks, s[args.kind](s, { name = "t", policy = "wait", samples = { type = "ci16le", rate = 250e6, frequency = 1.4e9 }, header = header }))
tx:pace{ pps = 1e5 }
local function send(from)
  return tx:transmit{ count = 400, template = tx:template{ format = seq, payload = ("\0"):rep(6) .. "\1\0\255\255\0\2",
    vary = { seq = { start = from }, a = { start = from } } } }
end
send(0)
s:after("20ms", function() send(800) end)
s:run{ seconds = 0.1 }
`

// sentSamples is what the bytes of blocks must be from a sample of the stream on; missing packets are zeros.
const sentSamples = `
import datetime, glob, numpy as np
def lost(data, at):
    at = at + np.arange(len(data))
    want = np.where((at % 2 == 0)[:, None], np.stack([at // 2, np.full_like(at, 256)], 1).astype("<i2"), np.array([-1, 2]))
    missing = (data == 0).all(axis=1)
    assert ((data == want).all(axis=1) | missing).all()
    return int(missing.sum())
def near(mjd, utc):
    epoch = datetime.datetime(1858, 11, 17, tzinfo=datetime.timezone.utc)
    assert abs((utc - epoch).total_seconds() - mjd * 86400) < 2e-4, (mjd, utc)
`

// dadaReader reads PSRDADA files as their specification describes them.
const dadaReader = sentSamples + `
found = []
for name in sorted(glob.glob("t_*.dada")):
    raw = open(name, "rb").read()
    h = dict(line.split("#")[0].split(None, 1) for line in raw[:4096].rstrip(b"\0").decode().splitlines())
    assert h["HEADER"] == "DADA" and h["HDR_VERSION"] == "1.0" and h["HDR_SIZE"] == "4096", h
    assert [h[k] for k in ("NBIT", "NDIM", "NPOL", "NCHAN", "BW", "TELESCOPE", "FLAG")] == ["16", "2", "1", "1", "250", "a 'test'", "true"], h
    assert float(h["TSAMP"]) == 0.004 and float(h["FREQ"]) == 1400 and h["RESOLUTION"] == "64", h
    utc = datetime.datetime.strptime(h["UTC_START"] + "+0000", "%Y-%m-%d-%H:%M:%S%z")
    near(float(h["MJD_START"]), utc + datetime.timedelta(microseconds=int(h["PICOSECONDS"]) / 1e6))
    data = np.frombuffer(raw[4096:], "<i2").reshape(-1, 2)
    found.append((int(h["FILE_NUMBER"]), int(h["OBS_OFFSET"]), len(raw) - 4096, h["UTC_START"], lost(data, int(h["OBS_OFFSET"]) // 4)))
assert [f[:3] for f in found] == [(0, 0, 3200), (1, 6400, 3200)] and found[0][3] == found[1][3] and all(f[4] for f in found), found
print("right")
`

// guppiReader reads GUPPI RAW blocks as other programs do, and their cards by astropy too.
const guppiReader = sentSamples + `
from astropy.io import fits
raw, at, found, missing = open("t_000000.raw", "rb").read(), 0, [], 0
while at < len(raw):
    end = at
    while raw[end : end + 80] != b"END".ljust(80): end += 80
    text = raw[at : end + 80].decode("ascii")
    h = fits.Header.fromstring(text)
    for card in (text[i : i + 80] for i in range(0, len(text) - 80, 80)):
        if card[8:10] == "= " and card[10] != "'": assert card[10:30].strip() in (str(h[card[:8].strip()]), "T") or float(card[10:30]) == h[card[:8].strip()], card
    assert (h["NBITS"], h["NPOL"], h["OBSNCHAN"], h["OBSBW"], h["TELESCOP"], h["FLAG"]) == (16, 1, 1, -250.5, "a 'test'", True), h
    assert h["TBIN"] == 4e-9 and h["OBSFREQ"] == 1400 and h["DIRECTIO"] == 1 and h["BLOCSIZE"] == 64, h
    near(h["STT_IMJD"] + (h["STT_SMJD"] + h["STT_OFFS"]) / 86400, datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc))
    begin = at + (end + 80 - at + 511) // 512 * 512
    assert begin - at == 4096, (begin, at)
    data = np.frombuffer(raw[begin : begin + 64], "<i2").reshape(-1, 2)
    gone = lost(data, h["PKTIDX"] * 2)
    assert abs(h["DROPBLK"] - gone / 16) < 1e-6, (h["DROPBLK"], gone)
    missing += gone
    found.append(h["PKTIDX"])
    at = begin + h["BLOCSIZE"]
assert at == len(raw) and missing > 0 and found == [8 * k for k in list(range(50)) + list(range(100, 150))], found
print("right")
`

// TestRecordings compares files with text headers with what was sent, by readers of their own.
func TestRecordings(t *testing.T) {
	for _, c := range []struct {
		kind, reader string
		modules      []string
	}{{"write_dada", dadaReader, []string{"numpy"}}, {"write_guppi", guppiReader, []string{"numpy", "astropy"}}} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			harness.Need(t, c.modules...)
			python, err := harness.PythonWith(c.modules...)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte(recordingScript), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{harness.Built(t), "--summary", "none", "x.lua", "--kind", c.kind}, {python, "-c", c.reader}} {
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
