package look

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/samples"
	"github.com/daqiri/daqiri-run/runtime/signal"
)

const declared = `return { name = "digitiser", sequence = "counter",
  { "magic", 16, const = 0x4431 }, { "antenna", 8 }, { "counter", 32 } }`

func declare(t *testing.T, text string) *format.Format {
	t.Helper()
	f, err := luaformat.Load("digitiser.lua", text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func sampleType(t *testing.T, name string) *samples.Type {
	t.Helper()
	typ, err := samples.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// perPacket is the number of samples of a packet of the tests.
const perPacket = 64

// digitised returns a payload: 64 complex samples of 8 bits, a tone of half of full scale whose frequency depends on the antenna.
func digitised(antenna byte, n int, counter uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0x44, 0x31, antenna}, counter)
	for k := range perPacket {
		phase := 2 * math.Pi * (0.125 + 0.25*float64(antenna)) * float64(n*perPacket+k)
		b = append(b, byte(int8(math.Round(64*math.Cos(phase)))), byte(int8(math.Round(64*math.Sin(phase)))))
	}
	return b
}

// writeCapture writes a pcap of UDP packets over IPv4 with these payloads.
func writeCapture(t *testing.T, payloads ...[]byte) string {
	t.Helper()
	var b bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	put([]uint32{0xa1b2c3d4, 4<<16 | 2, 0, 0, 65535, 1})
	for i, p := range payloads {
		frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0}, binary.BigEndian.AppendUint16(nil, uint16(28+len(p)))...)
		frame = append(frame, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x1b, 0xec, 0x1b, 0xec)
		frame = binary.BigEndian.AppendUint16(frame, uint16(8+len(p)))
		frame = append(append(frame, 0, 0), p...)
		put([]uint32{1, uint32(i), uint32(len(frame)), uint32(len(frame))})
		b.Write(frame)
	}
	return writeFile(t, "test.pcap", b.Bytes())
}

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// lossy returns a capture of two antennas of 200 packets each, whose counters have a step of 5. Antenna 1 lacks 3 packets, has one twice and one
// displaced by five. One packet is of another format, and one has half a sample too much.
func lossy(t *testing.T) string {
	t.Helper()
	var payloads [][]byte
	for n := range 200 {
		payloads = append(payloads, digitised(0, n, uint32(n*5)))
		switch p := digitised(1, n, uint32(n*5)-100); n { // this counter wraps
		case 50, 51, 90, 120:
		case 70:
			payloads = append(payloads, p, p)
		case 95:
			payloads = append(payloads, p, digitised(1, 90, 90*5-100))
		default:
			payloads = append(payloads, p)
		}
	}
	payloads = append(payloads, []byte("another format"), append(digitised(0, 200, 1000), 7), nil)
	return writeCapture(t, payloads...)
}

