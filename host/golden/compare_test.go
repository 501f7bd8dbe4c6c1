package golden

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct{ name, want, got, diff string }{
		{"number", "took {{[0-9.]+}} ms\n", "took 1.5 ms\n", ""},
		{"two parts", "{{a+}} b {{c+}}\n", "aaa b cc\n", ""},
		{"whole line", "x{{[0-9]}}\n", "x12\n", "-x{{[0-9]}}\n+x12\n"},
		{"literal around", "a.b {{.*}}\n", "axb c\n", "-a.b {{.*}}\n+axb c\n"},
		{"closing braces", "{{[0-9]{3}}} ok\n", "123 ok\n", ""},
		{"no closing", "a {{ b\n", "a {{ b\n", ""},
		{"a literal double brace", `{{\{\{}}x` + "\n", "{{x\n", ""},
		{"not across lines", "{{.*}}\n", "a\nb\n", "+b\n"},
		{"other line differs", "t {{[0-9]+}}\nend\n", "t 7\nEND\n", " t 7\n-end\n+END\n"},
		{"line inserted before", "a\nt {{[0-9]+}}\n", "a\nb\nt 7\n", " a\n+b\n t 7\n"},
		{"pattern without line", "a\nt {{[0-9]+}}\n", "a\n", "-t {{[0-9]+}}\n"},
		{"last line without newline", "t {{[0-9]+}}", "t 7\n", "+t 7\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			diff, err := compareStdout("x.golden", c.want, c.got)
			if err != nil {
				t.Fatal(err)
			}
			if (diff == "") != (c.diff == "") {
				t.Fatalf("diff = %q", diff)
			}
			contains(t, diff, c.diff)
		})
	}
	_, err := compareStdout("x.golden", "a\n{{[}}\n", "a\nb\n")
	if err == nil || !strings.HasPrefix(err.Error(), "x.golden:2: error parsing regexp") {
		t.Errorf("bad pattern: %v", err)
	}
}

func TestDiffsAreBounded(t *testing.T) {
	diff, _ := compareStdout("x", strings.Repeat("a\n", 400), strings.Repeat("b\n", 400))
	if n := strings.Count(diff, "\n"); n != maxDiffOutput+1 {
		t.Errorf("%d lines of diff", n)
	}
	diff, _ = compareStdout("x", strings.Repeat("a\n", maxDiffInput), strings.Repeat("a\n", maxDiffInput-1)+"b\n")
	contains(t, diff, "@@ first difference in line 20000 @@\n-a\n+b\n")
}

