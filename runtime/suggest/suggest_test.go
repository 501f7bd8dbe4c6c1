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
	for _, tt := range tests {
		if got := Nearest(tt.name, keys); got != tt.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}
