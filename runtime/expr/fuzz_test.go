package expr

import "testing"

func seeds(f *testing.F) {
	for _, s := range []string{
		"chan // 256 < 4 and port == 7148",
		"blocks.missing < 1e-5 * blocks.expected",
		"tx_port.tx.gap_error.p99 < 2us",
		"limit_bps >= 90e9 or rate > 10Gbit/s",
		"ipv4_src in 10.0.0.0/8 and not (ipv6_src == 2001:db8::1)",
		"eth_dst == 02:00:5e:10:00:00",
		"-2^2^-3 == ~(1 << 4) | 0x1F ~ 3 & 5 >> 1",
		"stamp // 2^20 % 16 != 3\n\tand delta < -1",
		"(((1)))", "1e400*1e400", "a in ::/0",
	} {
		f.Add(s)
	}
}

// FuzzParse checks that Parse never panics and that the canonical form is stable.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		s := e.String()
		again, err := Parse(s)
		if err != nil {
			if len(s) > maxText {
				return // spaces exceed the maximum length
			}
			t.Fatalf("%q becomes %q, which does not parse: %v", text, s, err)
		}
		if got := again.String(); got != s {
			t.Fatalf("%q becomes %q, then %q", text, s, got)
		}
		if again.IsCondition() != e.IsCondition() || len(again.Names()) != len(e.Names()) {
			t.Fatalf("%q changes its meaning as %q", text, s)
		}
		e.Eval(func(name string) (float64, bool) { return float64(len(name)), len(name)%3 != 0 })
	})
}

// FuzzCompilePacket checks that every compiled program runs within the stack limit and leaves one result.
func FuzzCompilePacket(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		p, err := e.CompilePacket(testFields)
		if err != nil {
			return
		}
		run(t, p, map[uint32]uint64{64: 3, 96: 1 << 31, 128: 1 << 63, 192: 1<<64 - 1})
	})
}
