package stats

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Figure is one named number of a ledger.
type Figure struct {
	Name  string // name relative to the line: "dropped_by.queue_full"
	Value float64
}

// figures returns the figures of a line. seconds is the time that its ledger covers.
func (l *Line) figures(seconds float64) []Figure {
	packets, bytes := l.In, l.InBytes
	if l.Kind == Tx {
		packets, bytes = l.Out, l.OutBytes // packets actually sent
	}
	if l.Kind == Writer {
		bytes = l.Extra.Get("file_bytes")
	}
	f := []Figure{
		{"packets", float64(packets)}, {"bytes", float64(bytes)}, {"held", float64(l.Held)}, {"dropped", float64(l.Dropped.Sum())},
		{"pps", per(float64(packets), seconds)}, {"bps", per(8*float64(bytes), seconds)},
	}
	for _, c := range counters {
		f = append(f, Figure{c.name, float64(*c.at(l))})
	}
	if l.Kind == Writer {
		f = append(f, Figure{"written", float64(l.Out)})
	}
	if l.Kind == Tx {
		f = append(f, Figure{"pace_bps", l.PaceBPS}, Figure{"pace_pps", l.PacePPS}, Figure{"rate_error", math.Abs(1 - l.Achieved())})
	}
	for _, h := range l.Histograms {
		f = append(f, h.figures()...)
	}
	for _, x := range l.Flows {
		name := "flow." + strconv.Itoa(int(x.ID))
		f = append(f, Figure{name + ".packets", float64(x.Packets)}, Figure{name + ".bytes", float64(x.Bytes)})
	}
	for _, x := range l.Peers {
		name := "peer." + figureName(x.Name)
		f = append(f, Figure{name + ".packets", float64(x.Packets)}, Figure{name + ".bytes", float64(x.Bytes)})
	}
	for i := range l.Sources {
		f = append(f, l.Sources[i].figures()...)
	}
	for _, x := range l.Dropped {
		f = append(f, Figure{"dropped_by." + x.Name, float64(x.N)})
	}
	for _, x := range l.Extra {
		f = append(f, Figure{x.Name, float64(x.N)})
	}
	return f
}

func (s *Source) figures() []Figure {
	name := "source." + figureName(s.Name)
	return []Figure{{name + ".packets", float64(s.Packets)}, {name + ".missing", float64(s.Missing)}, {name + ".late", float64(s.Late)},
		{name + ".duplicate", float64(s.Duplicate)}, {name + ".dropped", float64(s.Dropped)},
		{name + ".reordered", float64(s.Reordered)}, {name + ".restarts", float64(s.Restarts)}}
}

func per(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// Achieved returns the fraction of the requested pace that a transmit queue achieved between its first and last packet; 1 without a pace. Pauses of
// the script between two packets count, those between two transmissions do not.
func (l *Line) Achieved() float64 {
	if l.Timing == nil {
		return 1
	}
	return l.Timing.share()
}

// each calls fn with all names and figures: of interfaces and their queues, stages and writers, the process, and metrics.
func (l *Ledger) each(fn func(name string, v float64)) {
	line := func(prefix string, x *Line) {
		for _, f := range x.figures(l.Seconds()) {
			fn(prefix+"."+f.Name, f.Value)
		}
	}
	sides := map[string]bool{}
	for i := range l.Lines {
		x := &l.Lines[i]
		if x.OfQueue() {
			if side := x.Name + "." + string(x.Kind); !sides[side] {
				sides[side] = true
				sum, _ := l.Side(x.Name, x.Kind)
				line(side, &sum)
			}
		}
		line(x.Title(), x)
	}
	fn("process.rss", float64(l.Process.RSS))
	fn("process.rss_growth", float64(l.Process.RSSGrowth))
	fn("process.cpu_seconds", l.Process.CPUSeconds)
	fn("process.allocations", float64(l.Process.Allocations))
	fn("session.seconds", l.Seconds())
	fn("errors", float64(l.Errors()))
	for _, name := range slices.Sorted(maps.Keys(l.Metrics)) {
		fn(name, l.Metrics[name])
	}
}

func (l *Ledger) build() {
	l.index = map[string]float64{}
	l.each(func(name string, v float64) {
		if _, taken := l.index[name]; !taken { // a metric does not hide a figure of the ledger
			l.names = append(l.names, name)
			l.index[name] = v
		}
	})
}

// someOf matches the names of figures of flows, sources and peers.
var someOf = regexp.MustCompile(`\.(flow|peer|source)\.[0-9A-Za-z_]+\.(packets|bytes|missing|late|duplicate|dropped|reordered|restarts)$`)

// OfSome reports whether name is a figure of a flow, a source or a peer, which exists only after its first packet.
func OfSome(name string) bool { return someOf.MatchString(name) }

// Lookup returns the figure of a dotted name: "rx_port.rx.dropped", "rx_port.rx.0.packets", "disk.written", "process.rss_growth", or a metric.
// "dropped.REASON" is the former name of "dropped_by.REASON".
func (l *Ledger) Lookup(name string) (v float64, ok bool) {
	l.once.Do(l.build)
	if v, ok = l.index[name]; !ok {
		v, ok = l.index[strings.Replace(name, ".dropped.", ".dropped_by.", 1)]
	}
	return v, ok
}

// Names returns the names that Lookup accepts, in the order of the lines.
func (l *Ledger) Names() []string {
	l.once.Do(l.build)
	return slices.Clone(l.names)
}
