package summary

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzParse checks that every summary that Parse accepts can be printed and compared.
func FuzzParse(f *testing.F) {
	f.Add(`{"schema":1,"sessions":[{}]}`)
	f.Add(`{"schema":1,"sessions":[{"started":true,"run_s":1,"ledger":{"schema":2}}]}`)
	f.Add(`{"schema":1,"sessions":[{"started":true,"run_s":1,"thresholds":[{}],"ledger":{"schema":2,"lines":[{"kind":"rx","name":"p","in":5,"out":3,
		"dropped":{"behind":2},"extra":{"missing":1},"histograms":{"burst_size":{"buckets":[[2,1]],"max":2,"n":1,"sum":2,"unit":"packets"}},
		"timing":{},"flows":[{"id":1}],"peers":[{"name":"x"}],"sources":[{"name":"1"}]}],"faults":[{}],"metrics":{"a":1}}}]}`)
	f.Add(`{"schema":1,"script":"\u001b[2J","sessions":[{"name":"a\nb","started":true,"run_s":1,"reason":"\u001b]0;x\u0007","error":"one\ntwo\u001b[1m","notes":["\r"],
		"violated":["\u0085: x"],"ledger":{"schema":2,"lines":[{"kind":"rx","name":"\u001b[31m","in":1,"dropped":{"\u001b":1}}],"metrics":{"\u001b[0m":1}}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for _, st := range []Style{{}, {Full: true, Color: true}, {Cut: true}} {
			both, _ := Compare(r, r, st)
			if text := r.Head() + r.Text(st) + both; !st.Color && !printable(text) {
				t.Errorf("%q", text)
			}
		}
		if _, err := r.JSON(); err != nil {
			t.Error(err)
		}
	})
}

// printable reports whether text consists of printable characters and newlines.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
}
