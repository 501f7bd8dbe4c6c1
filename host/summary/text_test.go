package summary

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// example returns a report with everything that the summary shows.
func example() *Report {
	count := func(name string, n uint64) stats.Count { return stats.Count{Name: name, N: n} }
	return &Report{Schema: Schema, Sessions: []Session{{
		Name: "capture.yaml", Started: true, RunS: 3.0104, Reason: "Ctrl-C",
		Thresholds: []stats.Result{{Expr: "disk.dropped < 3", Passed: true, Values: map[string]float64{"disk.dropped": 2}},
			{Expr: "rx_port.rx.dropped < 10"}},
		Violated: []string{"rx_port.rx.dropped < 10: violated (rx_port.rx.dropped = 12)"},
		Ledger: &stats.Ledger{Clock: "real", Metrics: map[string]float64{"limit_bps": 98e9, "ratio": 0.123456789}, Lines: []stats.Line{
			{Name: "rx_port", Kind: stats.Rx, In: 31262, InBytes: 31262000, Out: 31250, OutBytes: 31250000, Bursts: 900,
				Dropped: stats.Counts{count("no_packet_buffer", 12), count("queue_full", 0)}, Extra: stats.Counts{count("kernel_dropped", 3)}},
			{Name: "rx_port", Kind: stats.Rx, QueueID: 1, Unread: true},
			{Name: "gen", Kind: stats.Tx, QueueID: 1, In: 31302, Out: 31262, OutBytes: 31262000, PaceBPS: 100e6, Dropped: stats.Counts{count("stopped", 40)},
				Timing:     &stats.Timing{WantedNS: 831, TookNS: 1000},
				Histograms: stats.Histograms{{Name: "gap_error", Unit: "ns", Buckets: []stats.Bucket{{Most: 63, N: 900}, {Most: 1055, N: 95}, {Most: 3_500_000, N: 5}}}}},
			{Name: "small", Kind: stats.Stage, In: 31250, Out: 31000, Dropped: stats.Counts{count("filtered", 250)}},
			{Name: "up", Kind: stats.Writer, Store: true, In: 300, Out: 200, OutBytes: 2 << 20, Dropped: stats.Counts{count("behind", 100)},
				Extra: stats.Counts{count("retries", 1)}},
			{Name: "disk", Kind: stats.Writer, In: 31000, Out: 30998, Dropped: stats.Counts{count("behind", 2)},
				Extra: stats.Counts{count("files", 1), count("file_bytes", 33047368), count("stall_ns", 1_000_000_000)}},
		}, QueueErrors: []stats.QueueError{{Line: "gen.tx.1", Text: "network is unreachable", Times: 1234, Send: true}}},
		Files: []string{"http://localhost:7070/bucket/up_", "captures/capture-1.pcap"},
		Notes: []string{"rx_port: receive times: software"},
	}}}
}

