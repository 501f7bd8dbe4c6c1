package summary

import (
	"testing"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// TestParse checks that a report is unchanged by writing and parsing.
func TestParse(t *testing.T) {
	r := example()
	r.Sessions[0].Ledger.Lines[0].Histograms = stats.Histograms{{Name: "burst_size", Unit: "packets", Buckets: []stats.Bucket{{Most: 4, N: 3}, {Most: 64, N: 9}}, Sum: 500}}
	r.Sessions[0].Ledger.Lines[0].Sources = stats.Sources{{Name: "7", Packets: 5, Missing: 2}}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.JSON(); err != nil || string(got) != string(text) {
		t.Errorf("%v\n%s\nwant\n%s", err, got, text)
	}
	if _, err := Parse([]byte(`{"schema": 99}`)); err == nil {
		t.Error("another schema is read")
	}
}
