package preflight

import (
	"errors"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

func TestPTPText(t *testing.T) {
	for _, c := range []struct {
		clock native.PTPClock
		want  string
	}{
		{native.PTPClock{Index: 2, Name: "mlx5_ptp", Offset: 37*time.Second - 250, Within: 120},
			"PTP clock ptp2 (mlx5_ptp): 36.999999750 s ahead of the system's clock, within 120 ns"},
		{native.PTPClock{Name: "e1000e", Err: errors.New("permission denied")}, "PTP clock ptp0 (e1000e): permission denied"},
	} {
		if got := ptpText(c.clock); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
