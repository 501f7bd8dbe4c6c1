package session

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"syscall"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Ledger returns all accounts of the session; after Close, their final state. It may be called from any goroutine.
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
	if to := s.quiescedNS.Load(); to != 0 {
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
			Dropped:    counts(n.Dropped[:], func(i int) string { return native.ReasonRows[i].Name }),
			Extra:      counts(n.Extra[:], func(i int) string { return native.ExtraRows[i].Name }),
			Histograms: emptyHistograms(n.Kind),
			PaceBPS:    n.PaceBPS, PacePPS: n.PacePPS, PaceSpeed: n.PaceSpeed,
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

// details adds figures that only some lines have.
func (s *Session) details(l *stats.Ledger) {
	line := func(kind stats.Kind, name string, id uint32) *stats.Line {
		for k := range l.Lines {
			if x := &l.Lines[k]; x.Kind == kind && x.Name == name && x.QueueID == int(id) {
				return x
			}
		}
		return &stats.Line{} // created between the two readings
	}
	timings := s.native.Timings()
	for i := range timings {
		t := &timings[i]
		line(stats.Tx, t.Name(), t.QueueID).Timing = &stats.Timing{WantedNS: t.WantedNS, TookNS: t.TookNS, OverdueNS: t.OverdueNS}
	}
	histograms := s.native.Histograms()
	for i := range histograms {
		h := &histograms[i]
		row := &native.HistogramRows[h.Kind]
		x := line(lineKinds[row.Line], h.Name(), h.QueueID)
		if x.Histograms.Get(row.Name) == nil {
			x.Histograms = append(x.Histograms, emptyHistogram(row))
		}
		readHistogram(x.Histograms.Get(row.Name), h)
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
			line(stats.Rx, i.Name(), uint32(q.ID())).Unread = q.unread()
		}
	}
	for k := range l.Lines {
		x := &l.Lines[k]
		slices.SortFunc(x.Flows, func(a, b stats.Flow) int { return cmp.Compare(a.ID, b.ID) })
		if r, ok := s.handled.Load(x.Name); ok && x.Kind == stats.Tap {
			h := x.Histograms.Get("handler_time")
			h.Buckets, h.Sum = r.(*stats.Recorder).Read()
		}
		if _, ok := s.stores.Load(x.Name); ok && x.Kind == stats.Writer {
			x.Store = true
		}
	}
}

// unread reports whether no pipe has read the queue so far. A queue without regions holds no packets: its receivers start operations on its
// connections.
func (q *Queue) unread() bool {
	return !q.read.Load() && len(q.plans) == 0 && len(q.spec.MemoryRegions) > 0
}

// sources adds the counts of each source to reorder stages, and those of each peer to queues of sockets.
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

// emptyHistograms returns the histograms that lines of this kind always have; stages only have those that they fill.
func emptyHistograms(kind native.LineKind) (list stats.Histograms) {
	for i := range native.HistogramRows {
		if r := &native.HistogramRows[i]; r.Line == kind && kind != native.LineStage {
			list = append(list, emptyHistogram(r))
		}
	}
	return list
}

func emptyHistogram(r *native.HistogramRow) *stats.Histogram {
	return &stats.Histogram{Name: r.Name, Unit: r.Unit, Title: r.Title}
}

// readHistogram copies the non-empty buckets.
func readHistogram(to *stats.Histogram, from *native.Histogram) {
	for k, count := range from.N {
		if count == 0 {
			continue
		}
		most := native.BucketMost(k) + from.First
		if from.Most > 0 {
			most = min(most, from.Most)
		}
		to.Buckets = append(to.Buckets, stats.Bucket{Most: most, N: count})
	}
	to.Sum = from.Sum + from.First*to.N()
}

// place sets the engine and the port id of queue lines.
func (s *Session) place(lines []stats.Line) {
	for k, i := range s.ifaces {
		for n := range lines {
			if x := &lines[n]; x.OfQueue() && x.Name == i.Name() {
				x.Engine, x.PortID = i.Engine(), k
			}
		}
	}
}

// fault converts an error of a queue's socket.
func fault(n *native.Fault) stats.Fault {
	f := stats.Fault{Send: n.Send(), Times: n.N, Text: "other errors"}
	line := stats.Line{Kind: stats.Rx, Name: n.Name(), QueueID: int(n.QueueID)}
	if f.Send {
		line.Kind = stats.Tx
	}
	f.Line = line.Title()
	if n.Shut() && !f.Send {
		f.Text = "socket was shut down; retrying every 10 ms"
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
