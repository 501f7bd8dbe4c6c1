package stats

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// line returns a line with two drop reasons and one extra counter.
func line(kind Kind, name string, queueID int, in, out, held, full, filtered uint64) Line {
	return Line{
		Kind: kind, Name: name, QueueID: queueID,
		In: in, InBytes: 100 * in, Out: out, OutBytes: 100 * out, Bursts: in / 10, Held: held,
		Dropped: Counts{{"queue_full", full}, {"filtered", filtered}},
		Extra:   Counts{{"file_bytes", 3 * out}},
	}
}

func histogram(name, unit string, sum uint64, buckets ...Bucket) *Histogram {
	return &Histogram{Name: name, Unit: unit, Buckets: buckets, Sum: sum}
}

func sample() *Ledger {
	tx := line(Tx, "port", 0, 1000, 1000, 0, 0, 0)
	tx.PaceBPS = 500000
	tx.Timing = &Timing{WantedNS: 8e8, TookNS: 9e8, OverdueNS: 1e8}
	tx.Histograms = Histograms{histogram("gap_error", "ns", 4126, Bucket{0, 98}, Bucket{31, 1}, Bucket{4095, 1}), histogram("time_error", "ns", 0)}
	return &Ledger{
		Clock: "virtual", StartNS: 1e9, EndNS: 3e9,
		Lines: []Line{
			line(Rx, "port", 0, 600, 590, 4, 6, 0),
			line(Rx, "port", 1, 400, 399, 0, 1, 0),
			tx,
			line(Wire, "port", 0, 1000, 1000, 0, 0, 0),
			line(Stage, "sieve", 0, 100, 60, 0, 0, 40),
			line(Writer, "disk", 0, 60, 60, 0, 0, 0),
		},
		Metrics: map[string]float64{"power": 2.5, "process.rss": 1},
		Process: Process{RSS: 1 << 20, RSSGrowth: -4096},
	}
}

func TestLookup(t *testing.T) {
	cases := []struct {
		name string
		want float64
	}{
		{"port.rx.packets", 1000},
		{"port.rx.bytes", 100000},
		{"port.rx.held", 4},
		{"port.rx.dropped", 7},
		{"port.rx.dropped_by.queue_full", 7},
		{"port.rx.dropped_by.filtered", 0},
		{"port.rx.1.dropped", 1},
		{"port.rx.1.out", 399},
		{"port.rx.pps", 500},
		{"port.tx.packets", 1000},
		{"port.tx.bps", 400000},
		{"port.tx.pace_bps", 500000},
		{"port.tx.rate_error", 0.2},
		{"port.tx.gap_error.p50", 0},
		{"port.tx.gap_error.p99", 31},
		{"port.tx.0.gap_error.max", 4095},
		{"port.tx.time_error.p99", 0},
		{"port.wire.0.in", 1000},
		{"sieve.in", 100},
		{"sieve.dropped_by.filtered", 40},
		{"disk.written", 60},
		{"disk.bytes", 180},
		{"disk.file_bytes", 180},
		{"power", 2.5},
		{"process.rss", 1 << 20}, // the process figure, not the metric of that name
		{"process.rss_growth", -4096},
		{"session.seconds", 2},
	}
	l := sample()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, ok := l.Lookup(c.name)
			if !ok || math.Abs(got-c.want) > 1e-9 {
				t.Errorf("got %v, %v; want %v", got, ok, c.want)
			}
			if !slices.Contains(l.Names(), c.name) {
				t.Error("Names lacks it")
			}
		})
	}
	if v, ok := l.Lookup("port.rx.drops"); ok {
		t.Errorf("port.rx.drops: got %v for a name that there is not", v)
	}
}

func TestBalance(t *testing.T) {
	l := sample()
	if bad := l.Balance(); bad != nil {
		t.Fatalf("a ledger that adds up: %v", bad)
	}
	l.Lines[1].Out -= 2
	l.Lines[4].Held = 3
	want := []Imbalance{{"port.rx.1", 2}, {"sieve", -3}}
	if diff := cmp.Diff(want, l.Balance()); diff != "" {
		t.Error(diff)
	}
}

