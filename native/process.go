package native

/*
#include "dq.h"
*/
import "C"

import "golang.org/x/sys/unix"

// CgroupMemory returns the lowest memory limit of this process's control groups, in bytes, and the file that sets it, or "".
func CgroupMemory() (bytes uint64, file string) {
	var path [256]C.char
	n := C.dq_cgroup_memory(&path[0], C.size_t(len(path)))
	return uint64(n), text(path[:])
}

// Realtime gives the calling thread the scheduling policy SCHED_FIFO with a priority from 1 to 99, and locks the memory of the process: the
// pages that it has, and later ones once they are touched. On an error neither is changed. The caller's goroutine is locked to its thread.
func Realtime(priority int) error {
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		return err
	}
	err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(priority)}, 0)
	if err != nil {
		_ = unix.Munlockall()
	}
	return err
}
