// Package words lists the names of the engine with their descriptions: packet fields, drop reasons, counters and histograms.
package words

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

// Fields returns the packet fields for conditions, columns and changes.
func Fields() []Word {
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

// Extras returns the extra counters of a ledger's lines.
func Extras() []Word {
	var list []Word
	for _, r := range native.ExtraRows {
		list = append(list, Word(r))
	}
	return list
}

// Histograms returns the histograms of a ledger's lines.
func Histograms() []Word {
	var list []Word
	for _, r := range native.HistogramRows {
		list = append(list, Word{r.Name, r.Unit, r.Text})
	}
	return list
}

// SampleKinds returns the kinds of samples.
func SampleKinds() []Word {
	kinds, _, _ := native.SampleRows()
	return sampleWords(kinds)
}

// SampleOrders returns the orders of samples in their bytes.
func SampleOrders() []Word {
	_, orders, _ := native.SampleRows()
	return sampleWords(orders)
}

// SampleAliases returns other names of types of samples; the text of each is its type.
func SampleAliases() []Word {
	_, _, aliases := native.SampleRows()
	return sampleWords(aliases)
}

func sampleWords(rows []native.SampleRow) (list []Word) {
	for _, r := range rows {
		list = append(list, Word{Name: r.Text, Text: r.Words})
	}
	return list
}
