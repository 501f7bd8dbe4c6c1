package native

import "golang.org/x/sys/unix"

// Monotonic is CLOCK_MONOTONIC in ns, the clock that sessions count on.
func Monotonic() (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano(), err
}
