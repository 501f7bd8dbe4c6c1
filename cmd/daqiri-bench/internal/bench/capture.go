package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
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
	tcpdumpReady = "listening on"          // tcpdump prints it when it has opened the device
	quiet        = 1500 * time.Millisecond // tcpdump hands over a part of its buffer a second later
	pollInterval = 100 * time.Millisecond
)

// recorder is one of the two that capture: it starts, and stop ends it once the sender has ended; the file lies in dir.
type recorder func(ctx context.Context, c *cable, d time.Duration, dir string) (stop func() error, err error)

// runCapture is capture_pcap. A trial loses something when the file holds fewer packets than the sender sent: both files
// have records of the same size, so the file's size gives their number.
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
	trialOf := func(record recorder) trialFunc {
		return func(ctx context.Context, pps float64) (float64, float64, error) {
			return c.trial(ctx, trial, pps, record)
		}
	}
	ours := &search{trial: trialOf(recordOurs)}
	searches := []*search{ours}
	tcpdump := b.find("tcpdump")
	if tcpdump == "" {
		r.add("tcpdump is not installed")
	} else {
		r.compareWith("tcpdump -w -B 262144")
		searches = append(searches, &search{trial: trialOf(recordTcpdump(tcpdump))})
	}
	if err := alternate(ctx, slices.Clone(searches)); err != nil {
		return err
	}
	r.Value, r.Figures = number(ours.best), figures{"seconds": trial.Seconds()}
	for _, s := range searches {
		who, prefix := "tcpdump", "peer_"
		if s == ours {
			who, prefix = "ours", ""
		} else {
			r.PeerValue = number(s.best)
		}
		if s.bound {
			r.add(who + " is bound by the sender")
		}
		r.Figures[prefix+"offered_most"], r.Figures[prefix+"lost_at_most"] = s.most, s.lost
		r.Figures[prefix+"softirq_cpus"] = s.softirq
	}
	if r.PeerValue != nil && *r.PeerValue > 0 {
		ratio := number(ours.best / *r.PeerValue)
		r.Ratio, r.RatioMin, r.RatioMax = ratio, ratio, ratio
	}
	return nil
}

// trialFunc sends at a rate, 0: as fast as possible, and returns the rate that the sender reached, per second, and how many packets
// the file lacks of all that were sent.
type trialFunc func(ctx context.Context, pps float64) (sent, lost float64, err error)

// search finds the highest rate at which nothing is lost, in GB/s of payload.
type search struct {
	trial      trialFunc
	low, high  float64 // packets/s; 0 before the first trial
	best       float64
	bound      bool    // the sender can't do more
	most, lost float64 // what the sender offered flat out, GB/s, and how many packets of that were lost
	softirq    float64 // CPUs, in the last trial
}

// alternate makes the trials of all searches in turn, so that all meet the same host.
func alternate(ctx context.Context, searches []*search) error {
	for range captureSteps + 1 {
		for _, s := range searches {
			if err := s.step(ctx); err != nil {
				return err
			}
		}
		slices.Reverse(searches)
	}
	return nil
}

// step makes one trial more: the first as fast as the sender can.
func (s *search) step(ctx context.Context) error {
	const gb = captureSize / 1e9
	if s.bound {
		return nil
	}
	first, pps := s.high == 0, math.Sqrt(s.low*s.high)
	kernel := startSoftirq()
	sent, lost, err := s.trial(ctx, pps)
	if err != nil {
		return err
	}
	s.softirq = kernel.cpus()
	switch {
	case first:
		s.low, s.high, s.most, s.lost = sent/16, sent, sent*gb, lost
		if lost == 0 {
			s.best, s.bound = sent*gb, true
		}
	case lost == 0:
		s.low, s.best = pps, max(s.best, sent*gb)
	default:
		s.high = pps
	}
	return nil
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

// recordTcpdump records at the device: no socket of this program is in the way. No socket listens at the port, so the
// kernel's answers to that are kept from the sender by a filter on the destination.
func recordTcpdump(tcpdump string) recorder {
	return func(ctx context.Context, c *cable, d time.Duration, dir string) (func() error, error) {
		p, err := c.b.start(ctx, 2*d, c.in(c.recv, []string{tcpdump, "-n", "-i", "veth0", "-w", filepath.Join(dir, "tcpdump.pcap"),
			"-B", "262144", "-Z", "root", "udp", "dst", "port", capturePort})...)
		if err != nil {
			return nil, err
		}
		if err := p.awaits(ctx, tcpdumpReady); err != nil {
			p.stop()
			return nil, err
		}
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
		time.Sleep(pollInterval)
		if now := folderBytes(dir); now != last {
			last, since = now, time.Now()
		}
	}
}
