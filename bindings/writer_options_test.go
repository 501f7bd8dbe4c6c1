package bindings

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// TestWriterOptions: beside the options of all writers, s:write_KIND has those that the engine's list of formats names for
// the kind, and no others.
func TestWriterOptions(t *testing.T) {
	common, err := parseRow("files", fileRows)
	if err != nil {
		t.Fatal(err)
	}
	sections := Reference()
	k := slices.IndexFunc(sections, func(s Section) bool { return s.Name == "session" })
	for _, kind := range []string{"pcap", "raw", "blocks"} {
		i := slices.IndexFunc(sections[k].Names, func(n Name) bool { return n.Name == "write_"+kind })
		var own, want []string
		for _, o := range sections[k].Names[i].Options {
			if !slices.ContainsFunc(common.Options, func(c Value) bool { return c.Name == o.Name }) {
				own = append(own, o.Name)
			}
		}
		for _, f := range session.Formats(kind) {
			want = append(want, f.Options...)
		}
		slices.Sort(own)
		slices.Sort(want)
		if d := cmp.Diff(slices.Compact(want), own); d != "" {
			t.Errorf("write_%s: %s", kind, d)
		}
	}
}
