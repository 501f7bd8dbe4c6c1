package stats

import "fmt"

// QueueError is an error of the system on a queue or its socket, with its number of occurrences.
type QueueError struct {
	Line  string `json:"line"`  // title of the queue's line
	Text  string `json:"text"`  // description, with the system's error message if there is one
	Times uint64 `json:"times"` // transmit: packets not sent; receive: failures of the socket
	Send  bool   `json:"-"`
}

// Errors returns the total number of system errors: those of all queues.
func (l *Ledger) Errors() (n uint64) {
	for i := range l.QueueErrors {
		n += l.QueueErrors[i].Times
	}
	return n
}

// String returns a description of the error.
func (f *QueueError) String() string {
	what := "its socket ceased to work, times"
	if f.Send {
		what = "packets not sent"
	}
	return fmt.Sprintf("%s: %s: %d: %s", f.Line, what, f.Times, f.Text)
}