const exampleText = `
thresholds
  ok    disk.dropped < 3: passed (disk.dropped = 2)
  FAIL  rx_port.rx.dropped < 10: violated (rx_port.rx.dropped = 12)

capture.yaml: ran for 3.01 s (Ctrl-C)
                    in     out  held  dropped
  rx_port.rx.0  31,262  31,250     0       12  83.1 Mbit/s, 10.4 kpps
  rx_port.rx.1       0       0     0        0
  gen.tx.1      31,302  31,262     0       40  83.1 Mbit/s, 10.4 kpps of 100 Mbit/s asked for
  small         31,250  31,000     0      250
  up               300     200     0      100
  disk          31,000  30,998     0        2
  dropped rx_port.rx.0.no_packet_buffer: 12 (0.0384 % of in): the memory region had no free buffer: raise num_bufs or free bursts sooner
  dropped gen.tx.1.stopped: 40 (0.128 % of in): came or was queued before the stop, and not taken or sent in the time left
  dropped small.filtered: 250 (0.8 % of in): refused by the filter
  dropped up.behind: 100 (33.3 % of in): the consumer was behind and its policy is drop
  dropped disk.behind: 2 (0.00645 % of in): the consumer was behind and its policy is drop
  pace of gen.tx.1: off by 17 %; gaps off by at most 63 ns (50 %), 1.06 us (99 %), 3.50 ms (all)
  fault: gen.tx.1: packets not sent: 1234: network is unreachable
  metric limit_bps = 98,000,000,000
  metric ratio = 0.123457
  limit: the kernel dropped 3 datagrams before rx_port.rx.0 took them: raise net.core.rmem_max, or give the queue a core of its own
  limit: nothing read rx_port.rx.1: it has no handler and no pipe, and what came for it was left where it was
  limit: gen.tx.1 had not sent 40 of 31,302 packets when the stop had waited long enough: they are lost
  limit: gen.tx.1 sent 83.1 Mbit/s of the 100 Mbit/s asked for (83.1 %)
  limit: writer up was behind: it left out 100 of 300 packets; the store is the limit
  limit: writer disk was behind: it left out 2 of 31,000 packets; the disk is the limit
  up uploaded 200 packets, 2 MiB, in 0 objects; 1 request made again
  disk wrote 30,998 packets, 31.5 MiB, into 1 file
  objects http://localhost:7070/bucket/up_
  file captures/capture-1.pcap
  every packet is accounted for: in = out + held + dropped in each line
`

func TestText(t *testing.T) {
	r := example()
	r.Sessions[0].Limits = limits(r.Sessions[0].Ledger.Lines, r.Sessions[0].RunS, map[string]bool{"gen.tx.1": true})
	if got := r.Text(Style{}); got != exampleText {
		t.Errorf("got\n%s\nwant\n%s", got, exampleText)
	}
	full := r.Text(Style{Full: true})
	for _, want := range []string{"31,262,000", "bursts", "disk.stall_ns: 1,000,000,000", "note: rx_port: receive times: software",
		"    within 100 ns: 90 %, 1 us: 90 %, 10 us: 99.5 %, 100 us: 99.5 %, 1 ms: 99.5 %, 10 ms: 100 %\n"} {
		if !strings.Contains(full, want) {
			t.Errorf("the full form lacks %q:\n%s", want, full)
		}
	}
	if colored := r.Text(Style{Color: true}); !strings.Contains(colored, red+"FAIL"+plain) || strings.Contains(exampleText, "\x1b") {
		t.Errorf("colour is missing, or where it should not be:\n%s", colored)
	}
	if text := (&Report{}).Text(Style{}); text != "" {
		t.Errorf("a run without sessions has a summary: %q", text)
	}
}

func TestImbalance(t *testing.T) {
	r := example()
	if !r.Balanced() || !r.Violated() {
		t.Fatalf("balanced %v, violated %v", r.Balanced(), r.Violated())
	}
	r.Sessions[0].Imbalance = []string{"disk: 31,000 in, 30,999 accounted for"}
	if text := r.Text(Style{}); r.Balanced() || !strings.Contains(text, "DOES NOT ADD UP") || strings.Contains(text, "every packet is") {
		t.Errorf("an imbalance is not shouted:\n%s", text)
	}
}

func TestJSON(t *testing.T) {
	data, err := example().JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Schema   int
		Sessions []struct {
			Ledger struct {
				Lines []struct{ Dropped map[string]uint64 }
			}
			Limits []string
		}
	}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != 1 || back.Sessions[0].Ledger.Lines[0].Dropped["no_packet_buffer"] != 12 ||
		back.Sessions[0].Limits == nil {
		t.Errorf("JSON came back as %+v", back)
	}
}

