package metrics

import (
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// family is a metric: its name in OpenTelemetry's form, its unit in UCUM, and what it says.
type family struct{ name, unit, text string }

// The metrics. The first five are the reference's, with its labels; interfaces have each as daqiri.queue.id "all", too.
var (
	rxPackets = family{"daqiri.rx.packets", "{packet}", "Packets received"}
	txPackets = family{"daqiri.tx.packets", "{packet}", "Packets sent"}
	rxBytes   = family{"daqiri.rx.bytes", "By", "Bytes received"}
	txBytes   = family{"daqiri.tx.bytes", "By", "Bytes sent"}
	dropped   = family{"daqiri.dropped.packets", "{packet}", "Packets that did not go on, by reason: of a queue, a wire or a stage"}

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

	sourcePackets   = family{"daqiri.source.packets", "{packet}", "Packets in aggregates that a reorder stage handed over, by source"}
	sourceMissing   = family{"daqiri.source.missing", "{packet}", "Packets missing in them, by the source that had their places last"}
	sourceLate      = family{"daqiri.source.late", "{packet}", "Packets that came when their batch had been handed over, by source"}
	sourceDuplicate = family{"daqiri.source.duplicate", "{packet}", "Packets that came again, by source"}
	sourceDropped   = family{"daqiri.source.dropped", "{packet}", "Packets that had no place for another reason, by source"}

	burstSize   = family{"daqiri.rx.burst.size", "{packet}", "Packets of each burst that a receive queue delivered"}
	handlerTime = family{"daqiri.handler.time", "s", "Time of each call of an on_burst handler"}
	completion  = family{"daqiri.reorder.completion.time", "s", "From the first packet of a batch until it was handed over"}
	writeStall  = family{"daqiri.write.stall", "s", "Waits of a writer for the disk"}
	gapError    = family{"daqiri.tx.gap.error", "s", "How far gaps between paced packets were from what was asked for"}
	timeError   = family{"daqiri.tx.time.error", "s", "How long after their send time packets left"}

	paceBits    = family{"daqiri.tx.pace", "bit/s", "The pace asked for"}
	pacePackets = family{"daqiri.tx.pace.packets", "{packet}/s", "The pace asked for"}
	script      = family{"daqiri.metric", "", "What the script set by s:metric(name, value)"}
	elapsed     = family{"daqiri.session.time", "s", "How long packets have moved"}
	cpuTime     = family{"process.cpu.time", "s", "CPU time of the process"}
	memory      = family{"process.memory.usage", "By", "Resident memory of the process"}
)

// extraText is the text of the metrics that extra makes.
const extraText = "A further figure of the ledger, see daqiri-run's summary"

// extra is the family of a further figure of the ledger: "kernel_dropped" is daqiri.kernel_dropped. Times are in seconds:
// "stall_ns" is daqiri.stall.
func extra(name string) family {
	if time, ok := strings.CutSuffix(name, "_ns"); ok {
		return family{"daqiri." + time, "s", extraText}
	}
	return family{"daqiri." + name, "", extraText}
}

// Names lists every metric that a ledger with these further figures can have, under its name in Prometheus.
func Names(extras stats.Counts) []string {
	counters := []family{rxPackets, txPackets, rxBytes, txBytes, dropped, wirePackets, wireBytes, stageIn, stageInBytes, stageOut,
		stageOutBytes, bursts, flowPackets, flowBytes, peerPackets, peerBytes, sourcePackets, sourceMissing, sourceLate, sourceDuplicate,
		sourceDropped, faults, cpuTime}
	for _, x := range extras {
		counters = append(counters, extra(x.Name))
	}
	var names []string
	for _, f := range counters {
		names = append(names, f.prometheus("_total"))
	}
	for _, f := range []family{held, paceBits, pacePackets, script, elapsed, memory} {
		names = append(names, f.prometheus(""))
	}
	for _, f := range []family{burstSize, handlerTime, completion, writeStall, gapError, timeError} {
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			names = append(names, f.prometheus("")+part)
		}
	}
	slices.Sort(names)
	return names
}

// prometheus is the name that the exporter makes: words joined by '_', and the unit behind them unless it is there.
func (f family) prometheus(suffix string) string {
	name := strings.ReplaceAll(f.name, ".", "_")
	unit := map[string]string{"By": "_bytes", "s": "_seconds", "bit/s": "_bit_per_second", "{packet}/s": "_per_second"}[f.unit]
	if !strings.HasSuffix(name, unit) {
		name += unit
	}
	return name + suffix
}
