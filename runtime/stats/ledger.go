package stats

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Schema is the version of the ledger's JSON form.
const Schema = 2

// Kind is the type of a line.
type Kind string

// Types of lines.
const (
	Rx     Kind = "rx"     // a receive queue
	Tx     Kind = "tx"     // a transmit queue
	Wire   Kind = "wire"   // simulated wire of a transmit queue; packets received by a raw interface
	Stage  Kind = "stage"  // stage that changes or passes the stream
	Tap    Kind = "tap"    // packets for a task
	Writer Kind = "writer" // files
)

// Count is a named counter.
type Count struct {
	Name string
	N    uint64
}

// Counts is a list of named counters in the order of the engine's table. Its JSON form is an object of the counters that are not 0.
type Counts []Count

func (c Count) key() string { return c.Name }

func (c Count) with(o Count, change func(a, b uint64) uint64) Count {
	return Count{c.Name, change(c.N, o.N)}
}

// appendString appends a string as JSON.
func appendString(out []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // encoding a string cannot fail
	return append(out, quoted...)
}

// MarshalJSON encodes the counters that are not 0, in order.
func (c Counts) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, x := range c {
		if x.N == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = fmt.Appendf(appendString(out, x.Name), ":%d", x.N)
	}
	return append(out, '}'), nil
}

// Sum returns the sum of the counters.
func (c Counts) Sum() uint64 {
	var n uint64
	for _, x := range c {
		n += x.N
	}
	return n
}

// Get returns the counter of that name, or 0 if there is none.
func (c Counts) Get(name string) uint64 {
	for _, x := range c {
		if x.Name == name {
			return x.N
		}
	}
	return 0
}

// Line is one account: In = Out + Held + the sum of Dropped, exactly when no packet is moving. Counters are in packets unless their name contains
// bytes.
type Line struct {
	Kind     Kind   `json:"kind"`
	Name     string `json:"name"`            // of the interface or stage
	Queue    string `json:"queue,omitempty"` // of receive, transmit and wire lines
	QueueID  int    `json:"queue_id"`
	In       uint64 `json:"in"`
	InBytes  uint64 `json:"in_bytes"`
	Out      uint64 `json:"out"`
	OutBytes uint64 `json:"out_bytes"`
	Bursts   uint64 `json:"bursts"`
	Held     uint64 `json:"held"`
	Dropped  Counts `json:"dropped"`
	Extra    Counts `json:"extra"`

	Histograms Histograms `json:"histograms"`

	PaceBPS   float64 `json:"pace_bps,omitempty"` // transmit: requested rate
	PacePPS   float64 `json:"pace_pps,omitempty"`
	PaceSpeed float64 `json:"pace_speed,omitempty"` // transmit: packets keep the gaps between their receive times, divided by this factor
	Timing    *Timing `json:"timing,omitempty"`     // transmit: accuracy of the pace; nil without a pace

	Store  bool  `json:"store,omitempty"`  // writers: objects instead of files
	Unread bool  `json:"unread,omitempty"` // receive: no pipe reads the queue yet
	Flows  Flows `json:"flows,omitempty"`  // receive: packets by flow, if there are flows
	Peers  Peers `json:"peers,omitempty"`  // receive: packets by peer, for sockets

	Sources Sources `json:"sources,omitempty"` // reorder, gaps: packets by source, if sources are distinguished

	Engine string `json:"-"` // of a queue's interface
	PortID int    `json:"-"` // index of the interface in the configuration
}

// Title returns the line's name in the ledger: "rx_port.rx.0", "tx_port.wire.1", "disk".
func (l *Line) Title() string {
	if l.OfQueue() {
		return fmt.Sprintf("%s.%s.%d", l.Name, l.Kind, l.QueueID)
	}
	return l.Name
}

// OfQueue reports whether the line belongs to an interface's queue rather than a stage.
func (l *Line) OfQueue() bool { return l.Kind == Rx || l.Kind == Tx || l.Kind == Wire }

// Process holds figures of the whole process.
type Process struct {
	RSS        uint64  `json:"rss_bytes"`        // resident memory
	RSSGrowth  int64   `json:"rss_growth_bytes"` // since the session's start; of a difference: within it
	CPUSeconds float64 `json:"cpu_seconds"`
	// Number of heap objects allocated by Go code, Lua included.
	Allocations uint64 `json:"allocations"`
}

// Ledger holds all accounts of a session at one time, or between two.
type Ledger struct {
	Clock       string // real or virtual
	StartNS     int64  // ns since the epoch: when packets began to move; before that, when the session was opened
	EndNS       int64  // time of the snapshot, or when receiving had ended and the last packet had left
	Lines       []Line
	QueueErrors []QueueError // system errors of queues so far
	Metrics     map[string]float64
	Process     Process

	once  sync.Once // protects the fields below
	index map[string]float64
	names []string
}

// Bare returns the ledger without the index of names, which is ten times as large and rebuilt on demand. It is meant for storing ledgers.
func (l *Ledger) Bare() *Ledger {
	return &Ledger{Clock: l.Clock, StartNS: l.StartNS, EndNS: l.EndNS, Lines: l.Lines, QueueErrors: l.QueueErrors, Metrics: l.Metrics,
		Process: l.Process}
}

// Seconds returns the time that the ledger covers.
func (l *Ledger) Seconds() float64 { return float64(l.EndNS-l.StartNS) / 1e9 }

