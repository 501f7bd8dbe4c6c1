package stats

import "fmt"

// Fault is something that the system refused a queue, or did to its socket, and how often.
type Fault struct {
	Line  string `json:"line"`  // the title of the queue's line
	Text  string `json:"text"`  // what happened, in the system's words where it has some
	Times uint64 `json:"times"` // transmit: packets that were not sent; receive: times that its socket ceased to work
	Send  bool   `json:"-"`
}

// Errors is how often the system refused something or took it away: the sum of the faults.
func (l *Ledger) Errors() (n uint64) {
	for i := range l.Faults {
		n += l.Faults[i].Times
	}
	return n
}

// String tells the fault in words.
func (f *Fault) String() string {
	what := "its socket ceased to work, times"
	if f.Send {
		what = "packets not sent"
	}
	return fmt.Sprintf("%s: %s: %d: %s", f.Line, what, f.Times, f.Text)
}
