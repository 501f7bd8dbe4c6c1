package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rdmaEnd is an IPv4 address of an RDMA device, and its place in the device's table: which perftest needs as arguments; otherwise both its
// ends are of the first device, which then sends nothing.
type rdmaEnd struct{ address, device, gid string }

// rdmaEnds are two ends, of two devices where there are two.
func rdmaEnds() (at, from rdmaEnd, ok bool) {
	var found []rdmaEnd
	gids, _ := filepath.Glob("/sys/class/infiniband/*/ports/1/gids/*")
	for _, file := range gids {
		text, _ := os.ReadFile(file)
		dir, place := filepath.Split(file)
		kind, _ := os.ReadFile(filepath.Join(dir, "../gid_attrs/types", place)) // fails where the place is empty
		ip := net.ParseIP(strings.TrimSpace(string(text)))
		if ip.To4() != nil && strings.TrimSpace(string(kind)) == "RoCE v2" {
			found = append(found, rdmaEnd{ip.String(), strings.Split(file, "/")[4], place})
		}
	}
	if len(found) == 0 {
		return rdmaEnd{}, rdmaEnd{}, false
	}
	slices.SortFunc(found, func(a, b rdmaEnd) int { return strings.Compare(a.address, b.address) })
	at, from = found[0], found[len(found)-1]
	for _, end := range found {
		if end.device != at.device {
			from = end
		}
	}
	return at, from, true
}

// runRDMA makes rdma_send, rdma_write and rdma_read: 64 KiB each, against perftest's tool for it.
func runRDMA(what, tool string) func(ctx context.Context, b *bench, r *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		at, from, ok := rdmaEnds()
		if !ok {
			return errUnavailable{"no RDMA device has an IPv4 address (`rdma link`)"}
		}
		ours := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.rdma(ctx, d, what, at, from)
			if err != nil {
				return sample{}, err
			}
			if what == "latency" {
				return sample{f["mean"], figures{"n": f["n"], "cpus": f["cpu_seconds"] / f["seconds"]}}, nil
			}
			return sample{f["bytes"] * 8 / f["seconds"] / 1e9, figures{"cpus": f["cpu_seconds"] / f["seconds"]}}, nil
		}
		peer := b.find(tool)
		if peer == "" {
			r.add(tool + " is not installed")
			return r.compare(ctx, ours, nil)
		}
		r.compareWith(tool + " of perftest, between the same devices")
		return r.compare(ctx, ours, func(ctx context.Context, d time.Duration) (sample, error) {
			return b.perftest(ctx, d, peer, what, at, from)
		})
	}
}

const rdmaBytes = "65536"

func (b *bench) rdma(ctx context.Context, d time.Duration, what string, at, from rdmaEnd) (figures, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	size := rdmaBytes
	if what == "latency" {
		size = "64"
	}
	return b.last(ctx, d, b.ours("rdma.lua", "--what", what, "--at", at.address, "--from", from.address, "--port", port, "--size", size, "--seconds", text(d*10/11))...)
}

// resultLine is that of perftest: bytes, iterations and figures.
var resultLine = regexp.MustCompile(`(?m)^\s*\d+\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)(?:\s+([\d.]+))?`)

// noFigure is what perftest prints where its measurement of the clock's frequency failed.
var noFigure = regexp.MustCompile(`(?m)^\s*\d+\s+\d+\s.*\b(inf|nan)\b`)

// perftest runs a tool of perftest against itself; Gbit/s, or of latency the µs one way, both on average.
func (b *bench) perftest(ctx context.Context, d time.Duration, tool, what string, at, from rdmaEnd) (sample, error) {
	port, err := freePort()
	if err != nil {
		return sample{}, err
	}
	argv := []string{tool, "-p", port, "-F"}
	column := 2 // the best, and on average
	if what == "latency" {
		argv = append(argv, "-s", "64", "-n", strconv.Itoa(max(1000, int(d.Seconds()*5000))))
		column = 4 // the shortest, the longest, typical, and on average
	} else {
		argv = append(argv, "-s", rdmaBytes, "-D", strconv.Itoa(max(1, int(d.Seconds()+0.5))), "--report_gbits")
	}
	server, err := b.start(ctx, d, append(slices.Clone(argv), "-d", at.device, "-x", at.gid)...)
	if err != nil {
		return sample{}, err
	}
	defer server.stop()
	var out string
	ctx, cancel := context.WithTimeout(ctx, d+slack)
	defer cancel()
	for try := 0; ; try++ { // with stdout in a pipe, it reports that it waits only at its end
		time.Sleep(200 * time.Millisecond)
		if out, err = b.output(ctx, append(slices.Clone(argv), "-d", from.device, "-x", from.gid, at.address)...); err == nil || try == 20 || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return sample{}, err
	}
	if noFigure.MatchString(out) {
		return sample{}, fmt.Errorf("%s found no frequency of this machine's clock, and printed no time; hint: run the case again", filepath.Base(tool))
	}
	m := resultLine.FindStringSubmatch(out)
	if m == nil {
		return sample{}, fmt.Errorf("%s printed %q", filepath.Base(tool), out)
	}
	v, err := strconv.ParseFloat(m[column], 64)
	return sample{value: v}, err
}
