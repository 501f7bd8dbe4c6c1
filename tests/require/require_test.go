package require

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that notes how it ended.
type recorder struct{ end string }

func (*recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.end = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Skipf(format string, args ...any) {
	r.end = "skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestLack(t *testing.T) {
	for _, c := range []struct{ list, name, want string }{
		{"", "nc", "skipped: nc: not here"},
		{"socat,root", "nc", "skipped: nc: not here"},
		{"socat,nc,root", "nc", "failed: nc: not here (DAQIRI_REQUIRE names it)"},
		{" socat, nc", "nc", "failed: nc: not here (DAQIRI_REQUIRE names it)"},
		{"ipv6,zip", "ip", "skipped: ip: not here"}, // a part of a name is not a name
		{"", "gold", "failed: gold: not here (and tests/require does not list gold)"},
	} {
		t.Setenv("DAQIRI_REQUIRE", c.list)
		var r recorder
		done := make(chan struct{})
		go func() {
			defer close(done)
			Lack(&r, c.name, "not here")
		}()
		<-done
		if r.end != c.want {
			t.Errorf("%q, %s: %q, want %q", c.list, c.name, r.end, c.want)
		}
		if Named(c.name) != strings.Contains(c.want, "DAQIRI_REQUIRE") {
			t.Errorf("%q names %s: %v", c.list, c.name, Named(c.name))
		}
	}
}
