package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// rtpStreams writes captures of RTP, by RFC 3550: x.pcap has a stream of 24 bits and two channels, whose sequence numbers and timestamps wrap, with lost,
// late and repeated packets, header extensions, contributors and padding, and a jump of the timestamps; a second stream that restarts, and packets of
// another payload type or without a valid header. The frames of want.json are zeros where they are missing.
const rtpStreams = `
import json
def rtp(seq, ts, ssrc, payload, kind=97, csrc=0, ext=None, pad=0):
    s = struct.pack(">BBHII", 0x80 | (pad > 0) << 5 | (ext is not None) << 4 | csrc, kind, seq % 65536, ts % 2**32, ssrc)
    s += struct.pack(">I", 9) * csrc
    if ext is not None: s += struct.pack(">HH", 0xbede, len(ext) // 4) + ext
    return s + payload + (bytes(pad - 1) + bytes([pad]) if pad else b"")
def ramp(at, n): return [(v * 7919 % 2**24 - 2**23, -v) for v in range(at, at + n)]
def pcm(frames): return b"".join((a % 2**24).to_bytes(3, "big") + (b % 2**24).to_bytes(3, "big") for a, b in frames)
packets, want = [], {}
def send(k, **more): packets.append(rtp(65500 + k, 2**32 - 480 + 48 * k, 0x1234abcd, pcm(ramp(48 * k, 48)), **more))
lost = {5, 6, 7, 50}
for k in range(100):
    if k in lost: continue
    send(k, csrc=k % 3, ext=bytes(8) if k % 4 == 1 else None, pad=4 if k % 5 == 2 else 0)
packets[20], packets[22] = packets[22], packets[20]
packets.insert(31, packets[30])
packets.append(packets[0])
want["1234abcd"] = [(0, 0) if i // 48 in lost else f for i, f in enumerate(ramp(0, 4800))]
for k in (100, 101): packets.append(rtp(65500 + k, 5 * 10**8 + 48 * k, 0x1234abcd, pcm(ramp(48 * k, 48))))
want["1234abcd_2"] = ramp(4800, 96)
for k in range(3): packets.append(rtp(k, 10 * k, 7, pcm(ramp(10 * k, 10))))
for k in range(4): packets.append(rtp(40000 + k, 10**6 + 10 * k, 7, pcm(ramp(500 + 10 * k, 10))))
want["00000007"], want["00000007_2"] = ramp(0, 30), ramp(510, 30)
packets += [rtp(1, 1, 8, b"comfort noise", kind=13), b"short", rtp(1, 1, 9, bytes(7)), b"\x40" + bytes(20), rtp(1, 1, 9, b"", ext=b"")[:14]]
json.dump(want, open("want.json", "w"))
capture("x.pcap", [(p, 5004) for p in packets])
`

const rtpCheck = `
import glob, json, wave
want = json.load(open("want.json"))
assert sorted(glob.glob("run_*.wav")) == sorted("run_%s.wav" % name for name in want)
for name, frames in want.items():
    with wave.open("run_%s.wav" % name) as f:
        assert (f.getnchannels(), f.getsampwidth(), f.getframerate(), f.getnframes()) == (2, 3, 48000, len(frames)), (name, f.getparams())
        data = f.readframes(len(frames))
    got = [[int.from_bytes(data[6 * i + 3 * c:6 * i + 3 * c + 3], "little", signed=True) for c in (0, 1)] for i in range(len(frames))]
    assert got == frames, (name, next(i for i, (g, w) in enumerate(zip(got, frames)) if g != w))
`

// TestRtpRecord compares the samples of WAV files, as Python's module wave reads them, with what was sent.
func TestRtpRecord(t *testing.T) {
	r := recorder{"rtp_record", rtpStreams, []string{"--write", "run", "--payload_type", "97"}, rtpCheck, []string{
		"run_1234abcd.wav: 4800 frames from 2023-11-14T22:13:20Z", "2 late, 0 twice, 1 strays, 1 of other types, 4 malformed",
		"192 frames are missing in 2 gaps; 1 jumps, 1 restarts"}}
	dir := r.run(t)
	refused(t, dir, "rtp_record", map[string][]string{
		"cannot create run_1234abcd.wav: it exists": {"--source", "x.pcap", "--write", "run"},
		"cannot open nosuch":                        {"--source", "nosuch"},
		"--bits 20 is not valid":                    {"--bits", "20"},
		"--channels 0 is not valid":                 {"--channels", "0"},
		"of further streams are not recorded":       {"--source", "x.pcap", "--write", "few", "--payload_type", "97", "--streams", "1"},
	})
}

// TestRtpTshark compares the fields of headers that the format rtp reads with those of Wireshark.
func TestRtpTshark(t *testing.T) {
	harness.Need(t, "tshark")
	r := recorder{"rtp_record", rtpStreams, []string{"--write", "run", "--payload_type", "97"}, "", nil}
	dir := r.run(t)
	script := `
local s = require("daqiri").open("replay.yaml")
s:rx_queue("src"):on_burst(function(b)
  local f = {}
  for _, name in ipairs{ "sequence_number", "timestamp", "ssrc", "payload_type", "csrc_count" } do f[#f + 1] = b:column(name, "rtp") end
  for i = 1, b.n do
    local row = {}
    for k = 1, #f do row[k] = tostring(f[k][i]) end
    print(table.concat(row, " "))
  end
end)
s:run{}
`
	for name, text := range map[string]string{"x.lua": script, "replay.yaml": fmt.Sprintf(harness.ReplayConfig, "pcap:x.pcap", "")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := strings.Split(strings.TrimSpace(in(t, dir, harness.Built(t), "--summary", "none", "x.lua")), "\n")
	out, err := exec.Command("tshark", "-n", "-r", filepath.Join(dir, "x.pcap"), "-d", "udp.port==5004,rtp", "-T", "fields", "-E", "separator= ",
		"-e", "rtp.seq", "-e", "rtp.timestamp", "-e", "rtp.ssrc", "-e", "rtp.p_type", "-e", "rtp.cc").Output()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, line := range strings.Split(string(out), "\n") {
		var seq, ts, ssrc, kind, cc uint64
		if n, _ := fmt.Sscanf(line, "%d %d %v %d %d", &seq, &ts, &ssrc, &kind, &cc); n != 5 {
			continue // not RTP
		}
		compared++
		if want := fmt.Sprint(seq, " ", ts, " ", ssrc, " ", kind, " ", cc); i >= len(ours) || ours[i] != want {
			t.Fatalf("packet %d: %q, and Wireshark has %q", i+1, ours[i], want)
		}
	}
	if compared < 105 {
		t.Errorf("%d packets compared", compared)
	}
}