func read(t *testing.T, o Options) *Result {
	t.Helper()
	if o.Window.Name == "" {
		o.Window = signal.Windows[0]
	}
	r, err := Read(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCapture(t *testing.T) {
	r := read(t, Options{Source: lossy(t), Format: declare(t, declared), Type: sampleType(t, "ci8"), By: []string{"antenna"}})
	const want = `antenna 0: rms 45.13 codes, 0 % clipped, peak 0.1250 cycles/sample -6.0 dBFS
  12,800 samples of type ci8 in 200 packets
  values from -64 to 64, mean 0
  3 transforms of 4096 points, window Hann, 512 samples unused
antenna 1: rms 45.13 codes, 0 % clipped, peak 0.3750 cycles/sample -6.0 dBFS
  12,608 samples of type ci8 in 197 packets
  192 samples missing: 1.5 %
  1 packet with a number that another one has
  values from -64 to 64, mean 0
  2 transforms of 4096 points, window Hann, 4,416 samples unused
skipped: 2 packets of another format or without payload
skipped: 1 packet with a payload that is not whole samples
the first one: magic is 24942, and of digitiser it is 17457
`
	if got := text(t, r); got != want {
		t.Errorf("got:\n%s", got)
	}
}

// TestPerFormat checks that the fields of a format's sequence separate streams without By, and that streams that are not separated are noticed.
func TestPerFormat(t *testing.T) {
	source := lossy(t)
	per := strings.Replace(declared, `"counter",`, `{ "counter", per = { "antenna" } },`, 1)
	if r := read(t, Options{Source: source, Format: declare(t, per), Type: sampleType(t, "ci8")}); len(r.Streams) != 2 || r.Streams[1].Name != "antenna 1" {
		t.Errorf("%d streams", len(r.Streams))
	}
	same := writeCapture(t, digitised(0, 0, 7), digitised(1, 0, 7))
	if got := text(t, read(t, Options{Source: same, Format: declare(t, declared), Type: sampleType(t, "ci8")})); !strings.Contains(got, "--by FIELD") {
		t.Errorf("got:\n%s", got)
	}
}

// TestDeclared checks that the type, the rate and the number of samples are those that a format declares.
func TestDeclared(t *testing.T) {
	const header = `return { name = "stated", sequence = "seq", { "seq", 8 }, { "n", 8 }, { "bits", 8 }, samples = { type = { of = "bits", [8] = "i8", [4] = "i4" }, count = "n", rate = "1e6 * n" } }`
	source := writeCapture(t, []byte("\x01\x03\x08abcd"), []byte("\x02\x02\x08ab"), []byte("\x03\x05\x08abcd"), []byte("\x04\x04\x04ab"), []byte("\x05\x04\x07abcd"))
	r := read(t, Options{Source: source, Format: declare(t, header)})
	s := r.Streams[0]
	if s.Samples != 5 || s.Levels.Greatest != 'c' || r.Partial != 1 || r.Other != 2 || r.Rate != 3e6 || r.Type.String() != "i8" {
		t.Errorf("%d samples of %s up to %g at %g/s, %d partial and %d other packets", s.Samples, r.Type, s.Levels.Greatest, r.Rate, r.Partial, r.Other)
	}
	if want := "its header states 5 samples, and its payload has 4"; r.Example != want {
		t.Errorf("%q, expected %q", r.Example, want)
	}
	r = read(t, Options{Source: source, Format: declare(t, header), Type: sampleType(t, "u8"), Rate: 7})
	if s := r.Streams[0]; s.Samples != 9 || r.Partial != 2 || r.Other != 0 || r.Rate != 7 {
		t.Errorf("with a type: %d samples, %d other packets, rate %g", s.Samples, r.Other, r.Rate)
	}
}

// TestDimensions checks that samples of several channels are noticed.
func TestDimensions(t *testing.T) {
	const header = `return { name = "channels", { "n", 8 }, samples = { type = "i8", shape = { "*", "n" } } }`
	for payload, want := range map[string]bool{"\x01abcd": false, "\x02abcd": true, "\x04abcd": false} {
		r := read(t, Options{Source: writeCapture(t, []byte(payload)), Format: declare(t, header)})
		if got := text(t, r); strings.Contains(got, "dimensions [2 2]") != want {
			t.Errorf("%q:\n%s", payload, got)
		}
	}
}

// TestRestart checks that a sender whose counter begins again is neither lost nor a gap.
func TestRestart(t *testing.T) {
	var payloads [][]byte
	for n := range 300 {
		payloads = append(payloads, digitised(0, n, uint32(5000+n)))
	}
	for n := range 300 {
		payloads = append(payloads, digitised(0, n, uint32(n)))
	}
	r := read(t, Options{Source: writeCapture(t, payloads...), Format: declare(t, declared), Type: sampleType(t, "ci8"), By: []string{"antenna"}})
	if s := r.Streams[0]; s.Restarts != 1 || s.Missing != 0 || s.Packets != 600 || s.Late != 0 {
		t.Errorf("%d packets, %d late, %d restarts, %d samples missing", s.Packets, s.Late, s.Restarts, s.Missing)
	}
}

// TestCut checks that the figures of a capture that is cut off are those of its whole packets, beside the error.
func TestCut(t *testing.T) {
	source := writeCapture(t, digitised(0, 0, 0), digitised(0, 1, 1))
	content, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, Options{Source: writeFile(t, "cut.pcap", content[:len(content)-10]), Type: sampleType(t, "ci8"), Offset: 7})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "cut.pcap") || len(r.Streams) != 1 || r.Streams[0].Samples != perPacket {
		t.Errorf("error %v, %d streams", r.Err, len(r.Streams))
	}
}

func TestUnnumbered(t *testing.T) {
	source := writeCapture(t, digitised(0, 0, 0), digitised(0, 9, 0), []byte("short"))
	r := read(t, Options{Source: source, Type: sampleType(t, "ci8"), Offset: 7})
	s := r.Streams[0]
	if s.Spectrum.Points() != perPacket || s.Spectrum.Blocks != 2 || s.Numbered || r.Other != 1 {
		t.Errorf("%d transforms of %d points, numbered %v, %d other packets", s.Spectrum.Blocks, s.Spectrum.Points(), s.Numbered, r.Other)
	}
}

