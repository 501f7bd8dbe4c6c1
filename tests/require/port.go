package require

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port of host that is free for UDP and TCP. It lies below the range from which the kernel picks ports for outgoing
// connections: a free port of that range may be taken by the next connection of another test.
func FreePort(host string) (int, error) {
	const from, to, tries = 10000, 32000, 100
	var err error
	for range tries {
		port := from + rand.IntN(to-from)
		if err = bindable(net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port of %s is free: %w", host, err)
}

// Port returns such a port of 127.0.0.1, as text. It fails t if there is none.
func Port(t testing.TB) string {
	t.Helper()
	port, err := FreePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// bindable reports why an address can't be had.
func bindable(at string) error {
	u, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	defer u.Close()
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	return l.Close()
}
