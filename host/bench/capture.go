package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	captureSize  = 8000                  // bytes of a datagram
	capturePort  = "7154"                // the namespace is ours alone
	recordBytes  = 16 + 42 + captureSize // of a packet in a pcap: its record's header, its own headers, itself
	pcapHeader   = 24
	captureSteps = 6               // of each bisection: four octaves to 4 %
	trialRest    = 2 * time.Second // of a trial, on average: starting, writing what is left
	shortest     = time.Second / 4
	longest      = 10 * time.Second
	opening      = 300 * time.Millisecond  // until tcpdump has opened the device
	quiet        = 1500 * time.Millisecond // tcpdump hands over a part of its buffer a second later
	glance       = 100 * time.Millisecond
)

// recorder is one of the two that capture: it starts, and stop ends it once the sender has ended; the file lies in dir.
type recorder func(ctx context.Context, c *cable, d time.Duration, dir string) (stop func() error, err error)

// runCapture is capture_pcap. A trial loses something when the file holds fewer packets than the sender sent: both files
// have records of the same size, so the file's size tells.
func runCapture(ctx context.Context, b *bench, r *Result) error {
	c, err := b.cable(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	trial := min(longest, max(shortest, r.length/(2*(captureSteps+1))-trialRest))
	if trial < longest {
		r.add(fmt.Sprintf("trials of %.1f s: shorter than 10 s they fit into tcpdump's buffer in part", trial.Seconds()))
	}
	ours, bound, err := c.highest(ctx, trial, recordOurs)
	if err != nil {
		return err
	}
	r.Value, r.Figures = number(ours), figures{"seconds": trial.Seconds()}
	if bound {
		r.add("ours is bound by the sender")
	}
	tcpdump := b.find("tcpdump")
	if tcpdump == "" {
		r.add("tcpdump is not installed")
		return nil
	}
	theirs, bound, err := c.highest(ctx, trial, recordTcpdump(tcpdump))
	if err != nil {
		return err
	}
	if bound {
		r.add("tcpdump is bound by the sender")
	}
	r.compareWith("tcpdump -w -B 262144")
	r.PeerValue = number(theirs)
	if theirs > 0 {
		ratio := number(ours / theirs)
		r.Ratio, r.RatioMin, r.RatioMax = ratio, ratio, ratio
	}
	return nil
}

// highest finds the highest rate, GB/s of payload, at which nothing is lost; bound: the sender can't do more.
func (c *cable) highest(ctx context.Context, d time.Duration, record recorder) (rate float64, bound bool, err error) {
	top, lost, err := c.trial(ctx, d, 0, record)
	if err != nil || lost == 0 {
		return top * captureSize / 1e9, true, err
	}
	low, high := top/16, top // packets/s
	best := 0.0
	for range captureSteps {
		pps := math.Sqrt(low * high)
		sent, lost, err := c.trial(ctx, d, pps, record)
		if err != nil {
			return 0, false, err
		}
		if lost == 0 {
			low, best = pps, max(best, sent)
		} else {
			high = pps
		}
	}
	return best * captureSize / 1e9, false, nil
}

// trial sends at a rate for d, 0: as fast as it goes. It returns the rate that the sender reached and how many packets
// the file lacks.
func (c *cable) trial(ctx context.Context, d time.Duration, pps float64, record recorder) (sent, lost float64, err error) {
	if err := c.b.room(uint64(d.Seconds() * 2.5e9)); err != nil {
		return 0, 0, err
	}
	dir, remove, err := c.b.folder()
	if err != nil {
		return 0, 0, err
	}
	defer remove()
	stop, err := record(ctx, c, d, dir)
	if err != nil {
		return 0, 0, err
	}
	f, err := c.sendTo(ctx, d, capturePort, captureSize, pps, false)
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return 0, 0, err
	}
	in := float64(folderBytes(dir))
	return f["packets"] / f["seconds"], f["packets"] - math.Floor((in-pcapHeader)/recordBytes), nil
}

func recordOurs(ctx context.Context, c *cable, d time.Duration, dir string) (func() error, error) {
	p, err := c.b.start(ctx, 2*d, c.in(c.recv, c.b.ours("capture.lua", "--listen", "0.0.0.0:"+capturePort, "--size",
		fmt.Sprint(captureSize), "--dir", dir))...)
	if err != nil {
		return nil, err
	}
	if _, err := p.next(); err != nil {
		p.stop()
		return nil, err
	}
	return func() error {
		defer p.stop()
		if _, err := p.next(); err != nil {
			return err
		}
		return p.finish()
	}, nil
}

// recordTcpdump records at the device: no socket of this program is in the way. Nobody listens at the port, so the
// kernel's answers to that are kept from the sender by a filter on the destination.
func recordTcpdump(tcpdump string) recorder {
	return func(ctx context.Context, c *cable, d time.Duration, dir string) (func() error, error) {
		p, err := c.b.start(ctx, 2*d, c.in(c.recv, []string{tcpdump, "-n", "-i", "veth0", "-w", filepath.Join(dir, "tcpdump.pcap"),
			"-B", "262144", "-Z", "root", "udp", "dst", "port", capturePort})...)
		if err != nil {
			return nil, err
		}
		time.Sleep(opening)
		return func() error {
			defer p.stop()
			untilQuiet(ctx, dir)
			if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil && !os.IsNotExist(err) {
				return err
			}
			if err := p.finish(); err != nil && !strings.Contains(p.stderr.String(), "packets captured") {
				return err
			}
			return nil
		}, nil
	}
}

// untilQuiet waits until the files of a folder have not grown for a while.
func untilQuiet(ctx context.Context, dir string) {
	last, since := folderBytes(dir), time.Now()
	for time.Since(since) < quiet && ctx.Err() == nil {
		time.Sleep(glance)
		if now := folderBytes(dir); now != last {
			last, since = now, time.Now()
		}
	}
}
