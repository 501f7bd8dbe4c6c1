package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// cable is two network namespaces joined by a veth pair with jumbo frames. Nothing in it touches the host's own
// network, and its names are this run's alone.
type cable struct {
	b          *bench
	ip         string // the program
	send, recv string // names of the namespaces
}

const (
	recvAddr = "10.98.0.2"
	cableMTU = "9000"
)

// cable makes a cable; the caller closes it.
func (b *bench) cable(ctx context.Context) (*cable, error) {
	c := &cable{b: b, ip: b.find("ip")}
	if os.Getuid() != 0 {
		return nil, errUnavailable{"needs root, for network namespaces"}
	}
	if c.ip == "" {
		return nil, errUnavailable{"needs ip (iproute2), for network namespaces"}
	}
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	c.send, c.recv = "dqbs"+hex.EncodeToString(id), "dqbr"+hex.EncodeToString(id)
	if _, err := b.output(ctx, c.ip, "netns", "add", c.send); err != nil {
		return nil, errUnavailable{fmt.Sprintf("no network namespace could be made: %v", err)}
	}
	for _, args := range [][]string{
		{"netns", "add", c.recv},
		{"-n", c.send, "link", "add", "veth0", "mtu", cableMTU, "type", "veth", "peer", "name", "veth0", "mtu", cableMTU, "netns", c.recv},
		{"-n", c.send, "addr", "add", "10.98.0.1/24", "dev", "veth0"},
		{"-n", c.recv, "addr", "add", recvAddr + "/24", "dev", "veth0"},
		{"-n", c.send, "link", "set", "veth0", "up"},
		{"-n", c.recv, "link", "set", "veth0", "up"},
		{"-n", c.recv, "link", "set", "lo", "up"},
	} {
		if _, err := b.output(ctx, append([]string{c.ip}, args...)...); err != nil {
			c.close()
			return nil, fmt.Errorf("veth pair: %w", err)
		}
	}
	return c, nil
}

// close removes the namespaces, also after the end of the run's context.
func (c *cable) close() {
	for _, ns := range []string{c.send, c.recv} {
		_ = exec.Command(c.ip, "netns", "del", ns).Run() // gone already, or never made
	}
}

// in is a command line inside a namespace. ip replaces itself by the program.
func (c *cable) in(ns string, argv []string) []string {
	return append([]string{c.ip, "netns", "exec", ns}, argv...)
}

// sendTo sends numbered datagrams to a port at the other end for d; pps 0: as fast as it goes.
func (c *cable) sendTo(ctx context.Context, d time.Duration, port string, size int, pps float64, marks bool) (figures, error) {
	args := []string{"--host", recvAddr, "--port", port, "--size", fmt.Sprint(size), "--pps", fmt.Sprint(pps), "--for", d.String()}
	if !marks {
		args = append(args, "--no-marks")
	}
	return c.b.last(ctx, d, c.in(c.send, c.b.peer("udp-send", args...))...)
}
