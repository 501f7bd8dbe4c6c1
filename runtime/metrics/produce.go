package metrics

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Session is a session to export, with its current ledger. Sessions of the same name are added up.
type Session struct {
	Name   string
	Ledger *stats.Ledger
}

// Labels; the first five are those of the reference.
const (
	labelEngine    = attribute.Key("daqiri.engine")
	labelInterface = attribute.Key("daqiri.interface.name")
	labelPort      = attribute.Key("daqiri.port.id")
	labelQueue     = attribute.Key("daqiri.queue.id")
	labelReason    = attribute.Key("daqiri.drop.reason")
	labelSession   = attribute.Key("daqiri.session.name")
	labelDirection = attribute.Key("daqiri.direction") // rx, tx or wire
	labelStage     = attribute.Key("daqiri.stage.name")
	labelKind      = attribute.Key("daqiri.stage.kind") // stage, tap or writer
	labelFlow      = attribute.Key("daqiri.flow.id")
	labelFlowName  = attribute.Key("daqiri.flow.name")
	labelPeer      = attribute.Key("daqiri.peer.name")
	labelSource    = attribute.Key("daqiri.source")
	labelMetric    = attribute.Key("daqiri.metric.name")
	labelFault     = attribute.Key("daqiri.fault")
)

// allQueues is the queue id of the sum of an interface's queues, as in the reference.
const allQueues = "all"

// producer generates metrics from ledgers at each collection.
type producer struct {
	scope instrumentation.Scope
	read  func() []Session
}

// Produce implements the SDK's Producer.
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	var process *stats.Process
	b := &builder{sums: map[string]int{}}
	for _, s := range merge(p.read()) {
		b.session(s)
		process = &s.Ledger.Process // the same in all ledgers
	}
	if process == nil {
		own := stats.ReadProcess(0)
		process = &own
	}
	b.labels, b.start, b.end = nil, time.Time{}, time.Now()
	b.counterFloat(cpuTime, process.CPUSeconds)
	b.gauge(memory, float64(process.RSS))
	return []metricdata.ScopeMetrics{{Scope: p.scope, Metrics: b.metrics}}, nil
}

// merge adds up sessions of the same name, because a series must be unique.
func merge(sessions []Session) []Session {
	var out []Session
	for _, s := range sessions {
		k := slices.IndexFunc(out, func(o Session) bool { return o.Name == s.Name })
		if k < 0 {
			out = append(out, s)
			continue
		}
		sum := out[k].Ledger.Plus(s.Ledger)
		sum.StartNS, sum.EndNS = out[k].Ledger.StartNS, s.Ledger.EndNS
		sum.Metrics = map[string]float64{} // the later session's value of a name wins
		maps.Copy(sum.Metrics, out[k].Ledger.Metrics)
		maps.Copy(sum.Metrics, s.Ledger.Metrics)
		out[k].Ledger = sum
	}
	return out
}

// builder collects points by metric. New points get its labels and times.
type builder struct {
	metrics    []metricdata.Metrics
	sums       map[string]int // index in metrics, by name
	labels     []attribute.KeyValue
	start, end time.Time
}

func (b *builder) session(s Session) {
	l := s.Ledger
	b.start, b.end = time.Unix(0, l.StartNS), time.Now()
	of := func(labels ...attribute.KeyValue) []attribute.KeyValue {
		return append([]attribute.KeyValue{labelSession.String(s.Name)}, labels...)
	}
	sides := map[string]bool{}
	for i := range l.Lines {
		x := &l.Lines[i]
		if !x.OfQueue() {
			b.labels = of(labelStage.String(x.Name), labelKind.String(string(x.Kind)))
			b.line(x)
			b.sources(x.Sources)
			continue
		}
		port := of(labelEngine.String(x.Engine), labelInterface.String(x.Name), labelPort.String(strconv.Itoa(x.PortID)),
			labelDirection.String(string(x.Kind)))
		if side := x.Name + "." + string(x.Kind); !sides[side] {
			sides[side] = true
			sum, _ := l.Side(x.Name, x.Kind)
			b.labels = append(slices.Clip(port), labelQueue.String(allQueues))
			b.line(&sum)
			b.flows(sum.Flows)
			b.peers(sum.Peers)
		}
		b.labels = append(slices.Clip(port), labelQueue.String(strconv.Itoa(x.QueueID)))
		b.line(x)
	}
	for _, f := range l.QueueErrors {
		b.labels = of(labelQueue.String(f.Line), labelFault.String(f.Text))
		b.counter(faults, f.Times)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Metrics)) {
		b.labels = of(labelMetric.String(name))
		b.gauge(script, l.Metrics[name])
	}
	b.labels = of()
	b.gauge(elapsed, l.Seconds())
}

// line adds the points of one line of the ledger.
func (b *builder) line(x *stats.Line) {
	switch x.Kind {
	case stats.Rx:
		b.counter(rxPackets, x.In)
		b.counter(rxBytes, x.InBytes)
	case stats.Tx:
		b.counter(txPackets, x.Out)
		b.counter(txBytes, x.OutBytes)
	case stats.Wire:
		b.counter(wirePackets, x.In)
		b.counter(wireBytes, x.InBytes)
	default:
		b.counter(stageIn, x.In)
		b.counter(stageInBytes, x.InBytes)
		b.counter(stageOut, x.Out)
		b.counter(stageOutBytes, x.OutBytes)
	}
	b.counter(bursts, x.Bursts)
	b.gauge(held, float64(x.Held))
	if x.PaceBPS > 0 {
		b.gauge(paceBits, x.PaceBPS)
	}
	if x.PacePPS > 0 {
		b.gauge(pacePackets, x.PacePPS)
	}
	for _, h := range x.Histograms {
		b.histogram(histograms()[h.Name], h)
	}
	with := b.labels
	for _, r := range x.Dropped { // including zeros: a rate needs the value before the first loss
		b.labels = append(slices.Clip(with), labelReason.String(r.Name))
		b.counter(dropped, r.N)
	}
	b.labels = with
	for _, e := range x.Extra {
		switch f := extras()[e.Name]; {
		case e.N == 0:
		case f.unit == "s":
			b.counterFloat(f, float64(e.N)/1e9)
		default:
			b.counter(f, e.N)
		}
	}
}

// flows adds the flows of an interface. They are not exported by queue, because a flow may be distributed over several.
func (b *builder) flows(flows stats.Flows) {
	with := b.labels
	for _, f := range flows {
		b.labels = append(slices.Clip(with), labelFlow.String(strconv.Itoa(int(f.ID))), labelFlowName.String(f.Name))
		b.counter(flowPackets, f.Packets)
		b.counter(flowBytes, f.Bytes)
	}
}

// peers adds the peers of an interface; a peer may use several queues.
func (b *builder) peers(peers stats.Peers) {
	with := b.labels
	for _, p := range peers {
		b.labels = append(slices.Clip(with), labelPeer.String(p.Name))
		b.counter(peerPackets, p.Packets)
		b.counter(peerBytes, p.Bytes)
	}
}

// sources adds the sources of a reorder or gaps stage.
func (b *builder) sources(sources stats.Sources) {
	with := b.labels
	for _, s := range sources {
		b.labels = append(slices.Clip(with), labelSource.String(s.Name))
		b.counter(sourcePackets, s.Packets)
		b.counter(sourceMissing, s.Missing)
		b.counter(sourceLate, s.Late)
		b.counter(sourceDuplicate, s.Duplicate)
		b.counter(sourceDropped, s.Dropped)
		b.counter(sourceReordered, s.Reordered)
		b.counter(sourceRestarts, s.Restarts)
	}
}