// MarshalJSON encodes the ledger in a stable order, starting with the schema number.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Schema      int                `json:"schema"`
		Clock       string             `json:"clock"`
		StartNS     int64              `json:"start_ns"`
		Seconds     float64            `json:"seconds"`
		Lines       []Line             `json:"lines"`
		QueueErrors []QueueError       `json:"faults,omitempty"`
		Metrics     map[string]float64 `json:"metrics"`
		Process     Process            `json:"process"`
	}{Schema, l.Clock, l.StartNS, l.Seconds(), l.Lines, l.QueueErrors, l.Metrics, l.Process})
}

// Imbalance is a line that does not add up: packets that are missing (positive) or counted twice.
type Imbalance struct {
	Line    string
	Missing int64
}

// String returns a description of the imbalance.
func (i Imbalance) String() string {
	return fmt.Sprintf("%s: in - out - held - dropped = %d", i.Line, i.Missing)
}

// Balance returns the lines that do not add up. While packets move, a line may be off by packets in transit; for a difference the result is
// meaningless.
func (l *Ledger) Balance() []Imbalance {
	var bad []Imbalance
	for i := range l.Lines {
		x := &l.Lines[i]
		if missing := int64(x.In - x.Out - x.Held - x.Dropped.Sum()); missing != 0 {
			bad = append(bad, Imbalance{x.Title(), missing})
		}
	}
	return bad
}

// Since returns the difference between l and an earlier ledger of the same session. Held, the errors and the metrics are l's.
func (l *Ledger) Since(before *Ledger) *Ledger {
	d := &Ledger{Clock: l.Clock, StartNS: before.EndNS, EndNS: l.EndNS, QueueErrors: l.QueueErrors, Metrics: l.Metrics}
	d.Process = Process{
		RSS:         l.Process.RSS,
		RSSGrowth:   int64(l.Process.RSS - before.Process.RSS),
		CPUSeconds:  l.Process.CPUSeconds - before.Process.CPUSeconds,
		Allocations: l.Process.Allocations - before.Process.Allocations,
	}
	old := map[string]*Line{}
	for i := range before.Lines {
		old[before.Lines[i].Title()] = &before.Lines[i]
	}
	for _, x := range l.Lines {
		if o := old[x.Title()]; o != nil {
			x = x.minus(o, d.Seconds())
		}
		d.Lines = append(d.Lines, x)
	}
	return d
}

// counters lists the monotonic counters of a line.
var counters = []struct {
	name string
	at   func(*Line) *uint64
}{
	{"in", func(l *Line) *uint64 { return &l.In }}, {"in_bytes", func(l *Line) *uint64 { return &l.InBytes }},
	{"out", func(l *Line) *uint64 { return &l.Out }}, {"out_bytes", func(l *Line) *uint64 { return &l.OutBytes }},
	{"bursts", func(l *Line) *uint64 { return &l.Bursts }},
}

// with combines the counters of two lines by change: their sum, or the difference of a later reading l and an earlier one o.
func (l Line) with(o *Line, change func(a, b uint64) uint64) Line {
	for _, c := range counters {
		n := c.at(&l)
		*n = change(*n, *c.at(o))
	}
	l.Dropped = joined(l.Dropped, o.Dropped, change)
	l.Extra = joined(l.Extra, o.Extra, change)
	l.Histograms = joined(l.Histograms, o.Histograms, change)
	l.Flows = l.Flows.with(o.Flows, change)
	l.Peers = joined(l.Peers, o.Peers, change)
	l.Sources = joined(l.Sources, o.Sources, change)
	return l
}

// minus returns the difference since o; seconds is the time between the two.
func (l Line) minus(o *Line, seconds float64) Line {
	l = l.with(o, func(a, b uint64) uint64 { return a - b })
	l.Timing = l.Timing.minus(o.Timing, seconds)
	return l
}

// plus returns the sum of two lines of one kind.
func (l Line) plus(o *Line) Line {
	l = l.with(o, func(a, b uint64) uint64 { return a + b })
	l.Held += o.Held
	l.PaceBPS += o.PaceBPS
	l.PacePPS += o.PacePPS
	l.Timing = l.Timing.plus(o.Timing)
	return l
}

// Plus returns the sum of the ledgers of two sessions, line by line by name. Process and metrics are those of the later session o.
func (l *Ledger) Plus(o *Ledger) *Ledger {
	sum := o.Bare()
	sum.StartNS, sum.EndNS = 0, l.EndNS-l.StartNS+o.EndNS-o.StartNS
	sum.Lines = slices.Clone(l.Lines)
	for i := range o.Lines {
		x := &o.Lines[i]
		if k := slices.IndexFunc(sum.Lines, func(y Line) bool { return y.Kind == x.Kind && y.Title() == x.Title() }); k >= 0 {
			y := sum.Lines[k].plus(x)
			y.PaceBPS, y.PacePPS, y.PaceSpeed = x.PaceBPS, x.PacePPS, x.PaceSpeed
			sum.Lines[k] = y
		} else {
			sum.Lines = append(sum.Lines, *x)
		}
	}
	return sum
}

// Side returns the sum of an interface's receive, transmit or wire lines; ok is false if it has none.
func (l *Ledger) Side(iface string, kind Kind) (sum Line, ok bool) {
	for i := range l.Lines {
		x := &l.Lines[i]
		switch {
		case x.Name != iface || x.Kind != kind:
		case !ok:
			sum, ok = *x, true
			sum.Queue, sum.QueueID = "", 0
		default:
			sum = sum.plus(x)
		}
	}
	return sum, ok
}
