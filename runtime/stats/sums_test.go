package stats

import (
	"reflect"
	"testing"
)

// filled returns a line in which every counter has a distinct value, starting at n.
func filled(n uint64) Line {
	l := Line{Kind: Tx, Name: "port", Dropped: Counts{{"queue_full", n + 100}, {"too_long", n + 200}}, Extra: Counts{{"late", n + 300}}}
	v := reflect.ValueOf(&l).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(n + uint64(i))
		}
	}
	return l
}

// TestEveryCounter checks that sums and differences of lines include every counter, including ones added later.
func TestEveryCounter(t *testing.T) {
	early, late := filled(1000), filled(50000)
	sum, since := late.plus(&early), late.minus(&early, 1)
	counters := 0
	for i := range reflect.TypeFor[Line]().NumField() {
		name := reflect.TypeFor[Line]().Field(i).Name
		of := func(l Line) reflect.Value { return reflect.ValueOf(l).Field(i) }
		if of(late).Kind() != reflect.Uint64 {
			continue
		}
		counters++
		a, b := of(early).Uint(), of(late).Uint()
		if got := of(sum).Uint(); got != a+b {
			t.Errorf("%s of a sum is %d, want %d", name, got, a+b)
		}
		want := b - a
		if name == "Held" {
			want = b // current value
		}
		if got := of(since).Uint(); got != want {
			t.Errorf("%s of a difference is %d, want %d", name, got, want)
		}
	}
	if counters != 6 {
		t.Errorf("%d counters, want in, out, their bytes, bursts and held", counters)
	}
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"dropped of a sum", sum.Dropped.Sum(), late.Dropped.Sum() + early.Dropped.Sum()},
		{"dropped of a difference", since.Dropped.Sum(), late.Dropped.Sum() - early.Dropped.Sum()},
		{"late of a sum", sum.Extra.Get("late"), 51600},
		{"late of a difference", since.Extra.Get("late"), 49000},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

// TestProcessSince checks that the difference of two ledgers has the process figures between them, and the later one's memory.
func TestProcessSince(t *testing.T) {
	early := &Ledger{StartNS: 1, EndNS: 2e9, Process: Process{RSS: 100, RSSGrowth: 7, CPUSeconds: 1.5, Allocations: 10}}
	late := &Ledger{StartNS: 1, EndNS: 5e9, Process: Process{RSS: 130, RSSGrowth: 37, CPUSeconds: 4, Allocations: 90}}
	d := late.Since(early)
	if want := (Process{RSS: 130, RSSGrowth: 30, CPUSeconds: 2.5, Allocations: 80}); d.Process != want || d.Seconds() != 3 {
		t.Errorf("%+v in %v s, want %+v in 3 s", d.Process, d.Seconds(), want)
	}
}

// TestPackets checks that the figure packets is the number received by a queue, actually sent by one, or received by a stage, and that rates use it.
func TestPackets(t *testing.T) {
	for kind, want := range map[Kind]string{Rx: "in", Wire: "in", Tx: "out", Stage: "in", Writer: "in"} {
		l := Line{Kind: kind, In: 1000, InBytes: 100000, Out: 600, OutBytes: 60000, Held: 400}
		n := map[string]float64{}
		for _, f := range l.figures(2) {
			n[f.Name] = f.Value
		}
		if n["packets"] != n[want] || n["pps"] != n[want]/2 {
			t.Errorf("%s: packets %v, pps %v, want those of %s, %v", kind, n["packets"], n["pps"], want, n[want])
		}
		if kind != Writer && (n["bytes"] != n[want+"_bytes"] || n["bps"] != 4*n["bytes"]) {
			t.Errorf("%s: bytes %v, bps %v, want those of %s, %v", kind, n["bytes"], n["bps"], want, n[want+"_bytes"])
		}
	}
}

// TestWithin checks that a bucket counts up to and including its largest value.
func TestWithin(t *testing.T) {
	s := Histogram{Buckets: []Bucket{{31, 2}, {4095, 3}, {8191, 4}}}
	for ns, want := range map[uint64]uint64{0: 0, 30: 0, 31: 2, 4094: 2, 4095: 5, 8191: 9, 1 << 40: 9} {
		if got := s.Within(ns); got != want {
			t.Errorf("within %d ns: %d, want %d", ns, got, want)
		}
	}
}
