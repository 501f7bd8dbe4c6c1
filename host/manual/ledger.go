package manual

import (
	"github.com/daqiri/daqiri-run/runtime/session/words"
)

// Ledger describes the lines of a ledger.
var Ledger = Topic{Name: "ledger", Short: "the ledger: where every packet went", Parts: ledgerParts}

func ledgerParts() []Part {
	reasons := &Table{Columns: []string{"reason", "why the packet was not passed on", "what helps"}}
	for _, r := range words.Reasons() {
		reasons.Rows = append(reasons.Rows, []string{"`" + r.Name + "`", r.Text, r.Advice})
	}
	extras := &Table{Columns: []string{"figure", "unit", "what it counts"}}
	for _, w := range words.Extras() {
		extras.Rows = append(extras.Rows, []string{"`" + w.Name + "`", w.Unit, w.Text})
	}
	histograms := &Table{Columns: []string{"histogram", "unit", "what it counts"}}
	for _, w := range words.Histograms() {
		histograms.Rows = append(histograms.Rows, []string{"`" + w.Name + "`", w.Unit, w.Text})
	}
	return []Part{
		{Words: "Each queue, wire, stage, tap and writer has a line, and in each line `in = out + held + dropped`, exactly when nothing moves: at " +
			"the end of a run, or the exit code is 70. `s:stats()` has the lines, the summary shows them, `--summary-json` writes them."},
		{Head: "reasons"},
		{Words: "`dropped` is the sum of `dropped_by.REASON`:"},
		{Table: reasons},
		{Head: "further figures"},
		{Words: "A line has those that something came of."},
		{Table: extras},
		{Head: "histograms"},
		{Words: "Each has the figures `.p50`, `.p90`, `.p99` and `.max`: at most so large are 50, 90, 99 % of the values, and all."},
		{Table: histograms},
	}
}