func TestLiveText(t *testing.T) {
	at := time.Unix(1000, 0)
	line := func(kind stats.Kind, name string, id int, n uint64) stats.Line {
		return stats.Line{Name: name, Kind: kind, QueueID: id, In: n, InBytes: 1000 * n, Out: n, OutBytes: 1000 * n}
	}
	last := sample{at, []stats.Line{line(stats.Rx, "a", 0, 100), line(stats.Rx, "a", 1, 0)}}
	next := sample{at.Add(2 * time.Second), []stats.Line{line(stats.Rx, "a", 0, 2100), line(stats.Rx, "a", 1, 1000),
		line(stats.Tx, "b", 0, 4), line(stats.Writer, "disk", 0, 3000),
		{Name: "f", Kind: stats.Stage, Dropped: stats.Counts{{Name: "filtered", N: 7}}}}}
	want := "   5 s  a.rx 1.50 kpps 12 Mbit/s  b.tx 2 pps 16 kbit/s  dropped 0"
	if got := liveText(last, next, 5.2, Style{Color: true}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	next.lines[3].Dropped = stats.Counts{{Name: "behind", N: 1234}}
	if got := liveText(last, next, 5.2, Style{Color: true}); !strings.HasSuffix(got, red+"dropped 1,234"+plain) {
		t.Errorf("drops are not red: %q", got)
	}
}

// TestManySessions checks that the summary of a script with many sessions is bounded.
func TestManySessions(t *testing.T) {
	r := &Report{Schema: Schema}
	for range mostSessions {
		s := example().Sessions[0]
		s.Violated, s.Ledger = nil, &stats.Ledger{Clock: "real"}
		r.Sessions = append(r.Sessions, s)
	}
	quiet := r.Sessions[0]
	r.Sessions = append(r.Sessions, quiet, example().Sessions[0], quiet)
	got := r.Text(Style{})
	if n := strings.Count(got, "capture.yaml: ran for"); n != mostSessions+1 || !strings.Contains(got, "no_packet_buffer") {
		t.Errorf("%d sessions shown:\n%s", n, got)
	}
	if !strings.HasSuffix(got, "\nand 2 sessions that lost nothing (--summary full shows all)\n") {
		t.Errorf("the rest is not printed:\n%s", got)
	}
	if n := strings.Count(r.Text(Style{Full: true}), "capture.yaml: ran for"); n != mostSessions+3 {
		t.Errorf("%d sessions in full", n)
	}
}

// TestDistributions checks that only the full form shows bursts, handlers, writers and flows.
func TestDistributions(t *testing.T) {
	r := example()
	times := func(title string) stats.Histograms {
		return stats.Histograms{{Title: title, Unit: "ns", Buckets: []stats.Bucket{{Most: 1500, N: 3}, {Most: 2_000_000, N: 1}}, Sum: 2_004_500}}
	}
	r.Sessions[0].Ledger = &stats.Ledger{Lines: []stats.Line{
		{Kind: stats.Rx, Name: "a", Histograms: stats.Histograms{{Title: "bursts of %s", Unit: "packets", Buckets: []stats.Bucket{{Most: 64, N: 9}}, Sum: 576}},
			Flows: stats.Flows{{ID: 3, Name: "north", Packets: 1, Bytes: 2048}, {ID: 4, Packets: 2, Bytes: 10}}},
		{Kind: stats.Tap, Name: "look", Histograms: times("calls of %s")}, {Kind: stats.Writer, Name: "disk", Histograms: times("waits of %s for the disk")}}}
	full := r.Text(Style{Full: true})
	for _, want := range []string{"bursts of a.rx.0: at most 64 (50 %), 64 (99 %), 64 packets (all)", "flow north (3) of a.rx.0: 1 packet, 2 KiB",
		"flow 4, deleted, of a.rx.0: 2 packets, 10 B", "calls of look, 4: at most 1.50 us (50 %), 2 ms (99 %), 2 ms (all)",
		"waits of disk for the disk, 4: at most 1.50 us"} {
		if !strings.Contains(full, want) {
			t.Errorf("the full form lacks %q:\n%s", want, full)
		}
	}
	if text := r.Text(Style{}); strings.Contains(text, "calls of") || strings.Contains(text, "north") {
		t.Errorf("the compact form has them:\n%s", text)
	}
}

// TestSources checks that the sources with most losses are shown, and in the full form all sources and batch durations.
func TestSources(t *testing.T) {
	r := example()
	blocks := stats.Line{Kind: stats.Stage, Name: "blocks", Histograms: stats.Histograms{{Title: "batches of %s from their first packet on", Unit: "ns", Buckets: []stats.Bucket{{Most: 1500, N: 3}}, Sum: 4000}},
		Sources: stats.Sources{{Name: "7", Packets: 75, Missing: 25, Duplicate: 2}, {Name: "whole", Packets: 9}}}
	for range mostSources {
		blocks.Sources = append(blocks.Sources, stats.Source{Name: "little", Packets: 99, Late: 1, Dropped: 3})
	}
	r.Sessions[0].Ledger = &stats.Ledger{Lines: []stats.Line{blocks,
		{Kind: stats.Rx, Name: "a", Peers: stats.Peers{{Name: "192.0.2.1:9", Packets: 4, Bytes: 2048}}}}}
	text, full := r.Text(Style{}), r.Text(Style{Full: true})
	for _, want := range []string{"source 7 of blocks: 25 packets missing (25 % of what should have come), 2 duplicate\n",
		"source little of blocks: 1 late, 3 dropped for other reasons\n", "and 1 source of blocks that lost less (--summary full"} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "whole") || strings.Count(full, "source little") != mostSources {
		t.Errorf("compact:\n%s\nfull:\n%s", text, full)
	}
	for _, want := range []string{"batches of blocks from their first packet on, 3: at most 1.50 us", "from 192.0.2.1:9 to a.rx.0: 4 packets, 2 KiB"} {
		if !strings.Contains(full, want) {
			t.Errorf("the full form lacks %q:\n%s", want, full)
		}
	}
}

