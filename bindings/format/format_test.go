package format

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/format"
)

// TestFormatRoundTrip encodes 10^5 sets of random values per library format and checks that they decode to the same values.
func TestFormatRoundTrip(t *testing.T) {
	library := os.DirFS("../../stdlib")
	names := LibraryNames(library)
	if len(names) < 20 {
		t.Fatalf("%d formats", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := FromLibrary(library, name)
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 16))
			for range 100000 {
				roundTrip(t, f, random)
			}
		})
	}
}

func roundTrip(t *testing.T, f *format.Format, random *rand.Rand) {
	t.Helper()
	given, payload := f.Draw(random)
	packet, err := f.Encode(given, payload)
	if err != nil {
		t.Fatalf("%v: %v", given, err)
	}
	read, err := f.Decode(packet)
	if err != nil {
		t.Fatalf("%x: %v", packet, err)
	}
	found := 0
	for _, r := range read {
		want, ok := given[r.Name]
		if !ok {
			continue
		}
		found++
		got := r.Given()
		if got.Raw != want.Raw || !bytes.Equal(got.Bytes, want.Bytes) && want.Bytes != nil || !endsWith(got.Items, want.Items) {
			t.Fatalf("%x: %s was %v and is %v", packet, r.Name, want, got)
		}
	}
	if found != len(given) {
		t.Fatalf("%x: of %v only %v is there", packet, given, read)
	}
	if n, ok := f.HeaderBytes(packet); !ok || !bytes.HasPrefix(packet[n:], payload) {
		t.Fatalf("%x: the payload %x is not behind %d bytes", packet, payload, n)
	}
}

// endsWith reports whether a list of items ends with others: items with names are encoded first.
func endsWith(all, end []map[string]uint64) bool {
	return len(all) >= len(end) && slices.EqualFunc(all[len(all)-len(end):], end, func(a, b map[string]uint64) bool {
		for k, v := range a {
			if b[k] != v {
				return false
			}
		}
		return true
	})
}

// TestFormatText checks that hand-assembled packets are shown with value names, scales and units. The expected texts are computed by hand.
func TestFormatText(t *testing.T) {
	f, err := Load("x.lua", `return {
  { "kind", 8, values = { [1] = "data", [2] = "status" } },
  { "delta", "i8", values = { [-2] = "back" } },
  { "level", "i8", unit = "dBm" },
  { "rate", 16, unit = "Hz" },
  { "gain", "i16", scale = 0.5, offset = -10, unit = "dB" },
  { "year", 8, offset = 2000 },
  { "single", "f32", unit = "V" },
  { "double", "f64", scale = 2, unit = "K" },
  { "large", 64 },
  { "text", "bytes4" },
  { "mac", "mac" }, { "v4", "ipv4" }, { "v6", "ipv6" },
  { "n", 8 },
  { list = "parts", count = "n", key = "what", items = { first = 1 }, { "what", 8 }, { "value", 16 } } }`)
	if err != nil {
		t.Fatal(err)
	}
	const behind = "ffffffffffffffff" + "00610000" + "0200000000ff" + "0a00002a" + "20010db8000000000000000000000001" + "02" + "02000801fffe"
	for _, c := range []struct{ packet, want string }{
		{"01fe80c350" + "fffd" + "19" + "3dcccccd" + "3ff8000000000000" + behind, "kind=data delta=back level=-128 dBm rate=50000 Hz gain=-11.5 dB year=2025 " +
			"single=0.1 V double=3 K large=18446744073709551615 text=00610000 mac=02:00:00:00:00:ff v4=10.0.0.42 v6=2001:db8::1 n=2 parts=2 items first=65534"},
		{"03027f0000" + "0007" + "00" + "c2c80000" + "c000000000000000" + "0000000000000007" + "61626364" + behind[24:], "kind=3 delta=2 level=127 dBm rate=0 Hz " +
			"gain=-6.5 dB year=2000 single=-100 V double=-4 K large=7 text=61626364 mac=02:00:00:00:00:ff v4=10.0.0.42 v6=2001:db8::1 n=2 parts=2 items first=65534"},
	} {
		packet, err := hex.DecodeString(c.packet)
		if err != nil {
			t.Fatal(err)
		}
		read, err := f.Decode(packet)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range read {
			got = append(got, r.Name+"="+ReadText(r))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s:\n%s, not\n%s", c.packet, got, c.want)
		}
	}
}

