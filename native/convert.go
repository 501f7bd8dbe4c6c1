package native

/*
#include "dq.h"
*/
import "C"

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
