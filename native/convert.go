package native

/*
#include "dq.h"
*/
import "C"

import "runtime"

// Dtype is the type of an aggregate's elements.
type Dtype int32

// DtypeBytes is of data that are as they came.
const DtypeBytes = Dtype(C.DQ_DTYPE_BYTES)

func (d Dtype) String() string { return C.GoString(C.dq_dtype_name(C.int(d))) }

// DtypeNamed finds a type by its name; DtypeBytes when there is none.
func DtypeNamed(name string) Dtype {
	for d := range Dtype(C.DQ_DTYPES) {
		if d.String() == name {
			return d
		}
	}
	return DtypeBytes
}

// DataTypes is what elements are and become; it mirrors dq_data_types.
type DataTypes struct {
	Input, Output Dtype
	Network       bool // Input has its highest byte first
}

func (t DataTypes) c() C.dq_data_types {
	return C.dq_data_types{input: C.int32_t(t.Input), output: C.int32_t(t.Output), network: flag(t.Network)}
}

// ConvertConf says what a convert stage makes of payloads; it mirrors dq_convert_conf.
type ConvertConf struct {
	Region         Region
	Types          DataTypes
	PayloadOffset  int
	AtPayload      bool
	Header, Length []Insn // as in ReorderConf
	Policy         Policy
}

// CopyConf says where a copy stage puts packets; it mirrors dq_copy_conf.
type CopyConf struct {
	Region        Region
	Types         DataTypes // both DtypeBytes: packets stay as they are
	PayloadOffset int
	AtPayload     bool
	Policy        Policy
}

// AddCopy makes a stage that moves bursts into another region, and the receive queue that the copies come from.
func (s *Session) AddCopy(name string, conf CopyConf) (Stage, Queue, error) {
	c := C.dq_copy_conf{region: conf.Region.c, types: conf.Types.c(), payload_offset: C.uint32_t(conf.PayloadOffset),
		at_payload: flag(conf.AtPayload), policy: C.int32_t(conf.Policy)}
	var q Queue
	st, err := addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_copy(s.c, n, &c, out, &q.c, d)
	})
	return st, q, err
}

// Holds says what the sources of a stage's own queue hold, before it has one: payloads, or frames.
func (q Queue) Holds(payloads bool) { C.dq_stage_queue_holds(q.c, C.bool(payloads)) }

// AddConvert makes a stage that converts the elements of payloads, packet by packet.
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
