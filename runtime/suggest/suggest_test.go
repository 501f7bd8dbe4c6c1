package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	keys := []string{"batch_size", "buf_size", "id", "ids", "timeout_us"}
	tests := []struct{ name, want string }{
		{"bacth_size", "batch_size"},
		{"batchsize", "batch_size"},
		{"BATCH-SIZE", "batch_size"},
		{"timeout", "timeout_us"},
		{"idd", "id"},
		{"pacing", ""},
		{"", ""},
		{"x", ""},
		{strings.Repeat("x", 10000), ""},
	}
	figures := []string{"bursts", "dropped", "dropped_by", "loops", "packets", "port.rx.dropped", "port.rx.loops"}
	for name, want := range map[string]string{"drops": "dropped", "port.rx.drops": "port.rx.dropped", "lops": "loops", "loop": "loops", "packet": "packets",
		"droped": "dropped"} {
		if got := Nearest(name, figures); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
	for _, tt := range tests {
		if got := Nearest(tt.name, keys); got != tt.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestShortWords(t *testing.T) {
	if got := Nearest("di", []string{"name", "id"}); got != "id" {
		t.Errorf("two letters exchanged are near %q", got)
	}
	if got := Nearest("x", []string{"y", "id"}); got != "" {
		t.Errorf("one letter is near %q", got)
	}
}
