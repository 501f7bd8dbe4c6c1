package native

/*
#include "dq.h"
#include "kernels/unpack.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// Dtype is the type of an aggregate's elements.
type Dtype int32

// DtypeBytes is the type of unconverted data.
const DtypeBytes = Dtype(C.DQ_DTYPE_BYTES)

func (d Dtype) String() string { return C.GoString(C.dq_dtype_name(C.int(d))) }

// DtypeNamed returns the type of that name, or DtypeBytes.
func DtypeNamed(name string) Dtype {
	for d := range Dtype(C.DQ_DTYPES) {
		if d.String() == name {
			return d
		}
	}
	return DtypeBytes
}

// Sample is a type of samples; it mirrors dq_sample.
type Sample struct{ c C.dq_sample }

// ParseSample returns the type of samples of that name or alias.
func ParseSample(name string) (Sample, error) {
	var s Sample
	n := cString(name)
	defer n.free()
	var d C.dq_diag
	if C.dq_sample_parse(n.c, &s.c, &d) != 0 {
		return s, errors.New(text(d.text[:]))
	}
	return s, nil
}

func (s Sample) String() string {
	var name [C.DQ_SAMPLE_NAME]C.char
	C.dq_sample_write(&s.c, &name[0])
	return C.GoString(&name[0])
}

// Complex reports whether pairs of elements are complex numbers.
func (s Sample) Complex() bool { return s.c.complex != 0 }

// Bits returns the width of an element, of one part if complex.
func (s Sample) Bits() int { return int(s.c.bits) }

// Codes reports whether elements are integers, and the least one.
func (s Sample) Codes() (least int, ok bool) {
	switch s.c.kind {
	case C.DQ_SAMPLE_UNSIGNED:
		return 0, true
	case C.DQ_SAMPLE_SIGNED, C.DQ_SAMPLE_OFFSET:
		return -1 << (s.c.bits - 1), true
	}
	return 0, false
}

// Unit returns the smallest whole unit of a type: its bytes, and the elements in it.
func (s Sample) Unit() (bytes, elements int) {
	var b, e C.uint32_t
	C.dq_sample_unit(&s.c, &b, &e)
	return int(b), int(e)
}

// Unpacker converts elements to float32. It may be used by several goroutines.
type Unpacker struct{ c C.dqk_unpack }

// Unpacker returns the conversion of a type to float32 without scale, which every type has.
func (s Sample) Unpacker() *Unpacker {
	u := new(Unpacker)
	C.dqk_unpack_init(&u.c, &s.c, C.DQ_DTYPE_FP32)
	return u
}

// Run converts len(dst) elements of src, which has whole units.
func (u *Unpacker) Run(dst []float32, src []byte) {
	C.dqk_unpack_run(&u.c, (*C.uint8_t)(unsafe.Pointer(first(dst))), (*C.uint8_t)(first(src)), C.uint64_t(len(dst)))
}

// SampleRow is a row of a table of samples: a part of names and its meaning, or an alias and its type.
type SampleRow struct{ Text, Words string }

// SampleRows returns the tables of kinds, orders and aliases.
func SampleRows() (kinds, orders, aliases []SampleRow) {
	rows := func(row func(i C.uint32_t) *C.dq_sample_row) (all []SampleRow) {
		for r := row(0); r != nil; r = row(C.uint32_t(len(all))) {
			all = append(all, SampleRow{Text: C.GoString(r.text), Words: C.GoString(r.words)})
		}
		return all
	}
	return rows(func(i C.uint32_t) *C.dq_sample_row { return C.dq_sample_kind_row(i) }),
		rows(func(i C.uint32_t) *C.dq_sample_row { return C.dq_sample_order_row(i) }),
		rows(func(i C.uint32_t) *C.dq_sample_row { return C.dq_sample_alias_row(i) })
}

// DataTypes are the element types before and after a conversion; it mirrors dq_data_types.
type DataTypes struct {
	Input, Output Dtype
	Network       bool   // Input is big-endian
	Sample        Sample // instead of Input and Network, unless zero
	FullScale     bool
	Scale, Offset float64   // Scale 0: 1
	Levels        []float64 // by code; nil: none
}

// c returns the types for C, valid while pin lasts.
func (t DataTypes) c(pin *runtime.Pinner) C.dq_data_types {
	c := C.dq_data_types{input: C.int32_t(t.Input), output: C.int32_t(t.Output), network: flag(t.Network), sample: t.Sample.c,
		full_scale: flag(t.FullScale), scale: C.double(t.Scale), offset: C.double(t.Offset)}
	if len(t.Levels) > 0 {
		pin.Pin(first(t.Levels))
		c.levels = (*C.double)(first(t.Levels))
	}
	return c
}

// ConvertConf configures a convert stage; it mirrors dq_convert_conf.
type ConvertConf struct {
	Region         Region
	Types          DataTypes      // without Choices
	Type           []Insn         // of a packet, which chooses its types
	Choices        []SampleChoice // nil: all packets have Types
	Scale          []Insn         // of a packet, a factor of the types' scale; nil: none
	ScaleSigned    bool           // it is a signed number
	ScalePower     bool           // the factor is 2 to the power of it
	PayloadOffset  int
	AtPayload      bool
	Header, Length []Insn // as in ReorderConf
	Policy         Policy
}

// SampleChoice has the types of packets with that number; it mirrors dq_sample_choice.
type SampleChoice struct {
	Number uint64
	Types  DataTypes
}

// pinnedChoices returns choices for C, valid while pin lasts.
func pinnedChoices(pin *runtime.Pinner, choices []SampleChoice) *C.dq_sample_choice {
	if len(choices) == 0 {
		return nil
	}
	all := make([]C.dq_sample_choice, len(choices))
	for i, c := range choices {
		all[i] = C.dq_sample_choice{number: C.uint64_t(c.Number), types: c.Types.c(pin)}
	}
	pin.Pin(&all[0])
	return &all[0]
}

// CopyConf configures a copy stage; it mirrors dq_copy_conf.
type CopyConf struct {
	Region        Region
	Types         DataTypes // both DtypeBytes: packets are unchanged
	PayloadOffset int
	AtPayload     bool
	Policy        Policy
}

// AddCopy adds a stage that copies bursts to another region, and the receive queue that delivers the copies.
func (s *Session) AddCopy(name string, conf CopyConf) (Stage, Queue, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c := C.dq_copy_conf{region: conf.Region.c, types: conf.Types.c(&pin), payload_offset: C.uint32_t(conf.PayloadOffset),
		at_payload: flag(conf.AtPayload), policy: C.int32_t(conf.Policy)}
	var q Queue
	st, err := addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_copy(s.c, n, &c, out, &q.c, d)
	})
	return st, q, err
}

// Holds declares whether the sources of a stage's own queue have payloads or frames, before it has a source.
func (q Queue) Holds(payloads bool) { C.dq_stage_queue_holds(q.c, C.bool(payloads)) }

// AddConvert adds a stage that converts the elements of payloads, packet by packet.
func (s *Session) AddConvert(name string, conf ConvertConf) (Stage, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c := C.dq_convert_conf{region: conf.Region.c, types: conf.Types.c(&pin), payload_offset: C.uint32_t(conf.PayloadOffset),
		_type: pinnedNumber(&pin, conf.Type), choices: pinnedChoices(&pin, conf.Choices), n_choices: C.uint32_t(len(conf.Choices)),
		scale: pinnedNumber(&pin, conf.Scale), scale_signed: flag(conf.ScaleSigned), scale_power: flag(conf.ScalePower),
		at_payload: flag(conf.AtPayload),
		header:     pinnedNumber(&pin, conf.Header), length: pinnedNumber(&pin, conf.Length), policy: C.int32_t(conf.Policy)}
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_convert(s.c, n, &c, out, d)
	})
}

// Elements returns the number of whole elements in n bytes, of both parts if complex.
func (s Sample) Elements(n int) int { return int(C.dq_sample_elements(&s.c, C.uint64_t(n))) }

// Bytes returns the number of bytes that n elements take.
func (s Sample) Bytes(n int) int { return int(C.dq_sample_bytes(&s.c, C.uint64_t(n))) }

// Counts reports whether Count knows the type: integers of up to 16 bits.
func (s Sample) Counts() bool { return s.c.kind <= C.DQ_SAMPLE_OFFSET && s.c.bits <= 16 }

// Integer reports whether elements are integers, and whether those are without sign.
func (s Sample) Integer() (integer, unsigned bool) {
	return s.c.kind <= C.DQ_SAMPLE_OFFSET, s.c.kind == C.DQ_SAMPLE_UNSIGNED
}

// ZeroByte returns the byte that fills elements whose value is 0: not 0 for offset binary of 1, 2, 4 and 8 bits. For other types of offset binary no byte
// does, and it returns 0.
func (s Sample) ZeroByte() int {
	b := s.Bits()
	if s.c.kind != C.DQ_SAMPLE_OFFSET || s.c.container != 0 || 8%b != 0 {
		return 0
	}
	fill := 0
	for at := b - 1; at < 8; at += b {
		fill |= 1 << at
	}
	return fill
}

// Values writes the values of the first elements of src to out, (v + offset) * scale each. levels has the value of each code instead of v; nil: none.
// Elements are whole groups for types of groups, and pairs for complex ones.
func (s Sample) Values(out []float64, src []byte, scale, offset float64, levels []float64) {
	if len(out) == 0 || s.Bytes(len(out)) > len(src) {
		return
	}
	C.dq_sample_values(&s.c, C.double(scale), C.double(offset), (*C.double)(first(levels)), (*C.uint8_t)(&src[0]), C.uint64_t(len(out)),
		(*C.double)(&out[0]))
}

// Count adds the codes of the first n elements of src to counts, which has an element per code. Its type is one that Counts.
func (s Sample) Count(counts []uint64, src []byte, n int) {
	if n == 0 || s.Bytes(n) > len(src) || len(counts) < 1<<s.Bits() {
		return
	}
	C.dq_sample_count(&s.c, (*C.uint8_t)(&src[0]), C.uint64_t(n), (*C.uint64_t)(&counts[0]))
}
