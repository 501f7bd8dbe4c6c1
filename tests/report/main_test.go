package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	cases := []struct {
		name, in string
		want     []string
		counts   counts
	}{
		{
			name: "pass",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: hidden\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1.5}`,
			want:   []string{"ok    p  1.5 s", "1 passed, 0 failed, 0 skipped"},
			counts: counts{passed: 1},
		},
		{
			name: "fail",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:1: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Elapsed":0.5}`,
			want:   []string{"a_test.go:1: wrong", "FAIL  p  0.5 s", "0 passed, 1 failed, 0 skipped"},
			counts: counts{failed: 1},
		},
		{
			name: "two skips for one reason",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: nc: not installed\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:2: nc: not installed\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":0}`,
			want: []string{"ok    p  0.0 s", "skip  TestA and 1 more: nc: not installed",
				"0 passed, 0 failed, 2 skipped"},
			counts: counts{skipped: 2},
		},
		{
			name: "does not build",
			in: `{"ImportPath":"p","Action":"build-output","Output":"a.go:1: no\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL p [build failed]\n"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}`,
			want:   []string{"a.go:1: no", "FAIL p [build failed]", "FAIL  p  0.0 s", "0 passed, 1 failed, 0 skipped"},
			counts: counts{failed: 1},
		},
		{
			name: "crash in a test",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"SIGSEGV\n"}
{"Action":"output","Package":"p","Output":"exit status 2\n"}
{"Action":"fail","Package":"p","Elapsed":0}`,
			want:   []string{"exit status 2", "SIGSEGV", "FAIL  p  0.0 s", "0 passed, 1 failed, 0 skipped"},
			counts: counts{failed: 1},
		},
		{
			name: "no JSON",
			in:   "go: cannot find main module",
			want: []string{"go: cannot find main module", "0 passed, 0 failed, 0 skipped"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			got, err := report(strings.NewReader(c.in), &out)
			if err != nil || got.counts != c.counts {
				t.Errorf("got %+v, %v; want %+v", got.counts, err, c.counts)
			}
			if want := strings.Join(c.want, "\n") + "\n"; out.String() != want {
				t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
			}
		})
	}
}
