package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	ringBurst  = 512             // packets, of both sides, and that go round in each direction
	ringSettle = time.Second / 2 // from the first packets on
	ringStart  = 15 * time.Second
)

// runXDP is xdp: two ends of a cable on one thread, each of which sends what the other receives, so that the same packets
// go round and round. Both sides are counted by the devices and by the CPU time of their processes.
func runXDP(ctx context.Context, b *bench, r *Result) error {
	c, err := b.cable(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	core := strconv.Itoa(runtime.NumCPU() - 1)
	ours := c.ring(b.ours("xdp.lua", "--left", "left", "--right", "right", "--count", strconv.Itoa(ringBurst),
		"--core", core, "--seconds", "3600"))
	testpmd := b.find("dpdk-testpmd")
	if testpmd == "" || runtime.NumCPU() < 2 {
		r.add("dpdk-testpmd is not installed, or has no core of its own")
		return r.compare(ctx, ours, nil)
	}
	r.compareWith("dpdk-testpmd, io forwarding over net_af_xdp, bursts of 512; both without huge pages")
	return r.compare(ctx, withSoftirq(ours), withSoftirq(c.ring([]string{testpmd, "--no-pci", "--no-huge", "--no-shconf", "--file-prefix=" + c.send,
		"-m", "512", "-l", "0," + core, "--vdev", "net_af_xdp0,iface=left", "--vdev", "net_af_xdp1,iface=right", "--",
		"--forward-mode=io", "--burst=" + strconv.Itoa(ringBurst), "--total-num-mbufs=32768", "--auto-start", "--tx-first"})))
}

// ring measures a program that forwards between left and right, on devices of its own: a program that is killed may leave
// something attached to them.
func (c *cable) ring(argv []string) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		for _, args := range [][]string{
			{"link", "add", "left", "type", "veth", "peer", "name", "right"},
			{"link", "set", "left", "addrgenmode", "none", "up"},
			{"link", "set", "right", "addrgenmode", "none", "up"},
		} {
			if _, err := c.b.output(ctx, append([]string{c.ip, "-n", c.send}, args...)...); err != nil {
				return sample{}, fmt.Errorf("veth pair: %w", err)
			}
		}
		got, err := c.measureRing(ctx, d, argv)
		_, gone := c.b.output(ctx, c.ip, "-n", c.send, "link", "del", "left")
		return got, errors.Join(err, gone)
	}
}

func (c *cable) measureRing(ctx context.Context, d time.Duration, argv []string) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, d+ringStart+slack)
	defer cancel()
	cmd := c.b.command(ctx, c.in(c.send, argv)...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	stdin, err := cmd.StdinPipe() // testpmd ends with its input
	if err != nil {
		return sample{}, err
	}
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	got, err := c.watchRing(ctx, d, cmd.Process.Pid)
	stdin.Close()
	cancel()
	_ = cmd.Wait() // it was killed
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, strings.TrimSpace(output.String()))
	}
	return got, nil
}

// watchRing counts what goes round for d, once it does.
func (c *cable) watchRing(ctx context.Context, d time.Duration, pid int) (sample, error) {
	for begin := time.Now(); ; time.Sleep(pollInterval) {
		n, err := c.received(ctx)
		if err != nil {
			return sample{}, err
		}
		if n > 20*ringBurst {
			break
		}
		if time.Since(begin) > ringStart {
			return sample{}, errors.New("no packets go round")
		}
	}
	time.Sleep(ringSettle)
	var packets, cpu [2]float64
	var at [2]time.Time
	for i := range 2 {
		if i == 1 {
			time.Sleep(d)
		}
		var err error
		if packets[i], err = c.received(ctx); err != nil {
			return sample{}, err
		}
		at[i] = time.Now()
		if cpu[i], err = cpuSeconds(pid); err != nil {
			return sample{}, err
		}
	}
	n := packets[1] - packets[0]
	return sample{n / 1e6 / (cpu[1] - cpu[0]), figures{"mpps": n / 1e6 / at[1].Sub(at[0]).Seconds(), "cpus": (cpu[1] - cpu[0]) / at[1].Sub(at[0]).Seconds()}}, nil
}

// received is how many packets both devices have received.
func (c *cable) received(ctx context.Context) (float64, error) {
	total := 0.0
	for _, device := range []string{"left", "right"} {
		text, err := c.b.output(ctx, c.ip, "-n", c.send, "-s", "-j", "link", "show", device)
		if err != nil {
			return 0, err
		}
		var links []struct {
			Stats64 struct{ RX struct{ Packets float64 } }
		}
		if err := json.Unmarshal([]byte(text), &links); err != nil || len(links) != 1 {
			return 0, fmt.Errorf("ip -s -j link show %s: %q", device, text)
		}
		total += links[0].Stats64.RX.Packets
	}
	return total, nil
}