// blockFile returns a block file of two blocks of 4 cells of 16 samples, int16; block 1 lacks cell 2, and block 2 is 5 blocks later.
func blockFile(blockBytes uint64) []byte {
	head := blockHeader{Version: 1, HeaderBytes: 4096, BlockBytes: blockBytes, BlockHeaderBytes: 128, Slots: 2, SlotBytes: 64, Cells: 4, CellBytes: 32,
		PresentBits: 4, PresentAt: 64}
	copy(head.Magic[:], blockMagic)
	copy(head.DtypeName[:], "int16")
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, head)
	b.Write(make([]byte, 4096-b.Len()))
	for i, ordinal := range []uint64{1, 6} {
		block := make([]byte, 4096)
		binary.LittleEndian.PutUint64(block[16:], ordinal)
		block[64] = []byte{0b1011, 0b1111}[i]
		for k := range 64 {
			binary.LittleEndian.PutUint16(block[128+2*k:], uint16(100*k))
		}
		b.Write(block)
	}
	return append(b.Bytes(), "incomplete"...)
}

func TestBlocks(t *testing.T) {
	r := read(t, Options{Source: writeFile(t, "x.dqb", blockFile(4096)), Points: 16})
	s := r.Streams[0]
	if s.Samples != 112 || s.Missing != 16 || s.Spectrum.Blocks != 7 || s.Levels.Greatest != 6300 || r.Packets != 2 {
		t.Errorf("%d samples, %d missing, %d transforms, up to %g, %d blocks", s.Samples, s.Missing, s.Spectrum.Blocks, s.Levels.Greatest, r.Packets)
	}
}

func TestRaw(t *testing.T) {
	var content []byte
	for _, v := range []float64{0.5, math.NaN(), -2, math.Inf(1)} {
		content = binary.LittleEndian.AppendUint32(content, math.Float32bits(float32(v)))
	}
	r := read(t, Options{Source: writeFile(t, "x.raw", append(append([]byte("head"), content...), 1, 2)), Type: sampleType(t, "f32le"), Offset: 4})
	const want = `rms 1.458, 50.0 % clipped
  4 samples of type f32le in 1 file
  values from -2 to 0.5, mean -0.75
  1 NaN, 1 infinite
  no spectrum: there are no 4 consecutive finite samples: set --points
unused: 2 bytes at the end, which are not whole samples of f32le
`
	if got := text(t, r); got != want {
		t.Errorf("got:\n%s", got)
	}
	if _, err := r.PNG(t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	ci8 := sampleType(t, "ci8")
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Source: writeFile(t, "a.raw", nil), Type: ci8}, "the file is empty"},
		{Options{Source: writeFile(t, "a.raw", []byte("abcd"))}, "set --samples"},
		{Options{Source: writeFile(t, "a.dqb", blockFile(100))}, "sizes in its header"},
		{Options{Source: writeFile(t, "a.dqb", blockFile(4096)[:90])}, "its header is incomplete"},
		{Options{Source: writeFile(t, "a.dqb", blockFile(4096)), Type: sampleType(t, "i24be")}, "a cell of 32 bytes is not whole samples of i24be"},
		{Options{Source: writeFile(t, "a.pcap", []byte("not one")), Type: ci8}, "a.pcap"},
		{Options{Source: writeFile(t, "a.pcap", []byte("\xd4\xc3\xb2\xa1cut")), Type: ci8}, "a.pcap"},
		{Options{Source: writeCapture(t), Type: ci8}, "there is no packet in it"},
		{Options{Source: writeCapture(t, []byte("odd")), Type: ci8}, "the first one: a payload of 3 bytes is not whole samples of ci8, which are multiples of 2 bytes"},
		{Options{Source: writeCapture(t, nil), Type: ci8}, "its payload is empty"},
		{Options{Source: t.TempDir(), Type: ci8}, "it is a folder"},
		{Options{Source: "gone", Type: ci8}, "gone is not a valid source"},
		{Options{Source: "gone", Type: ci8, Points: 100}, "100 is not a valid number of points"},
	} {
		c.o.Window = signal.Windows[0]
		r, err := Read(context.Background(), c.o)
		if err == nil {
			err = r.Check()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", c.o.Source, err, c.want)
		}
	}
}

// least and most are the colors at the ends of the color map.
var least, most = color.RGBA{68, 1, 84, 255}, color.RGBA{253, 231, 37, 255}

// plotOf returns the area inside of the frame of a picture.
func plotOf(drawn image.Image) (r image.Rectangle) {
	frame, size := color.RGBA{40, 40, 40, 255}, drawn.Bounds()
	line := func(n int, at func(k int) color.Color) bool {
		inked := 0
		for k := range n {
			if at(k) == frame {
				inked++
			}
		}
		return inked > n/4
	}
	for x := size.Max.X - 1; x >= 0; x-- {
		if line(size.Dy(), func(y int) color.Color { return drawn.At(x, y) }) {
			r.Min.X, r.Max.X = x+1, r.Min.X-1
		}
	}
	for y := range size.Max.Y {
		if line(size.Dx(), func(x int) color.Color { return drawn.At(x, y) }) {
			r.Min.Y, r.Max.Y = r.Max.Y+1, y
		}
	}
	return r
}

