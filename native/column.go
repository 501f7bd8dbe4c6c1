package native

/*
#include "dq.h"
*/
import "C"

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// Field is a field of 1 to 64 bits in each packet. It mirrors dq_field; Base, Meta, Flags and Need have the values of dq_rules.h.
type Field struct {
	Base, Meta, Flags, Need uint8
	BitWidth                uint16
	_                       uint16
	BitOffset               uint32
}

// ReadsPacket reports whether the field is read from packet data rather than from metadata.
func (f Field) ReadsPacket() bool {
	return f.Base != BaseMeta || f.Meta > C.DQ_META_INDEX || f.Need != 0
}

var _ = [1]struct{}{}[unsafe.Sizeof(Field{})-C.sizeof_dq_field]
var _ = [1]struct{}{}[unsafe.Offsetof(Field{}.BitOffset)-unsafe.Offsetof(C.dq_field{}.bit_offset)]

// Origins of a field's offset.
const (
	BaseStart   = uint8(C.DQ_BASE_START)
	BaseL3      = uint8(C.DQ_BASE_L3)
	BaseL4      = uint8(C.DQ_BASE_L4)
	BasePayload = uint8(C.DQ_BASE_PAYLOAD)
	BaseMeta    = uint8(C.DQ_BASE_META)
)

// Flags of a field.
const (
	FieldLE     = uint8(C.DQ_FIELD_LE)
	FieldSigned = uint8(C.DQ_FIELD_SIGNED)
)

func (f *Field) ptr() *C.dq_field { return (*C.dq_field)(unsafe.Pointer(f)) }

// fields returns the engine's table of names, read once.
var fields = sync.OnceValues(func() ([]string, map[string]Field) {
	var names []string
	byName := map[string]Field{}
	for {
		c := C.dq_field_name(C.uint32_t(len(names)))
		if c == nil {
			return names, byName
		}
		var f Field
		C.dq_field_named(c, f.ptr())
		names = append(names, C.GoString(c))
		byName[names[len(names)-1]] = f
	}
})

// FieldNamed returns the engine's field with that name, such as "udp_dst".
func FieldNamed(name string) (f Field, ok bool) {
	_, byName := fields()
	f, ok = byName[name]
	return f, ok
}

// FieldNames returns the names known to FieldNamed.
func FieldNames() []string {
	names, _ := fields()
	return slices.Clone(names)
}

// FieldText returns a description of the i-th of FieldNames, with its unit.
func FieldText(i int) string { return C.GoString(C.dq_field_text(C.uint32_t(i))) }

// Column reads the field of every packet into out; has[i] is 0 where packet i lacks it (has may be nil). It returns how many
// packets have it.
func (b Burst) Column(f Field, out []uint64, has []uint8) int {
	return int(C.dq_burst_column(b.c, f.ptr(), (*C.uint64_t)(first(out)), (*C.uint8_t)(first(has))))
}

// Spread returns a bitmap of the bits in which some number differs from the first.
func Spread(v []uint64) uint64 {
	return uint64(C.dq_column_differing_bits((*C.uint64_t)(first(v)), C.uint32_t(len(v))))
}

// Narrow writes the low len(out) / len(v) bytes, 1, 2, 4 or 8, of each number to out, which must be aligned for them.
func Narrow(v []uint64, out []byte) {
	if len(v) > 0 {
		C.dq_column_narrow((*C.uint64_t)(first(v)), C.uint32_t(len(v)), C.uint32_t(len(out)/len(v)), unsafe.Pointer(first(out)))
	}
}

// Csum is the handling of a packet's checksums when a field is set.
type Csum int32

// Values of Csum.
const (
	CsumKeep   Csum = C.DQ_CSUM_KEEP
	CsumUpdate Csum = C.DQ_CSUM_UPDATE // updated by the difference: wrong ones stay wrong
)

// Set writes v, v + step, ... into the field of every packet that has it and returns their number. ErrInvalid on a shared burst.
func (b Burst) Set(f Field, v, step uint64, csum Csum) (int, error) {
	n := C.dq_burst_set(b.c, f.ptr(), C.uint64_t(v), C.uint64_t(step), C.int(csum))
	if n < 0 {
		return 0, Err(n)
	}
	return int(n), nil
}

// SetAt is Set for a field whose bit offset is increased by a number per packet.
func (b Burst) SetAt(f Field, place *Prog, v, step uint64, csum Csum) (int, error) {
	n := C.dq_burst_set_at(b.c, f.ptr(), place.c, C.uint64_t(v), C.uint64_t(step), C.int(csum))
	runtime.KeepAlive(place)
	if n < 0 {
		return 0, Err(n)
	}
	return int(n), nil
}
