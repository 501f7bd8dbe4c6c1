package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/daqiri/daqiri-run/native"
)

// family is a metric: its OpenTelemetry name, its UCUM unit, and its description.
type family struct{ name, unit, text string }

// The metrics. The first five are those of the reference, with its labels; they also exist per interface, with daqiri.queue.id "all".
var (
	rxPackets = family{"daqiri.rx.packets", "{packet}", "Packets received"}
	txPackets = family{"daqiri.tx.packets", "{packet}", "Packets sent"}
	rxBytes   = family{"daqiri.rx.bytes", "By", "Bytes received"}
	txBytes   = family{"daqiri.tx.bytes", "By", "Bytes sent"}
	dropped   = family{"daqiri.dropped.packets", "{packet}", "Packets that were dropped, by reason: of a queue, a wire or a stage"}

	wirePackets   = family{"daqiri.wire.packets", "{packet}", "Packets on the wire: what a raw interface received, or the simulated wire carried"}
	wireBytes     = family{"daqiri.wire.bytes", "By", "Bytes on the wire"}
	stageIn       = family{"daqiri.stage.in.packets", "{packet}", "Packets that came to a stage"}
	stageInBytes  = family{"daqiri.stage.in.bytes", "By", "Bytes that came to a stage"}
	stageOut      = family{"daqiri.stage.out.packets", "{packet}", "Packets that left a stage; of a writer, that are in its files"}
	stageOutBytes = family{"daqiri.stage.out.bytes", "By", "Bytes that left a stage"}
	held          = family{"daqiri.held.packets", "{packet}", "Packets inside a queue or stage now"}
	bursts        = family{"daqiri.bursts", "{burst}", "Bursts that passed a queue or stage"}
	flowPackets   = family{"daqiri.flow.packets", "{packet}", "Packets received, by the flow that took them"}
	flowBytes     = family{"daqiri.flow.bytes", "By", "Bytes received, by the flow that took them"}
	peerPackets   = family{"daqiri.peer.packets", "{packet}", "Packets received, by the peer that sent them"}
	peerBytes     = family{"daqiri.peer.bytes", "By", "Bytes received, by the peer that sent them"}
	faults        = family{"daqiri.faults", "{fault}", "What the system refused a queue, or did to its socket"}

	sourcePackets   = family{"daqiri.source.packets", "{packet}", "Packets in aggregates that a reorder stage handed over, by source; of a gaps stage, packets with a new number"}
	sourceMissing   = family{"daqiri.source.missing", "{packet}", "Packets missing in them, by the source that had their places last; of a gaps stage, missing numbers"}
	sourceLate      = family{"daqiri.source.late", "{packet}", "Packets that came when their batch had been handed over, by source; of a gaps stage, below its window"}
	sourceDuplicate = family{"daqiri.source.duplicate", "{packet}", "Packets that came again, by source"}
	sourceDropped   = family{"daqiri.source.dropped", "{packet}", "Packets that had no place for another reason, by source"}

	sourceReordered = family{"daqiri.source.reordered", "{packet}", "Packets of a gaps stage with a new number below the highest, by source"}
	sourceRestarts  = family{"daqiri.source.restarts", "{time}", "Times that the numbers of a source continued far from those before"}

	paceBits    = family{"daqiri.tx.pace", "bit/s", "The pace asked for"}
	pacePackets = family{"daqiri.tx.pace.packets", "{packet}/s", "The pace asked for"}
	script      = family{"daqiri.metric", "", "What the script set by s:metric(name, value)"}
	elapsed     = family{"daqiri.session.time", "s", "How long packets have moved"}
	cpuTime     = family{"process.cpu.time", "s", "CPU time of the process"}
	memory      = family{"process.memory.usage", "By", "Resident memory of the process"}
)

// counters and gauges list the families of each kind, except those of extras.
var (
	counters = []family{rxPackets, txPackets, rxBytes, txBytes, dropped, wirePackets, wireBytes, stageIn, stageInBytes, stageOut, stageOutBytes,
		bursts, flowPackets, flowBytes, peerPackets, peerBytes, sourcePackets, sourceMissing, sourceLate, sourceDuplicate, sourceDropped,
		sourceReordered, sourceRestarts, faults,
		cpuTime}
	gauges = []family{held, paceBits, pacePackets, script, elapsed, memory}
)

// extras maps the names of the ledger's extra counters to families: "kernel_dropped" is daqiri.kernel_dropped. Times are in seconds: "stall_ns" is
// daqiri.stall.
var extras = sync.OnceValue(func() map[string]family {
	all := map[string]family{}
	for _, r := range native.ExtraRows {
		f := family{"daqiri." + r.Name, "{" + strings.TrimSuffix(r.Unit, "s") + "}", strings.ToUpper(r.Text[:1]) + r.Text[1:]}
		switch r.Unit {
		case "ns":
			f.name, f.unit = strings.TrimSuffix(f.name, "_ns"), "s"
		case "bytes":
			f.unit = "By"
		case "batches":
			f.unit = "{batch}"
		}
		all[r.Name] = f
	}
	return all
})

// histograms maps the names of the ledger's histograms to families, with times in seconds.
var histograms = sync.OnceValue(func() map[string]family {
	all := map[string]family{}
	for _, r := range native.HistogramRows {
		all[r.Name] = family{"daqiri." + r.Metric, map[string]string{"packets": "{packet}", "ns": "s"}[r.Unit], r.Text}
	}
	return all
})

func sorted(all map[string]family) []family {
	return slices.SortedFunc(maps.Values(all), func(a, b family) int { return strings.Compare(a.name, b.name) })
}

// A Word is a metric as documented for users.
type Word struct {
	Prometheus string // name in Prometheus; for a histogram without _bucket, _count and _sum
	Unit       string // UCUM; empty: any
	Text       string
}

// Words returns all metrics.
func Words() []Word {
	var list []Word
	add := func(suffix string, families ...family) {
		for _, f := range families {
			list = append(list, Word{f.prometheus(suffix), f.unit, f.text})
		}
	}
	add("_total", counters...)
	add("_total", sorted(extras())...)
	add("", gauges...)
	add("", sorted(histograms())...)
	return list
}

// Names returns the Prometheus names of all metrics.
func Names() []string {
	var names []string
	parts := len(histograms())
	words := Words()
	for _, w := range words[:len(words)-parts] {
		names = append(names, w.Prometheus)
	}
	for _, w := range words[len(words)-parts:] {
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			names = append(names, w.Prometheus+part)
		}
	}
	slices.Sort(names)
	return names
}

// prometheus returns the name that the exporter generates: words joined by '_' and, unless already there, the unit as suffix.
func (f family) prometheus(suffix string) string {
	name := strings.ReplaceAll(f.name, ".", "_")
	unit := map[string]string{"By": "_bytes", "s": "_seconds", "bit/s": "_bit_per_second", "{packet}/s": "_per_second"}[f.unit]
	if !strings.HasSuffix(name, unit) {
		name += unit
	}
	return name + suffix
}