// TestPNG finds the tones and the gaps in the pictures.
func TestPNG(t *testing.T) {
	r := read(t, Options{Source: lossy(t), Format: declare(t, declared), Type: sampleType(t, "ci8"), By: []string{"antenna"}, Rate: 1e6})
	dir := filepath.Join(t.TempDir(), "pictures")
	files, err := r.PNG(dir)
	if err != nil || len(files) != 11 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for antenna, at := range []float64{0.125, 0.375} {
		drawn := decode(t, filepath.Join(dir, []string{"antenna-0-waterfall.png", "antenna-1-waterfall.png"}[antenna]))
		plot := plotOf(drawn)
		x, y := plot.Min.X+int((0.5+at)*float64(plot.Dx())), (plot.Min.Y+plot.Max.Y)/2
		if got := drawn.At(x, y); got != most {
			t.Errorf("antenna %d: %v in the column of the tone", antenna, got)
		}
		if got := drawn.At(x-plot.Dx()/10, y); got == most {
			t.Errorf("antenna %d: the greatest level beside the tone", antenna)
		}
	}
	gaps := decode(t, filepath.Join(dir, "gaps.png"))
	plot := plotOf(gaps)
	for packet, missing := range map[int]bool{10: false, 51: true, 52: false, 120: true, 150: false} {
		x, y := plot.Min.X+(2*packet+1)*plot.Dx()/400, plot.Max.Y-10
		if got := gaps.At(x, y); (got == most) != missing {
			t.Errorf("packet %d of antenna 1 has the color %v", packet, got)
		}
		if got := gaps.At(x, plot.Min.Y+10); got != least {
			t.Errorf("packet %d of antenna 0 has the color %v", packet, got)
		}
	}
}

func decode(t *testing.T, name string) image.Image {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	drawn, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return drawn
}

func TestTerminal(t *testing.T) {
	r := read(t, Options{Source: lossy(t), Format: declare(t, declared), Type: sampleType(t, "ci8"), By: []string{"antenna"}})
	draw := func(s picture.Screen) string {
		var b strings.Builder
		if err := r.Terminal(&b, s); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for line := range strings.Lines(draw(picture.Screen{Width: 60})) {
		if n := len([]rune(line)); n > 61 && !strings.ContainsAny(line, "rms,:") {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.Contains(line, "\x1b") {
			t.Errorf("colors: %q", line)
		}
	}
	if got := draw(picture.Screen{Color: true}); !strings.Contains(got, "\x1b[38;2;253;231;37m") || !strings.Contains(got, "⢸") {
		t.Errorf("got:\n%s", got)
	}
	plain := draw(picture.Screen{Plain: true})
	if strings.ContainsAny(plain, "▀⣿\x1b") || !strings.Contains(plain, "\n0.125\t-6.0\t-6.0\t-6.0\n") {
		t.Errorf("got:\n%s", plain)
	}
}

// TestUpdate checks that a reader is updated while it reads, that pending packets of a slow live stream become part of its figures, and that a period
// has figures of its own.
func TestUpdate(t *testing.T) {
	updates := 0
	r := read(t, Options{Source: lossy(t), Format: declare(t, declared), Type: sampleType(t, "ci8"), By: []string{"antenna"}, Update: func(*Result) error { updates++; return nil }})
	if updates == 0 || r.figures()[1].Missing != 192 || r.figures()[1].Waterfall.Unit != "samples" {
		t.Errorf("%d updates", updates)
	}
	r.Points = 0
	live := &Result{Options: r.Options, live: true, container: "packet", byKey: map[string]*Stream{}}
	at := func() uint64 { return live.figures()[0].Packets }
	for n := range 40 {
		live.stream([]uint64{0}).add(uint64(5*n), true, digitised(0, n, 0)[7:], math.MaxInt)
		if n == 19 {
			if err := live.tick(); err != nil || len(live.figures()) != 0 { // none is older than a period
				t.Errorf("%d streams have figures, %v", len(live.figures()), err)
			}
			live.updated = live.opened
		}
	}
	for i, want := range []uint64{20, 40} {
		live.updated = live.opened
		if err := live.tick(); err != nil || at() != want || live.Streams[0].Missing != 0 {
			t.Errorf("period %d: %d packets, expected %d; %d samples missing, %v", i, at(), want, live.Streams[0].Missing, err)
		}
	}
	if f := live.figures()[0]; f.Time.Per*float64(len(f.Time.Columns[0])) != 20*perPacket || f.Waterfall.Unit != "s" {
		t.Errorf("figures of %d samples", len(f.Time.Columns[0]))
	}
}
