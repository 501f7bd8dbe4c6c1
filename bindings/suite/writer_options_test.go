package suite

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// TestWriterOptions checks that s:write_KIND has, besides the common options, exactly those that the engine's list of formats names for the kind;
// if a kind has several formats, one option accepts their names, and the first is the default.
func TestWriterOptions(t *testing.T) {
	common, err := row.Parse("files", row.FileRows)
	if err != nil {
		t.Fatal(err)
	}
	sections := bindings.Reference()
	k := slices.IndexFunc(sections, func(s row.Section) bool { return s.Name == "session" })
	for _, kind := range []string{"pcap", "raw", "blocks"} {
		i := slices.IndexFunc(sections[k].Names, func(n row.Name) bool { return n.Name == "write_"+kind })
		var own, want, words []string
		chosen := row.Value{}
		for _, o := range sections[k].Names[i].Options {
			if o.Name == "format" || o.Name == "per" {
				chosen = o
			}
			if !slices.ContainsFunc(common.Options, func(c row.Value) bool { return c.Name == o.Name }) {
				own = append(own, o.Name)
			}
		}
		for _, f := range session.Formats(kind) {
			want = append(want, f.Options...)
			words = append(words, strconv.Quote(f.Choice))
		}
		if len(words) > 1 && (chosen.Type != strings.Join(words, " | ") || chosen.Default != words[0]) {
			t.Errorf("write_%s: %s is %s, by default %s; want %s", kind, chosen.Name, chosen.Type, chosen.Default, words)
		}
		slices.Sort(own)
		slices.Sort(want)
		if d := cmp.Diff(slices.Compact(want), own); d != "" {
			t.Errorf("write_%s: %s", kind, d)
		}
	}
}
