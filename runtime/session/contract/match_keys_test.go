package contract

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Tests of match keys, from the configuration to the packet: a frame that matches a key is accepted, and one that differs only there is not. Flow
// tables are tested in tests/native/packet/flow_keys_test.c.

// A matchKey is a match, a matching frame, and frames that differ from it in one key.
type matchKey struct {
	key   string // key of the configuration
	match string
	frame []byte
	other [][]byte
}

// with returns a copy of p with bytes changed from `at` on.
func with(p []byte, at int, bytes ...byte) []byte {
	return slices.Replace(slices.Clone(p), at, at+len(bytes), bytes...)
}

// datagram returns an Ethernet frame: 10.0.0.1 port 4000 to 10.0.0.2 port 7148, UDP, 60 bytes of ascending payload.
func datagram() []byte {
	p := make([]byte, headers+60)
	(&bench{engine: engine{frames: true}}).put(p, 0, 7148)
	for i := range 60 {
		p[headers+i] = byte(i)
	}
	return p
}

func segment() []byte { return with(with(datagram(), 23, 6), 46, 0x50) }

// datagram6 returns a UDP datagram over IPv6, 2001:db8::1 to 2001:db8::2.
func datagram6() []byte {
	p := make([]byte, 14+40+8+20)
	copy(p, datagram()[:12])
	copy(p[12:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 28, 17, 64})
	copy(p[22:], []byte{0x20, 1, 0x0d, 0xb8})
	copy(p[38:], []byte{0x20, 1, 0x0d, 0xb8})
	p[37], p[53] = 1, 2
	copy(p[54:], []byte{0x0f, 0xa0, 0x1b, 0xec, 0, 28})
	return p
}

func tagged(p []byte, id uint16) []byte {
	return slices.Insert(slices.Clone(p), 12, 0x81, 0, byte(id>>8), byte(id))
}

func matchKeys() []matchKey {
	udp, tcp, six := datagram(), segment(), datagram6()
	ecpri := with(udp, 12, 0xae, 0xfe, 0x10, 2, 0, 20, 0x12, 0x34)
	shorter := slices.Clone(udp[:len(udp)-1])
	binary.BigEndian.PutUint16(shorter[16:], uint16(len(shorter)-14))
	binary.BigEndian.PutUint16(shorter[38:], uint16(len(shorter)-34))
	return []matchKey{
		{"udp_src", "udp_src: 4000", udp, [][]byte{with(udp, 35, 0xa1), tcp}},
		{"udp_src of a range", "udp_src: 3998-4001", udp, [][]byte{with(udp, 35, 0x9d), with(udp, 35, 0xa2)}},
		{"udp_dst", "udp_dst: 7148", udp, [][]byte{with(udp, 36, 0x1c), tcp}},
		{"udp_dst of a range", "udp_dst: 7146-7150", udp, [][]byte{with(udp, 37, 0xe9), with(udp, 37, 0xef)}},
		{"tcp_dst of a range", "tcp_dst: 7146-7150", tcp, [][]byte{with(tcp, 37, 0xe9), with(tcp, 37, 0xef)}},
		{"tcp_src of a range", "tcp_src: 3998-4001", tcp, [][]byte{with(tcp, 35, 0x9d), with(tcp, 35, 0xa2)}},
		{"tcp_src", "tcp_src: 4000", tcp, [][]byte{with(tcp, 35, 0xa1), udp}},
		{"tcp_dst", "tcp_dst: 7148", tcp, [][]byte{with(tcp, 37, 0xed), udp}},
		{"ipv4_src", "ipv4_src: 10.0.0.0/30", udp, [][]byte{with(udp, 29, 4), with(udp, 26, 11), six}},
		{"ipv4_dst", "ipv4_dst: 10.0.0.2", udp, [][]byte{with(udp, 33, 3), with(udp, 30, 11), six}},
		{"ipv6_src", "ipv6_src: \"2001:db8::/126\"", six, [][]byte{with(six, 37, 5), with(six, 22, 0x21), udp}},
		{"ipv6_dst", "ipv6_dst: \"2001:db8::2\"", six, [][]byte{with(six, 53, 3), with(six, 38, 0x21), udp}},
		{"ipv4_len", fmt.Sprintf("ipv4_len: %d", len(udp)-14), udp, [][]byte{shorter, six}},
		{"vlan_id", "vlan_id: 291", tagged(udp, 291), [][]byte{tagged(udp, 290), tagged(udp, 35), udp}},
		{"ethertype", "ethertype: 0x88b5", with(udp, 12, 0x88, 0xb5), [][]byte{with(udp, 12, 0x88, 0xb6), udp}},
		{"ethernet.src", "ethernet: {src: \"02:00:00:00:00:01\"}", udp, [][]byte{with(udp, 11, 2), with(udp, 6, 6)}},
		{"ethernet.dst", "ethernet: {dst: \"02:00:00:00:00:02\"}", udp, [][]byte{with(udp, 5, 1), with(udp, 0, 6)}},
		{"val, mask, flex_items.offset", "flex_item_id: 3, val: 0x08090a00, mask: 0xffffff00", udp,
			[][]byte{with(udp, headers+8, 9), with(udp, headers+10, 11), with(udp, 37, 0xed), tcp}},
		{"mask", "flex_item_id: 3, val: 0x08090a00, mask: 0xffffff00", with(udp, headers+11, 99), nil},
		{"flex_items.udp_dst_port, flex_item_id", "flex_item_id: 4, val: 0x08090a0b, mask: 0xffffffff", with(udp, 36, 0x1b, 0xed), [][]byte{udp}},
		{"ecpri", "ecpri: {}", ecpri, [][]byte{with(ecpri, 12, 0x88, 0xb5), udp}},
		{"ecpri.msg_type", "ecpri: {msg_type: 2}", ecpri, [][]byte{with(ecpri, 15, 1)}},
		{"ecpri.rtc_id", "ecpri: {msg_type: 2, rtc_id: 0x1234}", ecpri, [][]byte{with(ecpri, 19, 0x35), with(ecpri, 18, 0x13)}},
		{"ecpri.pc_id", "ecpri: {msg_type: 0, pc_id: 0x1234}", with(ecpri, 15, 0), [][]byte{with(ecpri, 15, 0, 0, 20, 0x12, 0x35), ecpri}},
	}
}

