package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// peers is a bench that finds these programs, shell scripts without a PATH of their own.
func peers(t *testing.T, scripts map[string]string) *bench {
	t.Helper()
	b, dir := program(t, ""), t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.opts.SearchPath = dir
	return b
}

// TestDD: dd's own clock counts, however long it takes to start.
func TestDD(t *testing.T) {
	for _, c := range []struct{ says, fault string }{
		{"268435456 bytes (268 MB, 256 MiB) copied, 0.25 s, 1.1 GB/s", ""},
		{"268435456 bytes (268 MB, 256 MiB) copied, 2.5e-01 s, 1.1 GB/s", ""},
		{"nothing of the kind", `dd printed "nothing of the kind\n"`},
	} {
		b := peers(t, map[string]string{"dd": "/bin/sleep 0.5; echo '" + c.says + "' >&2"})
		got, err := b.dd(t.Context(), b.find("dd"), 1e9)
		if c.fault == "" && (err != nil || got.value != 4) || c.fault != "" && fmt.Sprint(err) != c.fault {
			t.Errorf("%s: %v, %v; want 4 GB/s, or %q", c.says, got.value, err, c.fault)
		}
	}
}

// TestCount: tcpdump counts the capture in turn with an empty one, and both right.
func TestCount(t *testing.T) {
	for _, c := range []struct{ whole, fault string }{
		{"500000 packets", ""},
		{"499999 packets", `tcpdump counted "499999 packets\n" of 500000: `},
	} {
		b := peers(t, map[string]string{"tcpdump": `for f; do :; done; echo "$f" >>log
case $f in *empty.pcap) echo '0 packets';; *) /bin/sleep 0.2; echo '` + c.whole + `';; esac`})
		file, err := b.captureOf(1, func(int) int64 { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.count(t.Context(), 500*time.Millisecond, b.find("tcpdump"), file)
		if c.fault == "" && err != nil || c.fault != "" && fmt.Sprint(err) != c.fault {
			t.Errorf("%s: %v, want %q", c.whole, err, c.fault)
		}
		text, err := os.ReadFile(filepath.Join(b.dir, "log"))
		runs := strings.Fields(string(text))
		if err != nil || len(runs) < 2 || len(runs)%2 != 0 {
			t.Fatalf("%v, %v", runs, err)
		}
		for i, run := range runs {
			if want := []string{"empty.pcap", "replay.pcap"}[i%2]; filepath.Base(run) != want {
				t.Errorf("run %d is of %s, want %s", i, run, want)
			}
		}
		if c.fault == "" && (got.value <= 0 || got.more["start_ms"] <= 0 || got.more["runs"] != float64(len(runs)/2)) {
			t.Errorf("%+v of %d runs", got, len(runs))
		}
	}
}

// TestAlternate: two searches take turns, first the one and then the other, and each finds its own limit.
func TestAlternate(t *testing.T) {
	var order strings.Builder
	limited := func(who string, top, limit float64) *search {
		return &search{trial: func(_ context.Context, pps float64) (float64, float64, error) {
			order.WriteString(who)
			if pps == 0 {
				pps = top
			}
			return pps, max(0, pps-limit), nil
		}}
	}
	ours, theirs, bound := limited("o", 1000, 700), limited("p", 1000, 100), limited("b", 500, 700)
	searches := []*search{ours, theirs, bound}
	if err := alternate(t.Context(), slices.Clone(searches)); err != nil {
		t.Fatal(err)
	}
	if got := order.String(); got != "opb"+"po"+"op"+"po"+"op"+"po"+"op" {
		t.Errorf("order %s", got)
	}
	const gb = captureSize / 1e9
	for _, c := range []struct {
		s     *search
		limit float64
	}{{ours, 700}, {theirs, 100}} {
		if c.s.bound || c.s.best > c.limit*gb || c.s.best < 0.95*c.limit*gb || c.s.most != 1000*gb || c.s.lost != 1000-c.limit {
			t.Errorf("limit %v: %+v", c.limit, c.s)
		}
	}
	if !bound.bound || bound.best != 500*gb || bound.lost != 0 {
		t.Errorf("what the sender bounds: %+v", bound)
	}
}

func TestSoftirq(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stat")
	for _, c := range []struct {
		text string
		want float64
	}{
		{"cpu  2255 34 2290 22625563 6290 127 456 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n", 456},
		{"cpu0 1 1 1 1 1 1 1 0 0 0\n", 0}, {"", 0}, {"cpu 1 2", 0},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := softirqTicks(file); got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
	if got := softirqTicks("/proc/stat"); got <= 0 {
		t.Errorf("this machine has spent %v in soft interrupts", got)
	}
	s, err := withSoftirq(func(context.Context, time.Duration) (sample, error) { return sample{value: 1}, nil })(t.Context(), 0)
	if _, ok := s.more["softirq_cpus"]; err != nil || !ok {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestReceived: what was offered, what came by the clock and by CPU time, and what was lost stand side by side.
func TestReceived(t *testing.T) {
	s := received(figures{"packets": 3e6, "bytes": 3e9, "seconds": 2, "cpu_seconds": 1.5}, 0.25, 2e6)
	want := figures{"mpps": 1.5, "cpu_ns": 500, "lost": 0.25, "offered_mpps": 2}
	if s.value != 12 || fmt.Sprint(s.more) != fmt.Sprint(want) {
		t.Errorf("%+v, want %v", s, want)
	}
}