// TestCuts checks that parts missing at a stream's beginning or end are shown although they are not losses.
func TestCuts(t *testing.T) {
	r := &Report{Sessions: []Session{{Name: "s", Started: true, Ledger: &stats.Ledger{Lines: []stats.Line{
		{Kind: stats.Stage, Name: "blocks", Extra: stats.Counts{{Name: "missing", N: 0}, {Name: "cut", N: 3}}},
		{Kind: stats.Stage, Name: "whole", Extra: stats.Counts{{Name: "cut", N: 0}}}}}}}}
	text := r.Text(Style{})
	if !strings.Contains(text, "  cut of blocks: 3 parts did not come where the stream begins or ends; ") || strings.Contains(text, "cut of whole") {
		t.Error(text)
	}
}

// TestShares checks that the summary shows what readers of shared streams got, if there were any.
func TestShares(t *testing.T) {
	r := &Report{Sessions: []Session{{Name: "s", Started: true, Ledger: &stats.Ledger{Lines: []stats.Line{
		{Kind: stats.Stage, Name: "live", Extra: stats.Counts{{Name: "readers", N: 2}, {Name: "lent", N: 1200}, {Name: "missed", N: 3}}},
		{Kind: stats.Stage, Name: "alone", Extra: stats.Counts{{Name: "readers", N: 0}}}}}}}}
	text := r.Text(Style{})
	if !strings.Contains(text, "  live lent 1,200 blocks to 2 readers and 3 were missed\n") || strings.Contains(text, "alone lent") {
		t.Error(text)
	}
}

// TestOneSided checks that kernel operations on memory, which no column counts, are also shown in the compact form.
func TestOneSided(t *testing.T) {
	r := &Report{Sessions: []Session{{Name: "s", Started: true, Ledger: &stats.Ledger{Lines: []stats.Line{
		{Kind: stats.Stage, Name: "client.tx", Extra: stats.Counts{{Name: "one_sided", N: 1200}, {Name: "one_sided_bytes", N: 4 << 20}}},
		{Kind: stats.Stage, Name: "mover.tx", Extra: stats.Counts{{Name: "copies", N: 2000}, {Name: "copied_bytes", N: 8 << 10}}},
		{Kind: stats.Stage, Name: "server.tx", Extra: stats.Counts{{Name: "one_sided", N: 0}}}}}}}}
	text := r.Text(Style{})
	if !strings.Contains(text, "  client.tx did 1,200 operations on the memory of peers: 4 MiB\n") || !strings.Contains(text, "  mover.tx copied within its own memory 2,000 times: 8 KiB\n") || strings.Contains(text, "server.tx did") {
		t.Error(text)
	}
}
