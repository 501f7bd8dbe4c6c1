package native

import "golang.org/x/sys/unix"

// Monotonic returns CLOCK_MONOTONIC in ns, the clock on which sessions are based.
func Monotonic() (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano(), err
}
