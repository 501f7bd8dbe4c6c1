package files

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// wholeRecords is as much of a pcap as whole records make.
func wholeRecords(text string) string {
	at := min(24, len(text))
	for at+16 <= len(text) {
		next := at + 16 + int(binary.LittleEndian.Uint32([]byte(text[at+8:])))
		if next > len(text) {
			break
		}
		at = next
	}
	return text[:at]
}

// TestRestartsKeepRecords kills recorders at random moments and starts them again over one folder, as a service does that is started again
// after a crash (DAQIRI_TEST_RESTARTS times; 12 in the suite): every record that was on the disk stays, byte for byte, and so does what lists
// what the files are.
func TestRestartsKeepRecords(t *testing.T) {
	restarts := 12
	if n, err := strconv.Atoi(os.Getenv("DAQIRI_TEST_RESTARTS")); err == nil {
		restarts = n
	}
	for _, options := range []string{`{}`, `{"rotate": "200KB"}`, `{"append": true}`, `{"format": "pcapng"}`} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			dir, kept := t.TempDir(), map[string]string{}
			random := rand.New(rand.NewPCG(7, uint64(len(options))))
			records := 0
			for run := range restarts {
				cmd, out := startWriter(t, dir, options, "10000000", "--pps", "2000")
				most := 20 * time.Millisecond * time.Duration(random.IntN(40))
				begun := func() bool { return len(contents(t, dir)) > len(kept)+1 } // a manifest, or a file, more
				if options == `{"append": true}` {
					begun = func() bool { return larger(filepath.Join(dir, "disk.pcap"), int64(len(kept["disk.pcap"]))) }
				}
				if run%3 > 0 { // else it may be killed before it has begun
					harness.WaitFor(t, "the run's files", begun)
				}
				time.Sleep(most)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				now := contents(t, dir)
				for name, text := range kept {
					after, there := now[name]
					if strings.HasSuffix(name, ".json") {
						if name != "disk.manifest.json" && after != text {
							t.Fatalf("run %d: manifest %s has changed", run, name)
						}
					} else if !there || !strings.HasPrefix(after, text) {
						t.Fatalf("run %d: %s has lost records: %d bytes of whole ones, now %d\n%s", run, name, len(text), len(after), out)
					}
				}
				if text, there := kept["disk.manifest.json"]; there && !slices.Contains(slices.Collect(maps.Values(now)), text) {
					t.Fatalf("run %d: the manifest of the run before is gone", run)
				}
				for name, text := range now {
					switch {
					case strings.HasSuffix(name, ".pcap"):
						kept[name] = wholeRecords(text)
						records += len(kept[name])
					case strings.HasSuffix(name, ".pcapng") || strings.HasSuffix(name, ".json"):
						kept[name] = text
					}
				}
			}
			if records == 0 && !strings.Contains(options, "ng") {
				t.Error("no run has recorded anything")
			}
		})
	}
}
