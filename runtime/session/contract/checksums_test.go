package contract

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// sum16 adds the words of p to an Internet checksum (RFC 1071), without the final complement.
func sum16(p []byte, sum uint32) uint32 {
	for ; len(p) > 1; p = p[2:] {
		sum += uint32(binary.BigEndian.Uint16(p))
	}
	if len(p) == 1 {
		sum += uint32(p[0]) << 8
	}
	return sum>>16 + sum&0xffff
}

// TestContractChecksums transmits packets with changing fields and checks that their checksums are correct, whether computed by software or hardware.
func TestContractChecksums(t *testing.T) {
	const toFirst = "        flows:\n        - {name: all, id: 5, match: {udp_dst: 7148}, action: {type: queue, id: 0}}\n"
	for _, e := range engines() {
		if !e.frames {
			continue // the kernel creates the headers
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			onTask(t, func(me *task.Task) error {
				b, err := e.open(me, toFirst)
				if err != nil {
					return err
				}
				defer b.end(t)
				tap, err := b.begin(session.Wait)
				if err != nil {
					return err
				}
				if got := strings.Contains(b.report(), "checksums of transmissions: by the device"); got != (b.cards != "") {
					t.Errorf("the device computes checksums: %v", got)
				}
				if err := b.checksums(tap, "udp_src", 34); err != nil {
					return err
				}
				return b.checksums(tap, "ipv4_id", 18)
			})
		})
	}
}

// checksums transmits packets in which the field at an offset changes, and checks what arrives.
func (b *bench) checksums(tap *session.Tap, name string, at int) error {
	field, ok := session.FieldNamed(name)
	if !ok {
		return fmt.Errorf("no field %s", name)
	}
	const n = 100
	if err := b.transmit(101, n, session.Vary{Field: field, Start: 1000, Step: 7}); err != nil {
		return err
	}
	seen := map[int]bool{} // a device's queues are not ordered among each other
	return b.receive(tap, n, func(x *session.Burst, i int) error {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		v := int(binary.BigEndian.Uint16(p[at:])) - 1000
		if v%7 != 0 || v < 0 || v >= 7*n || seen[v] {
			return fmt.Errorf("%s is %d, or was already", name, v+1000)
		}
		seen[v] = true
		ip, udp := sum16(p[14:34], 0), sum16(p[34:], sum16(p[26:34], 17+uint32(len(p)-34)))
		if ip != 0xffff || udp&0xffff+udp>>16 != 0xffff {
			return fmt.Errorf("%s %d: sums %#x and %#x", name, v+1000, ip, udp)
		}
		return nil
	})
}
