package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// IPCBytes is the size of a handle of cuIpcGetMemHandle.
const IPCBytes = int(C.DQ_BINDING_IPC_N)

// Binding is memory for a region: one of Own, Array, Path, Handle and FD. It mirrors dq_binding.
type Binding struct {
	Own    bool // a file that contains only this region, see Lend
	Array  *Array
	Path   string // file with memory
	Handle string // of cuIpcGetMemHandle, IPCBytes long
	FD     int    // descriptor of a file with memory, or of GPU memory; the caller keeps it
	Offset uint64 // in the source, bytes
	Bytes  uint64 // BindingRest: to the end of the source
}

// BindingRest is the size of a binding that extends to the end of its source.
const BindingRest = uint64(C.DQ_BINDING_REST)

// Bind binds the region to memory of the application. Before the session's open, which compares the memory with the region.
func (r Region) Bind(name string, b Binding) error {
	return b.pass(func(c *C.dq_binding) error {
		var d C.dq_diag
		return result("memory region "+name, C.dq_region_bind(r.c, c, &d), &d)
	})
}

// pass calls f with the C form of the binding.
func (b Binding) pass(f func(*C.dq_binding) error) error {
	c := C.dq_binding{source: C.DQ_BINDING_FILE, fd: -1, offset: C.uint64_t(b.Offset), bytes: C.uint64_t(b.Bytes)}
	switch {
	case b.Own:
		c.source = C.DQ_BINDING_OWN
	case b.Array != nil:
		c.source, c.array = C.DQ_BINDING_ARRAY, b.Array.c
	case b.Handle != "":
		c.source = C.DQ_BINDING_IPC
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&c.handle[0])), IPCBytes), b.Handle)
	case b.Path != "":
		path := cString(b.Path)
		defer path.free()
		c.path = path.c
	default:
		c.fd = C.int32_t(b.FD)
	}
	return f(&c)
}

// Lost returns why memory that the region is bound to is no longer there; empty: it is.
func (r Region) Lost() (why string) {
	return read(func(buf *C.char, size C.size_t) {
		if !C.dq_region_lost(r.c, buf, size) {
			*buf = 0
		}
	})
}

// Lend returns a new read-only descriptor of the file of a region that was bound with Own, for other processes; the caller closes it.
func (r Region) Lend() (*os.File, error) {
	fd := C.dq_region_lend(r.c)
	if fd < 0 {
		return nil, status(fd)
	}
	return os.NewFile(uintptr(fd), "region"), nil
}

// SharedFile creates a memory file of this size, which is sealed against changes of its size, for passing to other processes.
func SharedFile(name string, size int) (*os.File, error) {
	n := cString(name)
	defer n.free()
	fd := C.dq_shared_file(n.c, C.uint64_t(size))
	if fd < 0 {
		return nil, fmt.Errorf("cannot allocate memory file %s of %d bytes: %w", name, size, syscall.Errno(-fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Measure computes the sizes and places of the regions as Open does, for Region.Info, and checks bindings; it allocates no memory. The session must be
// closed afterwards.
func (s *Session) Measure() error {
	var d C.dq_diag
	return result("measure", C.dq_session_measure(s.c, &d), &d)
}
