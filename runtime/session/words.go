package session

import (
	"strconv"

	"github.com/daqiri/daqiri-run/native"
)

// A Word is a name that users meet, with what it stands for.
type Word struct {
	Name string
	Unit string // of a field its width in bits, of a figure what it counts; empty: none
	Text string
}

// FieldWords are the fields of packets that conditions, columns and changes name.
func FieldWords() []Word {
	var list []Word
	for i, name := range native.FieldNames() {
		f, _ := native.FieldNamed(name)
		list = append(list, Word{name, strconv.Itoa(int(f.BitWidth)), native.FieldText(i)})
	}
	return list
}

// A Reason is why packets did not go on.
type Reason = native.ReasonRow

// Reasons are all of them, in the order of the ledger.
func Reasons() []Reason { return native.ReasonRows }

// ReasonNamed finds a reason; that without a name where there is none of that name.
func ReasonNamed(name string) Reason {
	for _, r := range native.ReasonRows {
		if r.Name == name {
			return r
		}
	}
	return Reason{}
}

// ExtraWords are the further figures of a ledger's lines.
func ExtraWords() []Word {
	var list []Word
	for _, r := range native.ExtraRows {
		list = append(list, Word(r))
	}
	return list
}

// HistogramWords are the histograms of a ledger's lines.
func HistogramWords() []Word {
	var list []Word
	for _, r := range native.HistogramRows {
		list = append(list, Word{r.Name, r.Unit, r.Text})
	}
	return list
}
