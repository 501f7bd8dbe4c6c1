package files

import "testing"

// vdifStations writes a capture of two stations, by the layout of VDIF 1.1.1: Ab with headers of 32 bytes, threads 0, 5 and 9, an extended header and a
// packet counter before each frame, of which some are lost, late, twice or marked invalid, across two ends of seconds; station 21 with legacy
// headers, lost frames at the end of a second, and a jump of a year. want.vdif files are made from the same frames.
const vdifStations = `
def vdif(seconds, number, thread, station, payload, legacy=False, invalid=False, edv=0):
    size = 16 if legacy else 32
    words = [seconds | legacy << 30 | invalid << 31, number | 46 << 24, (size + len(payload)) // 8 | 1 << 24 | 1 << 29,
        station | thread << 16 | 1 << 26]
    if not legacy: words += [edv << 24 | 7, 8, 9, 10]
    return struct.pack("<%dI" % len(words), *words) + payload
ab, frames, want = 0x4162, [], b""
lost = {(10, 3, 0), (10, 3, 5), (10, 3, 9), (10, 4, 5), (11, 0, 0), (12, 3, 9)}
times = [(10, 2), (10, 3), (10, 4), *((11, f) for f in range(5)), (12, 0), (12, 1), (12, 2), (12, 3)]
for s, f in times:
    for thread in (0, 5, 9):
        data = random.randbytes(48)
        one = vdif(s, f, thread, ab, data, invalid=(s, f, thread) == (11, 2, 5), edv=3)
        if (s, f, thread) in lost: one = vdif(s, f, thread, ab, bytes(48), invalid=True, edv=3)
        else: frames.append(one)
        want += one
open("want_Ab.vdif", "wb").write(want)
frames[7], frames[12] = frames[12], frames[7]       # in another order, across a second
frames.insert(9, frames[8])                          # twice
other = []
want = b""
for s, f in [(5, 0), (5, 1), (5, 2), (6, 0), (6, 1), (6, 2), (6, 3), (7, 0), (31536000, 2)]:
    other.append(vdif(s, f, 0, 21, random.randbytes(16), legacy=True))
    want += other[-1]
open("want_21.vdif", "wb").write(want)
packets = [(b"", f) for f in frames] + [(b"", f) for f in other] + [(b"", frames[0]), (b"", b"short"), (b"", other[0][:8] + b"\xff\0\0\0" + bytes(20)),
    (b"", vdif(12, 3, 9, ab, bytes(56)))]
capture("x.pcap", [(bytes([i % 256]) * 8 + f + b"behind"[:i % 2], 12345) for i, (_, f) in enumerate(packets)])
`

// vdifCheck reads the files by the header alone, and compares them with what is wanted.
const vdifCheck = `
import struct
def read(path):
    data, at, list = open(path, "rb").read(), 0, []
    while at < len(data):
        w = struct.unpack_from("<4I", data, at)
        size = (w[2] & 0xffffff) * 8
        head = 16 if w[0] >> 30 & 1 else 32
        list.append((w[0] & 0x3fffffff, w[1] & 0xffffff, w[3] >> 16 & 0x3ff, w[0] >> 31, data[at + head:at + size]))
        at += size
    assert at == len(data)
    return list
for name in ("Ab", "21"):
    got, want = read("run_%s.vdif" % name), read("want_%s.vdif" % name)
    assert [g[:3] for g in got] == [w[:3] for w in want], [g[:3] for g in got]
    assert got == want, name
    assert open("run_%s.vdif" % name, "rb").read() == open("want_%s.vdif" % name, "rb").read()
`

// TestVdifRecord compares the files with the frames that Python generated, fillers included.
func TestVdifRecord(t *testing.T) {
	r := recorder{"vdif_record", vdifStations, []string{"--write", "run", "--skip", "8", "--window", "4"}, vdifCheck,
		[]string{"threads 0, 5, 9; 5 frames in a second", "1 late, 1 twice, 1 of another length, 1 marked invalid", "1 jumps", "were taken to be fewer", "2 packets without a whole frame"}}
	dir := r.run(t)
	refused(t, dir, "vdif_record", map[string][]string{
		"cannot create run_Ab.vdif: it exists": {"--source", "x.pcap", "--write", "run", "--skip", "8"},
		"cannot open nosuch":                   {"--source", "nosuch"},
		"--skip -1 is not valid":               {"--skip", "-1"},
		"--window 1.5 is not valid":            {"--window", "1.5"},
	})
}
