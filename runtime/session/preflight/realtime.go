package preflight

import (
	"fmt"
	"runtime"

	"github.com/daqiri/daqiri-run/native"
)

// Realtime locks the calling goroutine to its thread, gives the thread the policy SCHED_FIFO with a priority from 1 to 99, and locks the memory
// of the process. On an error nothing is changed.
func Realtime(priority int) error {
	runtime.LockOSThread()
	err := native.Realtime(priority)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot set the real-time priority %d: %w; hint: run as root, or with CAP_SYS_NICE and CAP_IPC_LOCK", priority, err)
	}
	return nil
}