// pcapFile builds a capture; a packet is captured completely unless orig is larger.
func pcapFile(order binary.AppendByteOrder, magic uint32, packets ...pcapPacket) []byte {
	var b []byte
	b = order.AppendUint32(b, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	for _, v := range []uint32{0, 0, 65535, 1} {
		b = order.AppendUint32(b, v)
	}
	for _, p := range packets {
		for _, v := range []uint32{p.sec, p.frac, uint32(len(p.data)), max(p.orig, uint32(len(p.data)))} {
			b = order.AppendUint32(b, v)
		}
		b = append(b, p.data...)
	}
	return b
}

func TestPcap(t *testing.T) {
	one := pcapPacket{sec: 1, frac: 2, data: []byte("0123456789abcdefXYZ")}
	two := pcapPacket{sec: 3, frac: 4, data: []byte("second")}
	changed, late, short := one, two, two
	changed.data = []byte("0123456789abcdefXyZ!")
	late.frac = 5
	short.orig = 100
	le, be := binary.LittleEndian, binary.BigEndian
	base := pcapFile(le, pcapNano, one, two)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"same", base, ""},
		{"other byte order", pcapFile(be, pcapNano, one, two), ""},
		{"bytes", pcapFile(le, pcapNano, changed, two), `f:
  1 packets differ; the first is packet 1 (golden offset 0x18, output offset 0x18)
  captured length: 20 (0x14), want 19 (0x13)
  original length: 20 (0x14), want 19 (0x13)
  first difference at offset 17 (0x11)
  want 000010  58 59 5a
  got  000010  58 79 5a 21
                  ^^    ^^
`},
		{"time", pcapFile(le, pcapNano, one, late), `f:
  1 packets differ; the first is packet 2 (golden offset 0x3b, output offset 0x3b)
  time: 3.000000005 (0x00000003 0x00000005), want 3.000000004 (0x00000003 0x00000004)
`},
		{"original length", pcapFile(le, pcapNano, one, short), `f:
  1 packets differ; the first is packet 2 (golden offset 0x3b, output offset 0x3b)
  original length: 100 (0x64), want 6 (0x6)
`},
		{"missing packet", pcapFile(le, pcapNano, one), "f:\n  packets: 1 (0x1), want 2 (0x2)\n"},
		{"unit", pcapFile(le, pcapMicro, two), `f:
  times in: microseconds, want nanoseconds
  packets: 1 (0x1), want 2 (0x2)
  1 packets differ; the first is packet 1 (golden offset 0x18, output offset 0x18)
  time: 3.000004 (0x00000003 0x00000004), want 1.000000002 (0x00000001 0x00000002)
  captured length: 6 (0x6), want 19 (0x13)
  original length: 6 (0x6), want 19 (0x13)
  first difference at offset 0 (0x0)
  want 000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66
  got  000000  73 65 63 6f 6e 64
               ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^
`},
		{"cut in the data", base[:len(base)-2], `f:
  packets: 1 (0x1), want 2 (0x2)
  end of file: ends 4 bytes into packet 2, which has 6, at offset 79, want after a whole packet
`},
		{"cut in a header", base[:len(base)-10], `f:
  packets: 1 (0x1), want 2 (0x2)
  end of file: ends in the header of packet 2, at offset 71, want after a whole packet
`},
		{"no capture", []byte("\x00junk"), "f: 5 bytes, want 81\n  first difference at offset 0 (0x0)\n" +
			"  want 000000  4d 3c b2 a1 02 00 04 00 00 00 00 00 00 00 00 00\n  got  000000  00 6a 75 6e 6b\n" +
			"               ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^ ^^\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, compareFile("f", base, c.got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	cut := slices.Clone(base[:len(base)-2])
	other := slices.Clone(cut)
	other[len(other)-1] ^= 1
	if diff := compareFile("f", cut, other); !strings.Contains(diff, "the bytes of the last packet, which is cut, differ") {
		t.Errorf("%q", diff)
	}
}

func TestDiffJSON(t *testing.T) {
	const got = `{"in": 1e3, "big": 18446744073709551615, "q": [{"n": 1, "x": 2}, {"n": 3}], "s": "a", "o": {"k": null}}`
	for _, c := range []struct {
		name, want string
		diffs      []string
	}{
		{"subset", `{"in": 1000, "q": [{"n": 1}, {}], "o": {"k": null}}`, nil},
		{"wide number", `{"big": 18446744073709551614}`, []string{"big: 18446744073709551615, want 18446744073709551614"}},
		{"value", `{"q": [{"n": 1}, {"n": 4}]}`, []string{"q[1].n: 3, want 4"}},
		{"missing", `{"o": {"z": 1}}`, []string{"o.z: missing, want 1"}},
		{"array length", `{"q": []}`, []string{`q: [{"n":1,"x":2},{"n":3}], want []`}},
		{"kind", `{"s": 1, "in": "a"}`, []string{`in: 1e3, want "a"`, `s: "a", want 1`}},
		{"null is not missing", `{"o": {"k": 1}}`, []string{"o.k: null, want 1"}},
		{"root", `[]`, []string{"(the whole summary): " + `{"big":18446744073709551615,"in":1e3,"o":{"k":null},"q":[{"n":1,"x":2},{"n":3}],"s":"a"}, want []`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := decodeJSON([]byte(c.want))
			if err != nil {
				t.Fatal(err)
			}
			have, err := decodeJSON([]byte(got))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.diffs, diffJSON("", want, have)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	write := `echo '{"rx":{"in":7,"out":7},"note":"x"}' > $SUMMARY`
	for _, c := range []struct{ name, script, counters, reason string }{
		{"same", write, `{"rx":{"in":7}}`, ""},
		{"different", write, `{"rx":{"in":8,"held":0}}`, "2 counters differ"},
		{"no summary", "", `{}`, "wrote no summary to compare counters with"},
		{"broken summary", "echo '{' > $SUMMARY", `{}`, "summary: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, map[string]string{"a.lua": c.script, "a.golden": "", "a.counters": c.counters})
			res, report := runTests(t, dir, nil)
			if res.Tests[0].Reason != c.reason {
				t.Errorf("reason %q, want %q\n%s", res.Tests[0].Reason, c.reason, report)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"a.lua":      `echo new; echo took 5 ms; echo 1 > x; mkdir d; printf '\000' > d/y; echo '{"in":2,"out":2}' > $SUMMARY; exit 4`,
		"a.golden":   "old\ntook {{[0-9]+}} ms\n",
		"a.files":    "x\nd/y\n",
		"a.counters": `{"in":1}`, "a.files.d/gone": "",
		"b.lua": "echo b", "b.golden": "b\n", "b.exit": "9",
		"c.lua": "echo unasked",
		"s.lua": "exit 77", "s.golden": "kept",
		"k.lua": "echo partial; kill -9 $$", "k.golden": "kept",
	})
	before := readFile(t, dir, "a.golden")
	refused, report := runTests(t, filepath.Join(dir, "a.lua"), func(o *Options) { o.Update = true })
	contains(t, report, "a.lua", "it ended with exit code 4, and nothing was written; hint: mend it, or --failing expects that")
	if _, err := os.Stat(filepath.Join(dir, "a.exit")); refused.Failed != 1 || !os.IsNotExist(err) || readFile(t, dir, "a.golden") != before {
		t.Fatalf("a script that fails: %+v", refused)
	}
	res, report := runTests(t, dir, func(o *Options) { o.Update, o.Failing = true, true })
	if res.Passed != 2 || res.Skipped != 1 || res.Failed != 1 {
		t.Fatalf("%+v\n%s", res, report)
	}
	contains(t, report, "a.lua", "wrote a.golden, a.exit, a.files.d/x, a.files.d/d/y, gone (removed), a.counters; EXPECTS EXIT CODE 4\n", "wrote b.exit (removed)")
	for name, want := range map[string]string{
		"a.golden": "new\ntook {{[0-9]+}} ms\n", "a.exit": "4\n", "a.files.d/x": "1\n", "a.files.d/d/y": "\x00",
		"a.counters": "{\n  \"in\": 2\n}\n", "s.golden": "kept", "k.golden": "kept",
	} {
		if got := readFile(t, dir, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"b.exit", "c.golden", "a.files.d/gone"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v, want it absent", name, err)
		}
	}
	again, report := runTests(t, dir, func(o *Options) { o.Update = true })
	for _, test := range again.Tests {
		if strings.HasPrefix(test.Reason, "wrote") {
			t.Errorf("a second update changed something:\n%s", report)
		}
	}
	runTests(t, filepath.Join(dir, "c.lua"), func(o *Options) { o.Update = true })
	if got := readFile(t, dir, "c.golden"); got != "unasked\n" {
		t.Errorf("c.golden = %q", got)
	}
}
