package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import "unsafe"

// RegionKind is the kind of memory behind a region.
type RegionKind int32

func (k RegionKind) String() string { return C.GoString(C.dq_kind_name(C.int(k))) }

// RegionKindNamed returns the kind with that configuration name; it panics if there is none.
func RegionKindNamed(name string) RegionKind {
	for k := range RegionKind(C.DQ_KINDS) {
		if k.String() == name {
			return k
		}
	}
	panic("native: no kind of memory is called " + name)
}

// Access are the rights of peers and devices to a region's memory.
type Access uint32

// Rights.
const (
	AccessLocal Access = C.DQ_ACCESS_LOCAL
	AccessRead  Access = C.DQ_ACCESS_READ
	AccessWrite Access = C.DQ_ACCESS_WRITE
)

// RegionConf describes a pool of equal buffers.
type RegionConf struct {
	Name     string
	Kind     RegionKind
	Affinity int // NUMA node; -1: any
	GPU      int // of device memory: the GPU's number
	Access   Access
	NumBufs  int
	BufSize  int // usable bytes of each buffer
}

// RegionInfo describes an allocated region.
type RegionInfo struct {
	Offset                     uint64 // in the arena
	Stride                     int    // bytes between the starts of adjacent buffers
	Headroom                   int    // bytes before each packet
	NumBufs, BufSize, FreeBufs int
	Group                      int // buffers per super-buffer; 1: no super-buffers
	Kind                       RegionKind
	Huge                       bool   // lies on huge pages
	CPU                        bool   // the CPU can access it
	Bytes                      uint64 // of all buffers; 0 before Open or Measure
}

// Region is a pool of buffers; it lives as long as its session.
type Region struct{ c *C.dq_region }

// c returns the configuration for C; the error names a text that is too long.
func (conf *RegionConf) c() (C.dq_region_conf, error) {
	c := C.dq_region_conf{
		kind:     C.int32_t(conf.Kind),
		affinity: C.int32_t(conf.Affinity),
		gpu:      C.int32_t(conf.GPU),
		access:   C.uint32_t(conf.Access),
		num_bufs: C.uint32_t(conf.NumBufs),
		buf_size: C.uint32_t(conf.BufSize),
	}
	return c, put(c.name[:], "memory region", conf.Name)
}

// AddRegion adds a region to a session before its open.
func (s *Session) AddRegion(conf RegionConf) (Region, error) {
	var r Region
	c, err := conf.c()
	if err != nil {
		return r, err
	}
	var d C.dq_diag
	return r, result("memory region "+conf.Name, C.dq_region_add(s.c, &c, &r.c, &d), &d)
}

// Info returns the region's properties. Any thread.
func (r Region) Info() RegionInfo {
	var c C.dq_region_info
	C.dq_region_read(r.c, &c)
	return RegionInfo{
		Offset:   uint64(c.offset),
		Stride:   int(c.stride),
		Headroom: int(c.headroom),
		NumBufs:  int(c.num_bufs),
		BufSize:  int(c.buf_size),
		FreeBufs: int(c.free_bufs),
		Group:    int(c.group),
		Kind:     RegionKind(c.kind),
		Huge:     c.huge != 0,
		CPU:      c.cpu != 0,
		Bytes:    uint64(c.bytes),
	}
}

// DPDKThere checks that the library of engine dpdk is available; the error names the interface and the file.
func DPDKThere(iface string) error {
	name := C.CString(iface)
	defer C.free(unsafe.Pointer(name))
	var d C.dq_diag
	return result("", C.dq_dpdk_there(name, &d), &d)
}

// Stride returns the distance between buffers of bufSize bytes that an engine requires, for a region named by a queue (queued) or
// not; 0: the engine is not in this build. A session uses the largest of its engines.
func Stride(bufSize int, queued bool, engine string) int {
	name := C.CString(engine)
	defer C.free(unsafe.Pointer(name))
	return int(C.dq_stride(C.uint32_t(bufSize), C.bool(queued), name))
}
