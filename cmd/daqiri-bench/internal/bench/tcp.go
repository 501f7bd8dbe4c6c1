package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// runTCP is tcp: one stream, ours in one process, iperf3's in two.
func runTCP(ctx context.Context, b *bench, r *Result) error {
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		port, err := freePort()
		if err != nil {
			return sample{}, err
		}
		f, err := b.last(ctx, d, b.ours("tcp.lua", "--port", port, "--seconds", text(d*10/11))...)
		return sample{f["bytes"] * 8 / f["seconds"] / 1e9, figures{"cpus": f["cpu_seconds"] / f["seconds"]}}, err
	}
	iperf := b.find("iperf3")
	if iperf == "" {
		r.add("iperf3 is not installed")
		return r.compare(ctx, withSoftirq(ours), nil)
	}
	r.compareWith("iperf3, one stream, whole seconds")
	return r.compare(ctx, withSoftirq(ours), withSoftirq(func(ctx context.Context, d time.Duration) (sample, error) { return b.iperf(ctx, iperf, d) }))
}

func (b *bench) iperf(ctx context.Context, iperf string, d time.Duration) (sample, error) {
	port, err := freePort()
	if err != nil {
		return sample{}, err
	}
	server, err := b.start(ctx, d, iperf, "-s", "-1", "-B", "127.0.0.1", "-p", port, "--forceflush")
	if err != nil {
		return sample{}, err
	}
	defer server.stop()
	for line := ""; !strings.Contains(line, "listening"); {
		if line, err = server.out.ReadString('\n'); err != nil {
			return sample{}, fmt.Errorf("iperf3 -s: %w", err)
		}
	}
	go func(out *bufio.Reader) { // or it may wait until its report is read
		for err := error(nil); err == nil; _, err = out.ReadString('\n') {
		}
	}(server.out)
	seconds := max(1, int(d.Seconds()+0.5))
	out, err := b.output(ctx, iperf, "-c", "127.0.0.1", "-p", port, "-t", fmt.Sprint(seconds), "-J")
	if err != nil {
		return sample{}, err
	}
	var report struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return sample{}, fmt.Errorf("iperf3: %w", err)
	}
	return sample{value: report.End.Received.Rate / 1e9}, nil
}
