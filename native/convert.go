package native

/*
#include "dq.h"
*/
import "C"

import "runtime"

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

// DataTypes are the element types before and after a conversion; it mirrors dq_data_types.
type DataTypes struct {
	Input, Output Dtype
	Network       bool // Input is big-endian
}

func (t DataTypes) c() C.dq_data_types {
	return C.dq_data_types{input: C.int32_t(t.Input), output: C.int32_t(t.Output), network: flag(t.Network)}
}

// ConvertConf configures a convert stage; it mirrors dq_convert_conf.
type ConvertConf struct {
	Region         Region
	Types          DataTypes
	PayloadOffset  int
	AtPayload      bool
	Header, Length []Insn // as in ReorderConf
	Policy         Policy
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
	c := C.dq_copy_conf{region: conf.Region.c, types: conf.Types.c(), payload_offset: C.uint32_t(conf.PayloadOffset),
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
	c := C.dq_convert_conf{region: conf.Region.c, types: conf.Types.c(), payload_offset: C.uint32_t(conf.PayloadOffset),
		at_payload: flag(conf.AtPayload),
		header:     pinnedNumber(&pin, conf.Header), length: pinnedNumber(&pin, conf.Length), policy: C.int32_t(conf.Policy)}
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_convert(s.c, n, &c, out, d)
	})
}
