package summary

import "testing"

// FuzzParse holds that no summary makes the program panic: what Parse takes can be shown and compared.
func FuzzParse(f *testing.F) {
	f.Add(`{"schema":1,"sessions":[{}]}`)
	f.Add(`{"schema":1,"sessions":[{"started":true,"run_s":1,"ledger":{"schema":2}}]}`)
	f.Add(`{"schema":1,"sessions":[{"started":true,"run_s":1,"thresholds":[{}],"ledger":{"schema":2,"lines":[{"kind":"rx","name":"p","in":5,"out":3,
		"dropped":{"behind":2},"extra":{"missing":1},"histograms":{"burst_size":{"buckets":[[2,1]],"max":2,"n":1,"sum":2,"unit":"packets"}},
		"timing":{},"flows":[{"id":1}],"peers":[{"name":"x"}],"sources":[{"name":"1"}]}],"faults":[{}],"metrics":{"a":1}}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for _, st := range []Style{{}, {Full: true, Color: true}, {Cut: true}} {
			_ = r.Head() + r.Text(st)
			Compare(r, r, st)
		}
		if _, err := r.JSON(); err != nil {
			t.Error(err)
		}
	})
}