func TestKeysOfAMatch(t *testing.T) {
	for _, c := range matchKeys() {
		t.Run(c.key, func(t *testing.T) { c.run(t) })
	}
}

// run sends the matching frame and the others to a flow of the second queue.
func (c matchKey) run(t *testing.T) {
	const form = `        flex_items:
        - {name: i, id: 3, offset: 8, udp_dst_port: 7148}
        - {name: j, id: 4, offset: 8, udp_dst_port: 7149}
        flows:
        - {name: wanted, id: 77, match: {%s}, action: {type: queue, id: 1}}
`
	virtualBench(t, fmt.Sprintf(form, c.match), asItIs, func(b *bench) error {
		if err := b.drain(); err != nil {
			return err
		}
		for k, frame := range append([][]byte{c.frame}, c.other...) {
			if err := b.sendFrame(frame); err != nil {
				return err
			}
			if got := b.figure("b.rx.1.in"); got != 1 {
				t.Errorf("frame %d: the queue has %v packets, want 1: % x", k, got, frame[:54])
			}
		}
		if got := b.ledgerFlow(b.rx.Interface(), 77).Packets; got != 1 {
			t.Errorf("the flow has %v packets, want 1", got)
		}
		return nil
	})
}

// sendFrame sends one frame and waits until it must have arrived.
func (b *bench) sendFrame(frame []byte) error {
	x, err := b.tx.Alloc(b.l, 1)
	if err != nil {
		return err
	}
	if err := x.SetLen(0, 0, len(frame)); err != nil {
		return err
	}
	p, err := x.Packet(0, 0)
	if err != nil {
		return err
	}
	copy(p, frame)
	if err := b.tx.Send(x); err != nil {
		return err
	}
	_, err = b.me.WaitFor(b.me.Now()+int64(time.Millisecond), nothing)
	return err
}

// TestSplitPacketsOfAFlow checks that the bytes of a flow include all segments of its packets.
func TestSplitPacketsOfAFlow(t *testing.T) {
	const flows = "        flows:\n        - {name: one, id: 7, match: {udp_dst: 7148}, action: {type: queue, id: 0}}\n" +
		"        - {name: two, id: 8, match: {udp_dst: 7149}, action: {type: queue, id: 0}}\n"
	virtualBench(t, flows, split, func(b *bench) error {
		if err := b.drain(); err != nil {
			return err
		}
		x, err := b.tx.Alloc(b.l, 4)
		if err != nil {
			return err
		}
		for i := range 4 {
			if err := x.SetLen(0, i, 100+i); err != nil {
				return err
			}
			p, err := x.Packet(0, i)
			if err != nil {
				return err
			}
			b.put(p, uint64(i), uint16(7148+i%2))
		}
		if err := b.tx.Send(x); err != nil {
			return err
		}
		if _, err := b.me.Wait(b.me.Now() + int64(time.Millisecond)); err != nil {
			return err
		}
		for id, want := range map[uint32]uint64{7: 100 + 102, 8: 101 + 103} {
			if got := b.ledgerFlow(b.rx.Interface(), id).Bytes; got != want {
				t.Errorf("flow %d: %d bytes, want %d", id, got, want)
			}
		}
		return nil
	})
}
