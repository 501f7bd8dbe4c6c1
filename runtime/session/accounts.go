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
	return l
}

func counts(n []uint64, name func(int) string) stats.Counts {
	out := make(stats.Counts, len(n))
	for i := range n {
		out[i] = stats.Count{Name: name(i), N: n[i]}
	}
	return out
}
