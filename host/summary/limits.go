package summary

import (
	"fmt"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// shortfall is the tolerated relative shortfall of a queue's rate before the summary reports it.
const shortfall = 0.02

// limits describes what limited a session and how to fix it, as far as the counters show. endless are the queues that transmitted all the time:
// only their rate over the whole run is comparable with the configured one.
func limits(lines []stats.Line, runS float64, endless map[string]bool) []string {
	var found []string
	for i := range lines {
		l := &lines[i]
		found = append(found, lossLimits(l, runS)...)
		found = append(found, captureLimits(l)...)
		if endless[l.Title()] && runS > 0 {
			found = append(found, rateLimits(l)...)
		}
	}
	return found
}

// shortRun is the run time below which the wait for a file's end is not significant for the disk.
const shortRun = 0.1

// lossLimits reports losses and waits of a line. A stall may exceed runS, as it includes waits after the stop.
func lossLimits(l *stats.Line, runS float64) []string {
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	behind, stall := l.Dropped.Get("behind"), float64(l.Extra.Get("stall_ns"))/1e9
	switch {
	case l.Kind == stats.Writer && behind > 0:
		say("writer %s was behind: it left out %s of %s; the %s is the limit", l.Title(), count(behind), counted(l.In, "packet"), sink(l))
	case l.Kind == stats.Tap && behind > 0:
		say("the handler %s was behind: it missed %s of %s; let it do less, or sample", l.Title(), count(behind), counted(l.In, "packet"))
	case l.Kind == stats.Writer && runS >= shortRun && stall > 0.2*runS:
		say("writer %s waited for the %s %.0f %% of the time; the %[2]s is close to its limit", l.Title(), sink(l), min(100, 100*stall/runS))
	}
	if l.Unread && runS > 0 {
		say("nothing read %s: it has no handler and no pipe, and what came for it was left where it was", l.Title())
	}
	if n := l.Dropped.Get("stopped"); n > 0 && l.Kind == stats.Tx {
		say("%s had not sent %s of %s when the stop had waited long enough: they are lost", l.Title(), count(n), counted(l.In, "packet"))
	}
	if n := l.Extra.Get("kernel_dropped"); n > 0 {
		unit, hint := "datagram", "raise net.core.rmem_max, or give the queue"
		if l.Kind == stats.Wire { // a raw interface
			unit, hint = "frame", "give its queues"
		}
		if l.Extra.Get("kernel_dropped_super") > 0 { // counts merged datagrams as one
			unit = "super-packet"
		}
		say("the kernel dropped %s before %s took them: %s a core of its own", counted(n, unit), l.Title(), hint)
	}
	if n := l.Extra.Get("nic_missed") + l.Extra.Get("nic_no_buffer"); n > 0 {
		say("the device had no room for %s of %s: give its queues a core of its own, or raise num_bufs", counted(n, "frame"), l.Title())
	}
	if n := l.Extra.Get("nic_pause_received"); n > 0 {
		say("the peer of %s throttled it with %s: what is sent can't be faster than the peer receives", l.Name, counted(n, "pause frame"))
	}
	if n := l.Extra.Get("nic_pause_sent"); n > 0 {
		say("the device of %s throttled its peer with %s: the receive path was behind; give its queues a core of its own, or larger buffers", l.Name, counted(n, "pause frame"))
	}
	if n := l.Extra.Get("nic_rx_errors"); n > 0 {
		say("the device refused %s of %s as damaged", counted(n, "frame"), l.Title())
	}
	if n := l.Extra.Get("nic_tx_errors"); n > 0 {
		say("the device failed to send %s that %s's queues handed to it", counted(n, "frame"), l.Title())
	}
	return found
}

// sink returns the destination of a writer's packets.
func sink(l *stats.Line) string {
	if l.Store {
		return "store"
	}
	return "disk"
}

// captureLimits reports missing packets of a replayed capture.
func captureLimits(l *stats.Line) []string {
	var found []string
	if n := l.Extra.Get("bad_records"); n > 0 {
		found = append(found, fmt.Sprintf("the capture of %s is cut off or damaged: %s could not be read", l.Name, counted(n, "record")))
	}
	if n := l.Extra.Get("truncated"); n > 0 && l.Kind == stats.Wire {
		found = append(found, fmt.Sprintf("the capture of %s has %s in part only: its snaplen was smaller", l.Name, counted(n, "packet")))
	}
	return found
}

// rateLimits compares the rate of a queue, while it had packets to send, with the configured rate.
func rateLimits(l *stats.Line) []string {
	got := l.Achieved()
	asked, unit := l.PaceBPS, "bit/s"
	if asked == 0 {
		asked, unit = l.PacePPS, "pps"
	}
	switch {
	case got >= 1-shortfall || asked == 0:
		return nil
	case l.PaceBPS > 0 && l.PacePPS > 0:
		return []string{fmt.Sprintf("%s sent at %.3g %% of the pace asked for", l.Title(), 100*got)}
	}
	return []string{fmt.Sprintf("%s sent %s of the %s asked for (%.3g %%)", l.Title(), scaled(got*asked, unit), scaled(asked, unit), 100*got)}
}