// TestFormatVectors checks that a format is rejected if decoding or encoding differs from a test vector, and that the error names the difference.
func TestFormatVectors(t *testing.T) {
	for _, c := range []struct{ fields, vectors, want string }{
		{`{ "a", 16 }, { "b", "i8" }`, `{ hex = "0102 ff", a = 258, b = -1 }`, ""},
		{`{ "a", 16 }, { "b", "i8" }`, `{ hex = "0102ff", a = 513, b = -1 }`, "vectors[1]: a is 258, not 513"},
		{`{ "a", 16 }, { "b", "i8" }`, `{ hex = "0102ff", a = 258, b = 1 }`, "vectors[1]: b is -1, not 1"},
		{`{ "a", 8 }`, `{ hex = "01", a = 1 }, { hex = "02", a = 2 }, { hex = "03", a = 4 }`, "vectors[3]: a is 3, not 4"},
		{`{ "a", "bytes2" }`, `{ hex = "6100", a = "a\0" }`, ""},
		{`{ "a", "bytes2" }`, `{ hex = "6162", a = "ac" }`, "vectors[1]: a is 6162, not ac"},
		{`{ "a", "f32" }`, `{ hex = "3fc00000", a = 1.5 }`, ""},
		{`{ "a", "f32" }`, `{ hex = "3fc00000", a = 1.25 }`, "vectors[1]: a is 1.5, not 1.25"},
		{`{ "a", "mac" }`, `{ hex = "020000000007", a = "02:00:00:00:00:08" }`, "vectors[1]: a is 02:00:00:00:00:07, not 02:00:00:00:00:08"},
		{`{ "a", "ipv6" }`, `{ hex = "00000000000000000000000000000001", a = "::2" }`, "vectors[1]: a is ::1, not ::2"},
		{`{ "a", 8 }, { "b", 8 }`, `{ hex = "01", a = 1, b = 0 }`, "vectors[1]: the packet has no 'b'"},
		{`{ "a", 8, const = 7 }`, `{ hex = "08" }`, "vectors[1]: a is 8, and of x it is 7"},
		// encoding: omitted values are 0
		{`{ "a", 8 }, { "b", 8 }`, `{ hex = "0102", a = 1 }`, "vectors[1]: encoded it is 0100"},
		{`{ "a", 4 }, { reserved = 4 }`, `{ hex = "1f", a = 1 }`, "vectors[1]: encoded it is 10"},
		{`{ "a", 8 }`, `{ hex = "017879", a = 1, payload = "xy" }, { hex = "017879", a = 1 }`, ""},
		{`{ "a", 8 }`, `{ hex = "017879", a = 1, payload = "xz" }`, "vectors[1]: encoded it is 01787a"},
		{`{ "a", 8 }`, `{ hex = "017879", a = 1, payload = "x" }`, "vectors[1]: encoded it is 0178"},
		{`{ "n", 8 }, { list = "l", count = "n", { "v", 8 } }`, `{ hex = "020506", n = 2, l = { { v = 5 }, { v = 7 } } }`, "vectors[1]: encoded it is 020507"},
		{`{ "a", 8 }`, `{ hex = "01", b = 1 }`, "vectors[1]: b: unknown field 'b'"},
		{`{ "a", 8 }`, `{ hex = "0g", a = 1 }`, "vectors[1]: hex: encoding/hex: invalid byte"},
		{`{ "a", 8 }`, `{ a = 1 }`, "vectors[1]: hex: a string of hexadecimal digits expected, got no value"},
		{`{ "a", 8 }`, `5`, "vectors[1]: a table with hex and fields expected, got the number 5"},
	} {
		_, err := Load("x.lua", `return { name = "x", `+c.fields+`, vectors = { `+c.vectors+` } }`)
		if got := ""; err != nil && c.want != "" {
			if got = err.Error(); !strings.Contains(got, c.want) {
				t.Errorf("%s with %s: %s, not %s", c.fields, c.vectors, got, c.want)
			}
		} else if err != nil || c.want != "" {
			t.Errorf("%s with %s: %v, not %q", c.fields, c.vectors, err, c.want)
		}
	}
}
