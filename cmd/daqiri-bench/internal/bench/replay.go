package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	replayFrames = 500_000
	replaySize   = 60 // bytes of a frame, without FCS
	replayRecord = 16 // of a record's header
	replayNumber = 42 // where a frame has its number
)

// runReplay is replay: a capture, over and over, into a counter; its peer reads the capture and counts, too.
func runReplay(ctx context.Context, b *bench, r *Result) error {
	file, err := b.capture()
	if err != nil {
		return err
	}
	ours := func(ctx context.Context, d time.Duration) (sample, error) { return b.replay(ctx, d, nil, file) }
	tcpdump := b.find("tcpdump")
	if tcpdump == "" {
		r.add("tcpdump is not installed")
		return r.compare(ctx, ours, nil)
	}
	r.compareWith("tcpdump --count -r FILE, less its start")
	return r.compare(ctx, ours, func(ctx context.Context, d time.Duration) (sample, error) { return b.count(ctx, d, tcpdump, file) })
}

// count has tcpdump count the packets of the capture for d, in turn with a capture that has none: what that takes is
// tcpdump's start.
func (b *bench) count(ctx context.Context, d time.Duration, tcpdump, file string) (sample, error) {
	head, err := readHead(file)
	if err != nil {
		return sample{}, err
	}
	empty := filepath.Join(b.dir, "empty.pcap")
	if err := os.WriteFile(empty, head, 0o644); err != nil {
		return sample{}, err
	}
	var whole, start, wholeCPU, startCPU []float64
	for end := time.Now().Add(d); len(whole) == 0 || time.Now().Before(end); {
		for _, part := range []struct {
			file       string
			n          int
			times, cpu *[]float64
		}{{empty, 0, &start, &startCPU}, {file, replayFrames, &whole, &wholeCPU}} {
			began, used := time.Now(), childrenCPU()
			stdout, stderr, err := b.outputs(ctx, tcpdump, "-n", "--count", "-r", part.file)
			*part.times, *part.cpu = append(*part.times, time.Since(began).Seconds()), append(*part.cpu, childrenCPU()-used)
			if err != nil {
				return sample{}, err
			}
			if n, _, _ := strings.Cut(stdout, " "); n != strconv.Itoa(part.n) {
				return sample{}, fmt.Errorf("tcpdump counted %q of %d: %s", stdout, part.n, stderr)
			}
		}
	}
	return sample{replayFrames / 1e6 / (median(whole) - median(start)), figures{"packets_per_cpu_second": replayFrames / (median(wholeCPU) - median(startCPU)),
		"start_ms": median(start) * 1e3, "runs": float64(len(whole))}}, nil
}

// childrenCPU is the CPU time of the programs that have ended, in seconds.
func childrenCPU() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) // nothing that it could fail for
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// readHead is the header of a capture.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, pcapHeader)
	_, err = io.ReadFull(f, head)
	return head, err
}

// runReplayVeth is replay_veth: onto a veth pair, against tcpreplay.
func runReplayVeth(ctx context.Context, b *bench, r *Result) error {
	file, err := b.capture()
	if err != nil {
		return err
	}
	c, err := b.cable(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		return b.replay(ctx, d, c, file, "--to", "veth0")
	}
	tcpreplay := b.find("tcpreplay")
	if tcpreplay == "" {
		r.add("tcpreplay is not installed")
		return r.compare(ctx, ours, nil)
	}
	r.compareWith("tcpreplay --topspeed --preload-pcap")
	return r.compare(ctx, withSoftirq(ours), withSoftirq(func(ctx context.Context, d time.Duration) (sample, error) {
		seconds := max(1, int(d.Seconds()+0.5))
		out, err := b.output(ctx, c.in(c.send, []string{tcpreplay, "--topspeed", "--preload-pcap", "--loop=0",
			"--duration=" + strconv.Itoa(seconds), "--intf1=veth0", file})...)
		if err != nil {
			return sample{}, err
		}
		return sentBy(out)
	}))
}

var tcpreplaySent = regexp.MustCompile(`Actual: ([0-9]+) packets .* sent in ([0-9.]+) seconds`)

// sentBy reads tcpreplay's figures.
func sentBy(out string) (sample, error) {
	m := tcpreplaySent.FindStringSubmatch(out)
	if m == nil {
		return sample{}, fmt.Errorf("tcpreplay printed %q", out)
	}
	packets, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return sample{}, err
	}
	seconds, err := strconv.ParseFloat(m[2], 64)
	return sample{value: packets / 1e6 / seconds}, err
}

// replay is our side; c is where, unless nil.
func (b *bench) replay(ctx context.Context, d time.Duration, c *cable, file string, more ...string) (sample, error) {
	argv := b.ours("replay.lua", append([]string{"--file", file, "--seconds", text(d)}, more...)...)
	if c != nil {
		argv = c.in(c.send, argv)
	}
	f, err := b.last(ctx, d, argv...)
	if err != nil {
		return sample{}, err
	}
	return sample{f["packets"] / 1e6 / f["seconds"], figures{"packets_per_cpu_second": f["packets"] / f["cpu_seconds"]}}, nil
}

// capture writes a nanosecond pcap of small frames, a microsecond apart.
func (b *bench) capture() (string, error) {
	return b.captureOf(replayFrames, func(k int) int64 { return int64(k) * 1000 })
}

// captureOf writes a nanosecond pcap of n numbered frames, the k-th of them at(k) ns behind a whole second; at never falls.
func (b *bench) captureOf(n int, at func(k int) int64) (string, error) {
	path := filepath.Join(b.dir, "replay.pcap")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	le := binary.LittleEndian
	header := le.AppendUint32(nil, 0xa1b23c4d)
	header = append(header, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	_, _ = w.Write(le.AppendUint32(le.AppendUint32(header, 65535), 1)) // Flush has the error
	record := make([]byte, replayRecord+replaySize)
	copy(record[replayRecord:], []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, replaySize - 14, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
		0x10, 0, 0x10, 0, 0, replaySize - 34})
	le.PutUint32(record[8:], replaySize)
	le.PutUint32(record[12:], replaySize)
	for k := range n {
		ns := at(k)
		le.PutUint32(record, 1700000000+uint32(ns/1e9))
		le.PutUint32(record[4:], uint32(ns%1e9))
		le.PutUint32(record[replayRecord+replayNumber:], uint32(k))
		_, _ = w.Write(record)
	}
	return path, w.Flush()
}
