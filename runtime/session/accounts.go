package session

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"syscall"

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
			PaceBPS: n.PaceBPS, PacePPS: n.PacePPS, PaceSpeed: n.PaceSpeed,
		})
	}
	s.place(l.Lines)
	s.details(l)
	faults := s.native.Faults()
	for i := range faults {
		l.Faults = append(l.Faults, fault(&faults[i]))
	}
	return l
}

// details adds to the lines what only some have.
func (s *Session) details(l *stats.Ledger) {
	line := func(kind stats.Kind, name string, id uint32) *stats.Line {
		for k := range l.Lines {
			if x := &l.Lines[k]; x.Kind == kind && x.Name == name && x.QueueID == int(id) {
				return x
			}
		}
		return &stats.Line{} // of something that came between the two readings
	}
	timings := s.native.Timings()
	for i := range timings {
		t := &timings[i]
		line(stats.Tx, t.Name(), t.QueueID).Timing = &stats.Timing{WantedNS: t.WantedNS, TookNS: t.TookNS, OverdueNS: t.OverdueNS,
			GapError: spread(&t.GapError), TimeError: spread(&t.TimeError)}
	}
	spreads := s.native.Spreads()
	for i := range spreads {
		h := &spreads[i]
		switch out := spread(&h.N); {
		case h.Kind == native.SpreadCompletion: // also an empty one: it has names in the ledger from the start
			line(stats.Stage, h.Name(), 0).Completion = &stats.Histogram{Spread: out, Sum: h.Sum}
		case out == nil:
		case h.Kind == native.SpreadBurstSize:
			line(stats.Rx, h.Name(), h.QueueID).BurstSize = s.burstSize(h, out)
		default:
			line(stats.Writer, h.Name(), 0).WriteStall = &stats.Histogram{Spread: out, Sum: h.Sum}
		}
	}
	for _, f := range s.native.FlowCounts() {
		i := s.ifaces[f.Iface]
		name, _ := i.titles.Load(f.FlowID)
		title, _ := name.(string)
		x := line(stats.Rx, i.Name(), f.QueueID)
		x.Flows = append(x.Flows, stats.Flow{ID: f.FlowID, Name: title, Packets: f.Packets, Bytes: f.Bytes})
	}
	s.sources(line)
	for _, i := range s.ifaces {
		for _, q := range i.rx {
			line(stats.Rx, i.Name(), uint32(q.ID())).Unread = !q.read.Load() && len(q.plans) == 0
		}
	}
	for k := range l.Lines {
		x := &l.Lines[k]
		slices.SortFunc(x.Flows, func(a, b stats.Flow) int { return cmp.Compare(a.ID, b.ID) })
		if r, ok := s.handled.Load(x.Name); ok && x.Kind == stats.Tap {
			x.HandlerTime = r.(*stats.Recorder).Read()
		}
		if _, ok := s.stores.Load(x.Name); ok && x.Kind == stats.Writer {
			x.Store = true
		}
	}
}

// sources adds to reorder stages what came of each source, and to sockets' queues what came of each peer.
func (s *Session) sources(line func(stats.Kind, string, uint32) *stats.Line) {
	counts := s.native.SourceCounts()
	for i := range counts {
		c := &counts[i]
		x := line(stats.Stage, c.Name(), 0)
		x.Sources = append(x.Sources, stats.Source{Name: s.sourceName(c), Packets: c.Packets, Missing: c.Missing, Late: c.Late,
			Duplicate: c.Duplicate, Dropped: c.Dropped})
	}
	peers := s.native.PeerCounts()
	for i := range peers {
		c := &peers[i]
		x := line(stats.Rx, c.Name(), c.QueueID)
		x.Peers = append(x.Peers, stats.Peer{Name: cmp.Or(c.Peer(), stats.OtherSources), Packets: c.Packets, Bytes: c.Bytes})
	}
}

func (s *Session) sourceName(c *native.SourceCount) string {
	switch c.Kind {
	case native.SourcePeer:
		return c.Peer()
	case native.SourceOthers:
		return stats.OtherSources
	case native.SourceUnknown:
		return stats.UnknownSource
	}
	if write, ok := s.sourceTexts.Load(c.Name()); ok {
		return write.(func(uint64) string)(c.Number)
	}
	return strconv.FormatUint(c.Number, 10)
}

// burstSize makes sizes of what the engine counts, which is one less; none is above the queue's batch size.
func (s *Session) burstSize(h *native.Spread, out stats.Spread) *stats.Histogram {
	most := uint64(math.MaxUint64)
	s.queues.Range(func(_, v any) bool {
		if x := v.(*Queue); x.rx && x.i.Name() == h.Name() && x.ID() == int(h.QueueID) {
			most = uint64(x.BatchSize())
		}
		return true
	})
	for k := range out {
		out[k].Most = min(out[k].Most+1, most)
	}
	return &stats.Histogram{Spread: out, Sum: h.Sum + out.N()}
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
		if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO) {
			f.Text += ": the interface was removed; one made again under its name is not picked up: open the session again"
		}
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