func TestSince(t *testing.T) {
	before, after := sample(), sample()
	after.EndNS = 4e9
	after.Lines[0].In += 50
	after.Lines[0].Dropped = Counts{{"queue_full", 26}, {"filtered", 0}}
	after.Lines = append(after.Lines, line(Tap, "late", 0, 5, 5, 0, 0, 0))
	after.Lines[2].Timing = &Timing{WantedNS: 1e9, TookNS: 1.4e9, OverdueNS: 7e9}
	after.Lines[2].Histograms = Histograms{histogram("gap_error", "ns", 4189, Bucket{0, 99}, Bucket{31, 1}, Bucket{63, 1}, Bucket{4095, 1})}
	d := after.Since(before)
	for name, want := range map[string]float64{
		"session.seconds":               1,
		"port.rx.packets":               50,
		"port.rx.pps":                   50,
		"port.rx.dropped_by.queue_full": 20,
		"port.rx.1.packets":             0,
		"port.rx.held":                  4,
		"late.in":                       5,
		"port.tx.rate_error":            1 - 2e8/1.5e9, // overdue for at most the second between the two readings
		"port.tx.gap_error.p50":         0,
		"port.tx.gap_error.max":         63,
		"power":                         2.5,
	} {
		if got, _ := d.Lookup(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if before.Lines[0].Dropped[0].N != 6 || after.Lines[0].In != 650 {
		t.Error("Since changed its operands")
	}
}

func TestHistogram(t *testing.T) {
	a, b := histogram("gap_error", "ns", 9, Bucket{0, 2}, Bucket{7, 1}), histogram("gap_error", "ns", 40, Bucket{3, 4}, Bucket{7, 5})
	sum := Line{Histograms: Histograms{a}}.plus(&Line{Histograms: Histograms{b}}).Histograms.Get("gap_error")
	if diff := cmp.Diff(histogram("gap_error", "ns", 49, Bucket{0, 2}, Bucket{3, 4}, Bucket{7, 6}), sum); diff != "" {
		t.Error(diff)
	}
	if sum.N() != 12 || sum.At(0.5) != 3 || sum.At(1) != 7 || sum.Within(6) != 6 || (&Histogram{}).At(0.5) != 0 {
		t.Errorf("%d, %d, %d, %d", sum.N(), sum.At(0.5), sum.At(1), sum.Within(6))
	}
	if none := (Histograms)(nil).Get("gap_error"); none.N() != 0 || none.At(1) != 0 {
		t.Error("no histogram is not an empty one")
	}
	data, err := json.Marshal(Histograms{a, histogram("time_error", "ns", 0)})
	want := `{"gap_error":{"buckets":[[0,2],[7,1]],"max":7,"n":3,"p50":0,"p90":7,"p99":7,"sum":9,"unit":"ns"}}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	if half := (&Line{Timing: &Timing{WantedNS: 5, TookNS: 10}}).Achieved(); half != 0.5 {
		t.Errorf("half the pace is %v", half)
	}
	if none := (&Line{Timing: &Timing{OverdueNS: 10}}).Achieved(); none != 0 {
		t.Errorf("a queue that should have sent achieved %v", none)
	}
	if idle := (&Line{}).Achieved(); idle != 1 {
		t.Errorf("nothing asked for, %v achieved", idle)
	}
}

func TestJSON(t *testing.T) {
	a, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(sample())
	if string(a) != string(b) {
		t.Error("two marshals of one ledger differ")
	}
	if !strings.HasPrefix(string(a), `{"schema":2,"clock":"virtual",`) {
		t.Errorf("begins %.40s", a)
	}
	var back struct {
		Lines []struct {
			Name    string
			Dropped map[string]uint64
		}
		Metrics map[string]float64
	}
	if err := json.Unmarshal(a, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]uint64{"queue_full": 6}, back.Lines[0].Dropped); diff != "" {
		t.Errorf("only reasons that occurred: %s", diff)
	}
	if back.Metrics["power"] != 2.5 {
		t.Errorf("metrics: %v", back.Metrics)
	}
}

func TestMetrics(t *testing.T) {
	cases := []struct {
		name  string
		value float64
		ok    bool
	}{
		{"power_max", 1, true},
		{"beam.snr", -3.5, true},
		{"_x1", 0, true},
		{"", 1, false},
		{"1x", 1, false},
		{"a b", 1, false},
		{"nan", math.NaN(), false},
		{"inf", math.Inf(1), false},
	}
	var m Metrics
	for _, c := range cases {
		if err := m.Set(c.name, c.value); (err == nil) != c.ok {
			t.Errorf("Set(%q, %v): %v", c.name, c.value, err)
		}
	}
	want := map[string]float64{"power_max": 1, "beam.snr": -3.5, "_x1": 0}
	if diff := cmp.Diff(want, m.All()); diff != "" {
		t.Error(diff)
	}
}

func TestThresholdForm(t *testing.T) {
	cases := []struct {
		name string
		t    Threshold
		want string // part of the error; empty: none
	}{
		{"condition", Threshold{Expr: "port.rx.dropped == 0"}, ""},
		{"unit", Threshold{Expr: "port.tx.bps >= 10Gbit/s", After: 5}, ""},
		{"number", Threshold{Expr: "port.rx.dropped"}, "compare it"},
		{"syntax", Threshold{Expr: "port.rx.dropped ="}, `threshold "port.rx.dropped ="`},
		{"negative after", Threshold{Expr: "1 < 2", After: -1}, "after"},
		{"after is no number", Threshold{Expr: "1 < 2", After: math.NaN()}, "after"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var ts Thresholds
			err := ts.Add(c.t)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if (err == nil) != (ts.Len() == 1) {
				t.Errorf("%d thresholds after %v", ts.Len(), err)
			}
		})
	}
}

func TestThresholdCheck(t *testing.T) {
	cases := []struct {
		expr   string
		passed bool
		text   string
	}{
		{"port.rx.dropped < 1e-2 * port.rx.packets", true, "(port.rx.dropped = 7, port.rx.packets = 1000)"},
		{"port.rx.dropped == 0", false, "violated (port.rx.dropped = 7)"},
		{"power > 2 and sieve.out == 60", true, "passed"},
		{"port.rx.droped == 0", false, `port.rx.droped has no value; did you mean "port.rx.dropped"?`},
		{"limit_bps >= 90e9", false, "limit_bps has no value"},
	}
	var ts Thresholds
	for _, c := range cases {
		if err := ts.Add(Threshold{Expr: c.expr}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range ts.Check(sample()) {
		if r.Passed != cases[i].passed || !strings.Contains(r.String(), cases[i].text) {
			t.Errorf("%s: %v, %s", r.Expr, r.Passed, r)
		}
	}
}

// TestNoErrors checks that errors fail every run, unless a threshold of the script names errors.
func TestNoErrors(t *testing.T) {
	for _, c := range []struct {
		own    string
		faults []QueueError
		want   string
	}{
		{"", nil, ""},
		{"", []QueueError{{Line: "port.rx.0", Text: "network is down", Times: 1}, {Line: "port.tx.0", Text: "no route", Times: 4, Send: true}}, "errors == 0: violated (errors = 5)"},
		{"errors < 6", []QueueError{{Times: 5}}, "errors < 6: passed (errors = 5)"},
		{"errors >= 0", []QueueError{{Times: 5}}, "errors >= 0: passed (errors = 5)"},
		{"errors < 5", []QueueError{{Times: 5}}, "errors < 5: violated (errors = 5)"},
	} {
		var ts Thresholds
		if c.own != "" {
			if err := ts.Add(Threshold{Expr: c.own}); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, r := range ts.Check(&Ledger{QueueErrors: c.faults}) {
			got = append(got, r.String())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%q, %d faults: %q, want %q", c.own, len(c.faults), got, c.want)
		}
	}
}

func TestThresholdAbort(t *testing.T) {
	cases := []struct {
		name string
		t    Threshold
		want bool
	}{
		{"violated", Threshold{Expr: "port.rx.dropped == 0", Abort: true}, true},
		{"met", Threshold{Expr: "port.rx.dropped == 7", Abort: true}, false},
		{"not an abort", Threshold{Expr: "port.rx.dropped == 0"}, false},
		{"too early", Threshold{Expr: "port.rx.dropped == 0", Abort: true, After: 3}, false},
		{"time has come", Threshold{Expr: "port.rx.dropped == 0", Abort: true, After: 2}, true},
		{"no value yet", Threshold{Expr: "limit == 0", Abort: true}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var ts Thresholds
			if err := ts.Add(c.t); err != nil {
				t.Fatal(err)
			}
			if r, got := ts.Abort(sample()); got != c.want {
				t.Errorf("got %v (%s)", got, r)
			}
			if ts.Aborts() != c.t.Abort {
				t.Error("Aborts is wrong")
			}
		})
	}
}

func TestReadProcess(t *testing.T) {
	p := ReadProcess(0)
	if p.RSS == 0 || p.RSSGrowth != 0 {
		t.Errorf("%+v", p)
	}
	if q := ReadProcess(1); q.RSSGrowth != int64(q.RSS)-1 {
		t.Errorf("%+v", q)
	}
}

func TestRecorder(t *testing.T) {
	next := uint64(0) // smallest time above the previous buckets
	for k := range recorderBuckets {
		if bucketOf(next) != k || bucketOf(bucketMost(k)) != k {
			t.Fatalf("bucket %d: %d and %d fall into %d and %d", k, next, bucketMost(k), bucketOf(next), bucketOf(bucketMost(k)))
		}
		next = bucketMost(k) + 1
	}
	if bucketOf(math.MaxUint64) != recorderBuckets-1 {
		t.Error("the longest time has no bucket")
	}
	var r Recorder
	if buckets, _ := r.Read(); buckets != nil {
		t.Error("it has something before anything was recorded")
	}
	for _, ns := range []uint64{5, 5, 1000} {
		r.Record(ns)
	}
	buckets, sum := r.Read()
	if d := cmp.Diff([]Bucket{{5, 2}, {1023, 1}}, buckets); d != "" || sum != 1010 {
		t.Errorf("%s, sum %d", d, sum)
	}
}

func TestHistogramsAndFlowsOfLines(t *testing.T) {
	line := func(n uint64) Line {
		return Line{Name: "port", Kind: Rx, In: 10 * n, Histograms: Histograms{histogram("burst_size", "packets", 8*n, Bucket{8, n})},
			Flows: Flows{{ID: 2, Name: "north", Packets: 5 * n, Bytes: 50 * n}}}
	}
	before := &Ledger{EndNS: 1e9, Lines: []Line{line(1)}}
	after := &Ledger{EndNS: 2e9, Lines: []Line{line(4)}}
	after.Lines[0].Flows = append(after.Lines[0].Flows, Flow{ID: 7, Packets: 1, Bytes: 9})
	for name, want := range map[string]float64{"port.rx.burst_size.p50": 8, "port.rx.flow.2.packets": 15, "port.rx.flow.7.bytes": 9} {
		if got, _ := after.Since(before).Lookup(name); got != want {
			t.Errorf("since: %s: %v, want %v", name, got, want)
		}
	}
	sum := before.Plus(after).Lines[0]
	if h := sum.Histograms.Get("burst_size"); h.Sum != 40 || h.N() != 5 || sum.Flows[0].Packets != 25 || len(sum.Flows) != 2 {
		t.Errorf("plus: %+v, %+v", h, sum.Flows)
	}
	data, err := json.Marshal(sum)
	if err != nil || !strings.Contains(string(data), `"histograms":{"burst_size":{"buckets":[[8,5]],"max":8,"n":5,"p50":8,"p90":8,"p99":8,"sum":40,"unit":"packets"}}`) ||
		!strings.Contains(string(data), `"flows":[{"id":2,"name":"north","packets":25,"bytes":250},{"id":7,"packets":1,"bytes":9}]`) {
		t.Errorf("%s, %v", data, err)
	}
}

// TestPlusBalances checks that the sum of balanced ledgers balances and that all its figures are sums.
func TestPlusBalances(t *testing.T) {
	line := func(n uint64) Line {
		return Line{Kind: Rx, Name: "port", In: 100 * n, InBytes: 1000 * n, Out: 70 * n, OutBytes: 700 * n, Bursts: 5 * n, Held: 20 * n,
			Dropped: Counts{{"queue_full", 7 * n}, {"no_flow", 3 * n}}, Extra: Counts{{"copied", 2 * n}}}
	}
	one := &Ledger{Lines: []Line{line(1), {Kind: Stage, Name: "first", In: 3, Held: 3}}}
	two := &Ledger{Lines: []Line{line(10), {Kind: Stage, Name: "second", In: 4, Held: 4}}}
	sum := one.Plus(two)
	if bad := sum.Balance(); bad != nil {
		t.Errorf("the sum does not balance: %v", bad)
	}
	if d := cmp.Diff(line(11), sum.Lines[0]); d != "" || len(sum.Lines) != 3 {
		t.Errorf("%d lines: %s", len(sum.Lines), d)
	}
	side, _ := (&Ledger{Lines: []Line{line(1), line(10)}}).Side("port", Rx)
	if d := cmp.Diff(line(11), side); d != "" {
		t.Errorf("the sum of an interface's queues: %s", d)
	}
}

func TestSources(t *testing.T) {
	line := func(n uint64, more ...Source) Line {
		return Line{Name: "blocks", Kind: Stage, Histograms: Histograms{histogram("completion_time", "ns", 2000*n, Bucket{2047, n})},
			Sources: append(Sources{{Name: "3", Packets: 10 * n, Missing: n, Late: 2 * n, Duplicate: 3 * n, Dropped: 4 * n, Reordered: 5 * n,
				Restarts: 6 * n}}, more...)}
	}
	port := func(n uint64) Line {
		return Line{Name: "port", Kind: Rx, Peers: Peers{{Name: "[2001:db8::1]:7148", Packets: n, Bytes: 9 * n}}}
	}
	before := &Ledger{EndNS: 1e9, Lines: []Line{line(1), port(1)}}
	after := &Ledger{EndNS: 2e9, Lines: []Line{line(4, Source{Name: "192.0.2.1", Missing: 7}), port(3)}}
	for name, want := range map[string]float64{"blocks.source.3.packets": 30, "blocks.source.3.missing": 3, "blocks.source.3.late": 6,
		"blocks.source.3.duplicate": 9, "blocks.source.3.dropped": 12, "blocks.source.192_0_2_1.missing": 7, "blocks.completion_time.max": 2047,
		"port.rx.peer.2001_db8__1__7148.bytes": 18} {
		if got, ok := after.Since(before).Lookup(name); got != want || !ok {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if OfSome(name) != !strings.Contains(name, "completion") {
			t.Errorf("OfSome(%q) = %v", name, OfSome(name))
		}
	}
	sum := after.Plus(before).Lines[0]
	want := Sources{{"3", 50, 5, 10, 15, 20, 25, 30}, {Name: "192.0.2.1", Missing: 7}}
	if d := cmp.Diff(want, sum.Sources); d != "" || sum.Histograms[0].Sum != 10000 {
		t.Errorf("plus: %s, %+v", d, sum.Histograms[0])
	}
	worst, lost := append(sum.Sources, Source{Name: "whole", Packets: 9}, Source{Name: "late", Late: 1}, Source{Name: "again", Restarts: 1}).Worst(2)
	if lost != 4 || len(worst) != 2 || worst[0].Name != "192.0.2.1" || worst[1].Name != "3" {
		t.Errorf("worst: %+v of %d", worst, lost)
	}
}
