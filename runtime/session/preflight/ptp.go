package preflight

import (
	"fmt"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

// ptpText returns the description of a PTP clock.
func ptpText(c native.PTPClock) string {
	name := fmt.Sprintf("PTP clock ptp%d (%s)", c.Index, c.Name)
	if c.Err != nil {
		return fmt.Sprintf("%s: %v", name, c.Err)
	}
	return fmt.Sprintf("%s: %.9f s ahead of the system's clock, within %d ns", name, c.Offset.Seconds(), c.Within.Nanoseconds())
}

// ReadPTP returns the name of a PTP clock, its time minus that of the system's clock, and the bound of that difference's error.
func ReadPTP(index int) (name string, offset, within time.Duration, err error) {
	c := native.ReadPTP(index)
	if c.Err != nil {
		err = fmt.Errorf("cannot read the PTP clock /dev/ptp%d: %w", index, c.Err)
	}
	return c.Name, c.Offset, c.Within, err
}

// PTPClocks returns descriptions of the PTP hardware clocks of this host.
func PTPClocks() []string {
	list := []string{}
	for _, c := range native.PTPClocks() {
		list = append(list, ptpText(c))
	}
	return list
}
