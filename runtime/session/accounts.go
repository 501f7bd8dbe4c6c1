package session

import (
	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Ledger reads every account of the session; after Close, as they were then. Any goroutine.
func (s *Session) Ledger() *stats.Ledger {
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.last != nil {
		return s.last
	}
	return s.snapshot()
}

var lineKinds = map[native.LineKind]stats.Kind{
	native.LineRx:     stats.Rx,
	native.LineTx:     stats.Tx,
	native.LineWire:   stats.Wire,
	native.LineStage:  stats.Stage,
	native.LineTap:    stats.Tap,
	native.LineWriter: stats.Writer,
}

func (s *Session) snapshot() *stats.Ledger {
	l := &stats.Ledger{
		Clock:   "real",
		StartNS: s.startNS,
		EndNS:   s.native.Now(),
		Metrics: s.metrics.All(),
		Process: stats.ReadProcess(s.startRSS),
	}
	if from := s.movedNS.Load(); from != 0 {
		l.StartNS = from
	}
	if to := s.restedNS.Load(); to != 0 {
		l.EndNS = to
	}
	if s.Virtual() {
		l.Clock = "virtual"
	}
	lines := s.native.Ledger()
	for i := range lines {
		n := &lines[i]
		l.Lines = append(l.Lines, stats.Line{
			Kind: lineKinds[n.Kind], Name: n.Name(), Queue: n.Queue(), QueueID: int(n.QueueID),
			In: n.In, InBytes: n.InBytes, Out: n.Out, OutBytes: n.OutBytes, Bursts: n.Bursts, Held: n.Held,
			Dropped: counts(n.Dropped[:], native.ReasonName), Extra: counts(n.Extra[:], native.ExtraName),
			PaceBPS: n.PaceBPS, PacePPS: n.PacePPS,
		})
	}
	s.place(l.Lines)
	timings := s.native.Timings()
	for i := range timings {
		t := &timings[i]
		for k := range l.Lines {
			if x := &l.Lines[k]; x.Kind == stats.Tx && x.Name == t.Name() && x.QueueID == int(t.QueueID) {
				x.Timing = &stats.Timing{WantedNS: t.WantedNS, TookNS: t.TookNS, OverdueNS: t.OverdueNS,
					GapError: spread(&t.GapError), TimeError: spread(&t.TimeError)}
			}
		}
	}
	faults := s.native.Faults()
	for i := range faults {
		l.Faults = append(l.Faults, fault(&faults[i]))
	}
	return l
}

// place says which interface each queue's line is of.
func (s *Session) place(lines []stats.Line) {
	for k, i := range s.ifaces {
		for n := range lines {
			if x := &lines[n]; x.OfQueue() && x.Name == i.Name() {
				x.Engine, x.PortID = i.Engine(), k
			}
		}
	}
}

// spread keeps the buckets of a histogram that are not empty.
func spread(n *[native.Buckets]uint64) (out stats.Spread) {
	for k, count := range n {
		if count > 0 {
			out = append(out, stats.Bucket{Most: native.BucketMost(k), N: count})
		}
	}
	return out
}

// fault says what a queue's socket met.
func fault(n *native.Fault) stats.Fault {
	f := stats.Fault{Send: n.Send(), Times: n.N, Text: "other errors"}
	line := stats.Line{Kind: stats.Rx, Name: n.Name(), QueueID: int(n.QueueID)}
	if f.Send {
		line.Kind = stats.Tx
	}
	f.Line = line.Title()
	if n.Shut() && !f.Send {
		f.Text = "somebody shut it down; it is looked at every 10 ms"
	} else if err := n.Err(); err != nil {
		f.Text = err.Error()
	}
	return f
}

func counts(n []uint64, name func(int) string) stats.Counts {
	out := make(stats.Counts, len(n))
	for i := range n {
		out[i] = stats.Count{Name: name(i), N: n[i]}
	}
	return out
}
