package cli

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

const digitiser = `return { name = "digitiser", sequence = { "seq", per = { "antenna" } }, { "antenna", 8 }, { "seq", 32 }, samples = { type = "ci8", rate = 1e6 } }`

// lookUpdate is an update of the page of look, as far as the test reads it.
type lookUpdate struct {
	State   string
	Notes   []string
	Streams []struct {
		Name                      string
		Packets, Samples, Missing uint64
		Spectrum                  *struct {
			From, To float64
			Average  []float64
		}
		Waterfall *struct {
			Columns int
			Lines   []byte
			Ages    []float64
		}
	}
}

// tone returns a packet of 256 samples: a tone at 125 kHz, for antenna 1 at -250 kHz, of half of full scale, and noise.
func tone(antenna byte, seq uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{antenna}, seq)
	for k := range 256 {
		phase := 2 * math.Pi * (0.125 - 0.375*float64(antenna)) * float64(uint64(seq)*256+uint64(k))
		b = append(b, byte(int8(64*math.Cos(phase)+2*rand.NormFloat64())), byte(int8(64*math.Sin(phase)+2*rand.NormFloat64())))
	}
	return b
}

// digitise sends packets of two antennas until it is stopped, 400 a second of each. Antenna 1 leaves out every 50th. stop returns the numbers of sent
// and of omitted packets.
func digitise(t *testing.T, port int) (stop func() (sent, omitted uint64)) {
	t.Helper()
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	var sent, omitted uint64
	done := make(chan error, 1)
	go func() {
		var err error
		for seq := uint32(0); (!ended.Load() || seq%50 == 0) && err == nil; seq++ { // a gap at the end has no packet behind it
			for antenna := range byte(2) {
				if antenna == 1 && seq%50 == 49 {
					omitted++
					continue
				}
				if _, err = c.Write(tone(antenna, seq)); err == nil {
					sent++
				}
			}
			time.Sleep(2500 * time.Microsecond)
		}
		done <- err
	}()
	return func() (uint64, uint64) {
		t.Helper()
		ended.Store(true)
		if err := <-done; err != nil {
			t.Errorf("cannot send: %v", err)
		}
		_ = c.Close()
		return sent, omitted
	}
}

// lookAt starts look on a port and returns its process and the address of its page.
func lookAt(t *testing.T, port int) (*exec.Cmd, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "digitiser.lua"), []byte(digitiser), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), "look", "127.0.0.1:"+strconv.Itoa(port), "--format", "digitiser.lua")
	out := &harness.Buffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	at := regexp.MustCompile(`^http://127\.0\.0\.1:\d+/\n`)
	harness.Until(t, "address", func() bool { return at.MatchString(out.String()) })
	harness.Until(t, "socket", func() bool {
		l, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			_ = l.Close()
		}
		return err != nil
	})
	return cmd, strings.TrimSpace(at.FindString(out.String()))
}

// screen returns a picture of a page in a browser that prefers either color scheme.
func screen(t *testing.T, url string, dark bool) (file string, picture image.Image) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "screen.png")
	scheme := map[bool]string{true: "0", false: "1"}[dark]
	text, err := exec.Command("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--window-size=930,860", "--hide-scrollbars",
		"--blink-settings=preferredColorScheme="+scheme, "--screenshot="+file, url).CombinedOutput()
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, text)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if picture, err = png.Decode(f); err != nil {
		t.Fatal(err)
	}
	return file, picture
}

