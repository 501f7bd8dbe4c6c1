package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import "unsafe"

// RMAKind is a kind of operation on specified memory.
type RMAKind int32

// Kinds. An atomic operates on 8 bytes of the peer's memory.
const (
	RMAWrite       RMAKind = C.DQ_RMA_WRITE
	RMARead        RMAKind = C.DQ_RMA_READ
	RMASend        RMAKind = C.DQ_RMA_SEND
	RMARecv        RMAKind = C.DQ_RMA_RECV
	RMAFetchAdd    RMAKind = C.DQ_RMA_FETCH_ADD
	RMACompareSwap RMAKind = C.DQ_RMA_COMPARE_SWAP
)

// RMA is an operation over the packets of a burst.
type RMA struct {
	Kind             RMAKind
	Conn             uint32
	Remote, Key      uint64 // address at the peer, and its key
	Imm              uint32
	HasImm           bool
	Operand, Compare uint64
}

// AllocIn is Alloc with buffers of any region, for operations only.
func (q Queue) AllocIn(r Region, n int) (Burst, error) {
	var b Burst
	return b, status(C.dq_rma_alloc(q.c, r.c, C.uint32_t(n), &b.c))
}

// RMABurst starts an operation on a queue; the caller owns op, which references b until it ends. ErrNoSpace: the queue is full.
func (q Queue) RMABurst(b Burst, m RMA) (op Op, err error) {
	at := C.dq_rma{
		kind: C.int32_t(m.Kind), conn: C.uint32_t(m.Conn), remote: C.uint64_t(m.Remote), key: C.uint64_t(m.Key),
		imm: C.uint32_t(m.Imm), has_imm: flag(m.HasImm), operand: C.uint64_t(m.Operand), compare: C.uint64_t(m.Compare),
	}
	var d C.dq_diag
	return op, result("operation", C.dq_rma_burst(q.c, b.c, &at, &op.c, &d), &d)
}

// Remote is memory that a peer lends.
type Remote struct {
	Name             string
	Addr, Bytes, Key uint64
	Access           Access
	Slots, SlotBytes int // division into slots; 0: none
}

func (r *Remote) read(c *C.dq_remote) {
	*r = Remote{
		Name: text(c.name[:]), Addr: uint64(c.addr), Bytes: uint64(c.bytes), Key: uint64(c.key), Access: Access(c.access),
		Slots: int(c.slots), SlotBytes: int(c.slot_bytes),
	}
}

// Lease is a lent region.
type Lease struct{ c *C.dq_lease }

// Lend lends a region to the peer of a connection, and announces it if the peer is daqiri-run.
func (i Iface) Lend(conn uint32, r Region, as Remote) (Lease, Remote, error) {
	loan := C.dq_loan{region: r.c, access: C.uint32_t(as.Access), slots: C.uint32_t(as.Slots), slot_bytes: C.uint32_t(as.SlotBytes)}
	if err := put(loan.name[:], "name", as.Name); err != nil {
		return Lease{}, Remote{}, err
	}
	l := Lease{(*C.dq_lease)(C.calloc(1, C.sizeof_dq_lease))}
	var d C.dq_diag
	var remote Remote
	err := result("lend", C.dq_lend(i.c, C.uint32_t(conn), &loan, l.c, &d), &d)
	if err != nil {
		C.free(unsafe.Pointer(l.c))
		return Lease{}, remote, err
	}
	remote.read(&l.c.what)
	return l, remote, nil
}

// Revoke ends a lease: after its return no peer can access the region. Not after the session's close.
func (i Iface) Revoke(l Lease) error { return status(C.dq_lease_revoke(i.c, l.c)) }

// Free frees a lease, which remains in effect if it was not revoked.
func (l Lease) Free() { C.free(unsafe.Pointer(l.c)) }

// Lent returns the regions that the peer of a connection lends.
func (i Iface) Lent(conn uint32) (list []Remote) {
	var c C.dq_remote
	for k := C.uint32_t(0); C.dq_lent(i.c, C.uint32_t(conn), k, &c); k++ {
		var r Remote
		r.read(&c)
		list = append(list, r)
	}
	return list
}

// LentNamed returns the one with that name; the error lists the available ones.
func (i Iface) LentNamed(conn uint32, name string) (r Remote, err error) {
	n := cString(name)
	defer n.free()
	var c C.dq_remote
	var d C.dq_diag
	err = result("remote memory", C.dq_lent_named(i.c, C.uint32_t(conn), n.c, &c, &d), &d)
	r.read(&c)
	return r, err
}

// DeclareLent declares a region lent by a peer that does not announce it.
func (i Iface) DeclareLent(conn uint32, r Remote) error {
	c := C.dq_remote{addr: C.uint64_t(r.Addr), bytes: C.uint64_t(r.Bytes), key: C.uint64_t(r.Key), access: C.uint32_t(r.Access),
		slots: C.uint32_t(r.Slots), slot_bytes: C.uint32_t(r.SlotBytes)}
	if err := put(c.name[:], "name", r.Name); err != nil {
		return err
	}
	var d C.dq_diag
	return result("remote memory", C.dq_lent_declare(i.c, C.uint32_t(conn), &c, &d), &d)
}

// Received updates a burst's byte count after an operation has written lengths.
func (b Burst) Received() { C.dq_rma_received(b.c) }

// Imm returns the immediate value of packet i; false: it has none.
func (b Burst) Imm(i int) (v uint32, ok bool) {
	var c C.uint32_t
	ok = bool(C.dq_burst_imm(b.c, C.uint32_t(i), &c))
	return uint32(c), ok
}

// Bytes returns n bytes of a CPU-readable region from an offset. They are C memory, valid until the session's close.
func (r Region) Bytes(offset uint64, n int) []byte {
	var c C.dq_region_info
	C.dq_region_read(r.c, &c)
	size := uint64(c.stride) * uint64(c.num_bufs)
	if c.base == nil || offset > size || uint64(n) > size-offset {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(c.base), uint64(c.offset)+offset)), n)
}
