package native

/*
#include "dq.h"
*/
import "C"

// CgroupMemory returns the lowest memory limit of this process's control groups, in bytes, and the file that sets it, or "".
func CgroupMemory() (bytes uint64, file string) {
	var path [256]C.char
	n := C.dq_cgroup_memory(&path[0], C.size_t(len(path)))
	return uint64(n), text(path[:])
}
