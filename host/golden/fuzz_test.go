package golden

import (
	"strings"
	"testing"
)

// FuzzCompare checks that comparisons never panic, that equal texts have no difference, and that different texts have one.
func FuzzCompare(f *testing.F) {
	f.Add("in {{[0-9]+}} of {{[0-9]{3}}}\nend\n", "in 5 of 123\nend\n")
	f.Add("{{", "}}")
	f.Add(`{"a":[1,{"b":2e3}],"c":null}`, `{"a":[1.0,{"b":2000,"d":1}]}`)
	f.Add("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00ab",
		"\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\xff\xff\xff\xff\x02\x00\x00\x00a")
	f.Fuzz(func(t *testing.T, want, got string) {
		diff, err := compareStdout("x.golden", want, got)
		if err == nil && want == got && diff != "" || err == nil && diff == "" && want != got && !strings.Contains(want, "{{") {
			t.Errorf("stdout: %q", diff)
		}
		capture := isPcap([]byte(want)) // some header bytes are not compared
		if diff := compareFile("x", []byte(want), []byte(got)); want == got && diff != "" || want != got && diff == "" && !capture {
			t.Errorf("file: %q", diff)
		}
		golden, err := decodeJSON([]byte(want))
		summary, errGot := decodeJSON([]byte(got))
		if err != nil || errGot != nil {
			return
		}
		if part := project(golden, summary); len(diffJSON("", part, summary)) > 0 && len(diffJSON("", golden, summary)) == 0 {
			t.Errorf("counters: what an update would write differs: %s", compact(part))
		}
	})
}
