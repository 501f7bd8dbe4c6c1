package summary

import (
	"math"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"zero", count(0), "0"},
		{"three digits", count(999), "999"},
		{"four digits", count(1000), "1,000"},
		{"seven digits", count(1234567), "1,234,567"},
		{"largest", count(math.MaxUint64), "18,446,744,073,709,551,615"},
		{"one", counted(1, "packet"), "1 packet"},
		{"none", counted(0, "packet"), "0 packets"},
		{"small rate", scaled(350, "bit/s"), "350 bit/s"},
		{"rate", scaled(9.8712e9, "bit/s"), "9.87 Gbit/s"},
		{"rate that rounds up", scaled(999.7e6, "bit/s"), "1.00 Gbit/s"},
		{"packet rate", scaled(12.345e6, "pps"), "12.3 Mpps"},
		{"fraction", scaled(0.5, "pps"), "0.50 pps"},
		{"bytes", size(1023), "1023 B"},
		{"half", size(1536 << 10), "1.50 MiB"},
		{"kibibytes that round up", size(1<<20 - 1), "1.00 MiB"},
		{"ns", span(850), "850 ns"},
		{"ms", span(85 * time.Millisecond), "85 ms"},
		{"s", span(3021 * time.Millisecond), "3.02 s"},
		{"min", span(62 * time.Second), "1 min 02 s"},
		{"h", span(3723 * time.Second), "1 h 02 min 03 s"},
		{"share", share(1, 3), "33.3 %"},
		{"share of nothing", share(0, 0), "0 %"},
		{"hardly any", share(1, 1e9), "< 0.001 %"},
		{"nearly all", share(1e9-1, 1e9), "> 99.999 %"},
		{"all", share(7, 7), "100 %"},
		{"whole metric", figure(-12345), "-12,345"},
		{"metric", figure(math.Pi), "3.14159"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}
