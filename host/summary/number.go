package summary

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// count formats an integer with its digits in groups of three: 12,345,678.
func count(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range []byte(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(d)
	}
	return b.String()
}

// counted formats a number and its noun: "1 packet", "12,345 packets".
func counted(n uint64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// scaled formats v with three digits and a decimal prefix: "9.87 Gbit/s", "12.3 Mpps", "350 bit/s".
func scaled(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for math.Abs(v) >= 999.5 && i < len(prefixes)-1 {
		v, i = v/1000, i+1
	}
	return digits3(v) + " " + prefixes[i] + unit
}

// size formats bytes with a binary prefix, as for file sizes: "1.50 MiB".
func size(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1024, 0
	prefixes := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for v >= 1023.5 && i < len(prefixes)-1 {
		v, i = v/1024, i+1
	}
	return digits3(v) + " " + prefixes[i]
}

// digits3 formats v with three significant digits; integers have no fraction.
func digits3(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// span formats a duration: "85 ms", "3.02 s", "1 h 02 min 03 s".
func span(d time.Duration) string {
	s := d.Seconds()
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return digits3(s*1e6) + " us"
	case d < time.Second:
		return digits3(s*1e3) + " ms"
	case d < time.Minute:
		return digits3(s) + " s"
	}
	whole := int(s + 0.5)
	if whole < 3600 {
		return fmt.Sprintf("%d min %02d s", whole/60, whole%60)
	}
	return fmt.Sprintf("%d h %02d min %02d s", whole/3600, whole/60%60, whole%60)
}

// share formats n of total as a percentage; a nonzero share is never rounded to 0 %, nor a partial one to 100 %.
func share(n, total uint64) string {
	if total == 0 {
		return "0 %"
	}
	p := 100 * float64(n) / float64(total)
	switch {
	case n == 0 || n >= total:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	case p < 0.001:
		return "< 0.001 %"
	case p > 99.999:
		return "> 99.999 %"
	}
	return strconv.FormatFloat(p, 'g', 3, 64) + " %"
}

// figure formats a metric's value: integers exactly, other numbers with six digits.
func figure(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		if v < 0 {
			return "-" + count(uint64(-v))
		}
		return count(uint64(v))
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
