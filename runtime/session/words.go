package session

import (
	"strconv"

	"github.com/daqiri/daqiri-run/native"
)

// A Word is a documented name and its description.
type Word struct {
	Name string
	Unit string // field: width in bits; figure: unit; empty: none
	Text string
}

// FieldWords returns the packet fields for conditions, columns and changes.
func FieldWords() []Word {
	var list []Word
	for i, name := range native.FieldNames() {
		f, _ := native.FieldNamed(name)
		list = append(list, Word{name, strconv.Itoa(int(f.BitWidth)), native.FieldText(i)})
	}
	return list
}

// A Reason is a reason for dropping packets.
type Reason = native.ReasonRow

// Reasons returns all drop reasons, in the order of the ledger.
func Reasons() []Reason { return native.ReasonRows }

// ReasonNamed returns a reason by name, or one without a name if it is unknown.
func ReasonNamed(name string) Reason {
	for _, r := range native.ReasonRows {
		if r.Name == name {
			return r
		}
	}
	return Reason{}
}

// ExtraWords returns the extra counters of a ledger's lines.
func ExtraWords() []Word {
	var list []Word
	for _, r := range native.ExtraRows {
		list = append(list, Word(r))
	}
	return list
}

// HistogramWords returns the histograms of a ledger's lines.
func HistogramWords() []Word {
	var list []Word
	for _, r := range native.HistogramRows {
		list = append(list, Word{r.Name, r.Unit, r.Text})
	}
	return list
}