// checkStreams compares the streams of an update with what was sent.
func checkStreams(t *testing.T, u lookUpdate, sent, omitted uint64) {
	t.Helper()
	if len(u.Streams) != 2 || len(u.Notes) > 0 {
		t.Fatalf("%d streams, notes %q", len(u.Streams), u.Notes)
	}
	a, b := u.Streams[0], u.Streams[1]
	if a.Packets+b.Packets != sent || a.Samples+b.Samples != 256*sent || a.Missing != 0 || b.Missing != 256*omitted {
		t.Errorf("%d and %d packets, %d and %d samples missing; sent %d packets, omitted %d", a.Packets, b.Packets, a.Missing, b.Missing, sent, omitted)
	}
	for i, s := range u.Streams {
		want := []float64{0.125, -0.25}[i]
		loudest := slices.Index(s.Spectrum.Average, slices.Max(s.Spectrum.Average))
		at := s.Spectrum.From + (float64(loudest)+0.5)/float64(len(s.Spectrum.Average))*(s.Spectrum.To-s.Spectrum.From)
		if math.Abs(at-want) > 0.002 || math.Abs(s.Spectrum.Average[loudest]+6) > 0.5 {
			t.Errorf("%s: peak at %g cycles/sample, %g dBFS", s.Name, at, s.Spectrum.Average[loudest])
		}
		w, bright := s.Waterfall, 0
		column := int((0.5 + want) * float64(w.Columns))
		for row := range w.Ages {
			line := w.Lines[row*w.Columns:][:w.Columns]
			if slices.Max(line) > 0 && slices.Max(line[column-1:column+2]) != slices.Max(line) {
				t.Errorf("%s: the tone is not the brightest of line %d", s.Name, row)
			} else if slices.Max(line) > 0 {
				bright++
			}
		}
		if bright == 0 || !slices.IsSorted(w.Ages) {
			t.Errorf("%s: the tone is in %d lines, ages %v", s.Name, bright, w.Ages)
		}
	}
}

// TestLookPage opens the live page of a stream: it has the tones, exactly the missing samples, and the colors that the browser prefers.
func TestLookPage(t *testing.T) {
	harness.Need(t, "chromium")
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.LocalAddr().(*net.UDPAddr).Port
	_ = l.Close()
	cmd, page := lookAt(t, port)
	events, err := http.Get(page + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	lines := bufio.NewReaderSize(events.Body, 1<<20)
	next := func() (u lookUpdate, more bool) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil || line == "event: end\n" {
				return u, false
			}
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				if err := json.Unmarshal([]byte(text), &u); err != nil {
					t.Fatal(err)
				}
				return u, true
			}
		}
	}
	stop, updates := digitise(t, port), 5
	if *update {
		updates = 36
	}
	var u lookUpdate
	for n, before := 0, uint64(0); n < updates; {
		if u, _ = next(); len(u.Streams) == 2 && u.Streams[0].Spectrum != nil && u.Streams[0].Packets > before && u.State == "live" {
			n, before = n+1, u.Streams[0].Packets
		}
	}
	_, light := screen(t, page, false)
	file, dark := screen(t, page, true)
	for _, c := range []struct {
		picture image.Image
		want    color.RGBA
	}{{light, color.RGBA{255, 255, 255, 255}}, {dark, color.RGBA{0x14, 0x17, 0x1a, 255}}} {
		if got := color.RGBAModel.Convert(c.picture.At(2, 2)); got != c.want {
			t.Errorf("the background is %v, expected %v", got, c.want)
		}
	}
	sent, omitted := stop()
	for whole := true; whole; { // the last packets become part of the figures when no further one comes
		v, more := next()
		if whole = more && v.State != "live, no packets for 2 s"; v.Streams != nil {
			u = v
		}
	}
	checkStreams(t, u, sent, omitted)
	_ = cmd.Process.Signal(syscall.SIGINT)
	for more := true; more; {
		_, more = next()
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if *update {
		if err := os.Rename(file, "../../docs/look.png"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLookPageOfFile opens the page of a file: it is complete, and has the panels of complex samples.
func TestLookPageOfFile(t *testing.T) {
	harness.Need(t, "chromium")
	name := filepath.Join(t.TempDir(), "tone.raw")
	var content []byte
	for seq := range uint32(64) {
		content = append(content, tone(0, seq)[5:]...)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), "look", name, "--samples", "ci8", "--rate", "1e6", "--web", ":0")
	out := &harness.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	harness.Until(t, "address", func() bool { return strings.Contains(out.String(), "/\n") })
	page := strings.TrimSpace(out.String())
	harness.Until(t, "complete page", func() bool {
		_, body := status(t, page, strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/"), nil)
		return strings.Contains(string(body), `"State":"complete"`)
	})
	text, err := exec.Command("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--dump-dom", page).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	dom := string(text)
	for _, want := range []string{`<span id="state">complete</span>`, "1 file, 1 stream", "Power spectrum", "Waterfall", "Histogram of values", "Time series", "Constellation",
		"4 transforms of 4096 points, window Hann", "0 % clipped"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, m := range outside.FindAllString(dom, -1) {
		t.Errorf("the page asks for something elsewhere: %s", m)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, out.String())
	}
}
