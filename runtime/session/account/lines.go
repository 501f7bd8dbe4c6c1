// Package account converts the figures of a native session to the lines of a ledger.
package account

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"syscall"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Names resolves the names in lines that the engine does not know.
type Names struct {
	Interface func(i int) string
	Flow      func(iface int, id uint32) string      // "": unknown
	Source    func(stage string) func(uint64) string // formats a stage's sources; nil: decimal
}

var lineKinds = map[native.LineKind]stats.Kind{
	native.LineRx:     stats.Rx,
	native.LineTx:     stats.Tx,
	native.LineWire:   stats.Wire,
	native.LineStage:  stats.Stage,
	native.LineTap:    stats.Tap,
	native.LineWriter: stats.Writer,
}

// Lines returns the lines of a session's ledger with their histograms, flows, sources and peers.
func Lines(n *native.Session, names Names) []stats.Line {
	var list []stats.Line
	rows := n.Ledger()
	for i := range rows {
		r := &rows[i]
		list = append(list, stats.Line{
			Kind: lineKinds[r.Kind], Name: r.Name(), Queue: r.Queue(), QueueID: int(r.QueueID),
			In: r.In, InBytes: r.InBytes, Out: r.Out, OutBytes: r.OutBytes, Bursts: r.Bursts, Held: r.Held,
			Dropped:    counts(r.Dropped[:], func(i int) string { return native.ReasonRows[i].Name }),
			Extra:      counts(r.Extra[:], func(i int) string { return native.ExtraRows[i].Name }),
			Histograms: emptyHistograms(r.Kind),
			PaceBPS:    r.PaceBPS, PacePPS: r.PacePPS, PaceSpeed: r.PaceSpeed,
		})
	}
	line := func(kind stats.Kind, name string, id uint32) *stats.Line {
		for k := range list {
			if x := &list[k]; x.Kind == kind && x.Name == name && x.QueueID == int(id) {
				return x
			}
		}
		return &stats.Line{} // created between the two readings
	}
	timings := n.Timings()
	for i := range timings {
		t := &timings[i]
		line(stats.Tx, t.Name(), t.QueueID).Timing = &stats.Timing{WantedNS: t.WantedNS, TookNS: t.TookNS, OverdueNS: t.OverdueNS}
	}
	histograms := n.Histograms()
	for i := range histograms {
		h := &histograms[i]
		row := &native.HistogramRows[h.Kind]
		x := line(lineKinds[row.Line], h.Name(), h.QueueID)
		if x.Histograms.Get(row.Name) == nil {
			x.Histograms = append(x.Histograms, emptyHistogram(row))
		}
		readHistogram(x.Histograms.Get(row.Name), h)
	}
	for _, f := range n.FlowCounts() {
		x := line(stats.Rx, names.Interface(int(f.Iface)), f.QueueID)
		x.Flows = append(x.Flows, stats.Flow{ID: f.FlowID, Name: names.Flow(int(f.Iface), f.FlowID), Packets: f.Packets, Bytes: f.Bytes})
	}
	for k := range list {
		slices.SortFunc(list[k].Flows, func(a, b stats.Flow) int { return cmp.Compare(a.ID, b.ID) })
	}
	addSources(n, names, line)
	return list
}

// addSources adds the counts of each source to reorder and gaps stages, and those of each peer to queues of sockets.
func addSources(n *native.Session, names Names, line func(stats.Kind, string, uint32) *stats.Line) {
	counts := n.SourceCounts()
	for i := range counts {
		c := &counts[i]
		x := line(stats.Stage, c.Name(), 0)
		x.Sources = append(x.Sources, stats.Source{Name: sourceName(c, names), Packets: c.Packets, Missing: c.Missing, Late: c.Late,
			Duplicate: c.Duplicate, Dropped: c.Dropped, Reordered: c.Reordered, Restarts: c.Restarts})
	}
	peers := n.PeerCounts()
	for i := range peers {
		c := &peers[i]
		x := line(stats.Rx, c.Name(), c.QueueID)
		x.Peers = append(x.Peers, stats.Peer{Name: cmp.Or(c.Peer(), stats.OtherSources), Packets: c.Packets, Bytes: c.Bytes})
	}
}

func sourceName(c *native.SourceCount, names Names) string {
	switch c.Kind {
	case native.SourcePeer:
		return c.Peer()
	case native.SourceOthers:
		return stats.OtherSources
	case native.SourceUnknown:
		return stats.UnknownSource
	}
	if text := names.Source(c.Name()); text != nil {
		return text(c.Number)
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

// Errors returns the errors of the queues' sockets.
func Errors(n *native.Session) []stats.QueueError {
	var list []stats.QueueError
	found := n.QueueErrors()
	for i := range found {
		list = append(list, queueError(&found[i]))
	}
	return list
}

func queueError(n *native.QueueError) stats.QueueError {
	f := stats.QueueError{Send: n.Send(), Times: n.N, Text: "other errors"}
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
