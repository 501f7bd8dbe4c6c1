package bindings

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/format"
)

// TestFormatRoundTrip: of every format of the library what is encoded of 10^5 times random values is decoded to them again.
func TestFormatRoundTrip(t *testing.T) {
	library := os.DirFS("../stdlib")
	names := LibraryFormats(library)
	if len(names) < 20 {
		t.Fatalf("%d formats", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := LibraryFormat(library, name)
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

// endsWith says whether a list of items ends with others: those that have names come first.
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
