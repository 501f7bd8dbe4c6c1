package inspect

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/daqiri/daqiri-run/native"
)

// frame is a UDP packet over IPv4 with a few bytes of payload.
var frame = []byte{
	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00,
	0x45, 0, 0, 36, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
	0x0f, 0xa0, 0x1b, 0xec, 0, 16, 0, 0, 'p', 'a', 'y', 'l', 'o', 'a', 'd', '!',
}

// tight copies a packet without spare capacity: sanitizers then detect accesses past its end.
func tight(p []byte) []byte { return slices.Clip(bytes.Clone(p)) }

func FuzzPacket(f *testing.F) {
	f.Add(frame)
	f.Add(frame[:33])
	f.Add(frame[:14])
	f.Add([]byte{})
	f.Add(append(slices.Concat(frame[:12], []byte{0x81, 0, 0, 7, 0x88, 0xa8, 0, 9}), frame[12:]...))
	ipv6 := append(slices.Concat(frame[:12], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 0, 64}), make([]byte, 32)...)
	f.Add(append(ipv6, 17, 0, 1, 2, 0, 0, 0, 0, 0, 1, 0, 2, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := tight(data)
		h, ok := native.ParsePacket(p)
		if ok != (len(p) >= 14) {
			t.Fatalf("%d bytes: ok %v", len(p), ok)
		}
		for name, off := range map[string]int{"l3": h.L3, "l4": h.L4, "payload": h.Payload, "end": h.End} {
			if ok && off > len(p) {
				t.Errorf("%s at %d of %d bytes", name, off, len(p))
			}
		}
		if h.L4 >= 0 && h.L4 < h.L3 || h.Payload >= 0 && h.Payload+h.PayloadLen > len(p) {
			t.Errorf("headers overlap or leave the packet of %d bytes: %+v", len(p), h)
		}
		FillChecksums(p)
		if again, _ := native.ParsePacket(p); again != h {
			t.Errorf("checksums moved the headers: %+v, %+v", h, again)
		}
		if ok && !ChecksumsOK(p) {
			t.Errorf("checksums just written are wrong: % x", p)
		}
	})
}

func insn(code uint16, jt, jf uint8, k uint32) native.CBPFInsn {
	return native.CBPFInsn{Code: code, JT: jt, JF: jf, K: k}
}

func FuzzCBPF(f *testing.F) {
	insns := func(list ...native.CBPFInsn) []byte {
		var out []byte
		for _, i := range list {
			out = binary.LittleEndian.AppendUint16(out, i.Code)
			out = append(out, i.JT, i.JF)
			out = binary.LittleEndian.AppendUint32(out, i.K)
		}
		return out
	}
	const ldh, jeq, ret, ldx, ldind, div = 0x28, 0x15, 0x06, 0xb1, 0x40, 0x3c
	f.Add(insns(insn(ldh, 0, 0, 12), insn(jeq, 0, 1, 0x800), insn(ret, 0, 0, 0xffff), insn(ret, 0, 0, 0)), frame)
	f.Add(insns(insn(ldx, 0, 0, 14), insn(ldind, 0, 0, 0xfffffff0), insn(div, 0, 0, 0), insn(ret, 0, 0, 1)), frame[:20])
	f.Add(insns(insn(ret, 0, 0, 1)), []byte{})
	f.Fuzz(func(t *testing.T, code, packet []byte) {
		var prog []native.CBPFInsn
		for ; len(code) >= 8; code = code[8:] {
			prog = append(prog, insn(binary.LittleEndian.Uint16(code), code[2], code[3], binary.LittleEndian.Uint32(code[4:])))
		}
		p := tight(packet)
		if CheckCBPF(prog) != nil {
			return // never run
		}
		first := RunCBPF(prog, p, len(p)+4)
		if again := RunCBPF(prog, p, len(p)+4); again != first {
			t.Errorf("two runs gave %d and %d", first, again)
		}
		if !bytes.Equal(p, packet) {
			t.Error("the program changed the packet")
		}
	})
}

var (
	actionVLANPush, actionVLANPop = native.ActionNamed("vlan_push"), native.ActionNamed("vlan_pop")
	actionEncap, actionDecap      = native.ActionNamed("tunnel_encap"), native.ActionNamed("tunnel_decap")
)

// fuzzActions decodes actions, three bytes each: kind, tunnel and outer header, ids.
func fuzzActions(code []byte) (actions []native.Action) {
	for ; len(code) >= 3 && len(actions) < 3; code = code[3:] {
		actions = append(actions, native.Action{
			Kind: native.ActionKind(code[0] % 6), Tunnel: native.TunnelKind(code[1] % 5), IPv6: code[1]&0x80 != 0, TTL: 64,
			TPID: []uint16{0x8100, 0x88a8}[code[2]&1], TCI: uint16(code[2]), ID: uint32(code[2] & 3), UDPDst: 4789,
			Protocol: []uint16{0x6558, 0x0800, 0x86dd}[code[2]%3],
		})
	}
	return actions
}

// FuzzTransform applies arbitrary actions to arbitrary frames: nothing outside the frame and its room is written, the result lies
// inside, and decapsulating an encapsulated frame restores it.
func FuzzTransform(f *testing.F) {
	const guard, room = 64, 128
	kinds := []byte{byte(actionVLANPush), byte(actionVLANPop), byte(actionEncap), byte(actionDecap)}
	for _, kind := range kinds {
		for tunnel := byte(0); tunnel < 5; tunnel++ {
			for _, v6 := range []byte{0, 0x80} {
				f.Add([]byte{kind, tunnel | v6, 0}, frame)
				f.Add([]byte{byte(actionEncap), tunnel | v6, 3, byte(actionVLANPush), 0, 7, kind, tunnel, 3}, frame[:20])
			}
		}
	}
	f.Add([]byte{byte(actionVLANPush), 0, 7}, []byte{})
	f.Add([]byte{9, 0, 0, 9, 9, 9}, frame)
	// run applies the actions to a frame surrounded by 0xee; nil: dropped.
	run := func(t *testing.T, actions []native.Action, p []byte) []byte {
		whole := bytes.Repeat([]byte{0xee}, guard+room+len(p)+guard)
		buf := whole[guard : guard+room+len(p)]
		copy(buf[room:], p)
		start, n, ok, err := RunActions(actions, buf, room, 1518)
		if err != nil {
			return nil
		}
		if start < 0 || n < 0 || start+n > len(buf) || ok && start < room && n > 1518+4 {
			t.Fatalf("%d bytes come out at %d of %d", n, start-room, len(p))
		}
		for k := range guard {
			if whole[k] != 0xee || whole[len(whole)-1-k] != 0xee {
				t.Fatalf("a byte %d off the frame was written", guard-k)
			}
		}
		if !ok {
			return nil
		}
		return bytes.Clone(buf[start : start+n])
	}
	f.Fuzz(func(t *testing.T, code, p []byte) {
		if len(p) > 2000 {
			return
		}
		actions := fuzzActions(code)
		out := run(t, actions, p)
		if out == nil || len(actions) == 0 {
			return
		}
		if on := actions[0]; len(actions) == 1 && (on.Kind == actionVLANPush || on.Kind == actionEncap) {
			if len(out) <= len(p) {
				t.Fatalf("%d bytes became %d in a tunnel", len(p), len(out))
			}
			whole := on.Kind == actionVLANPush || on.Tunnel == native.TunnelVXLAN // the other tunnels may carry less than a frame
			on.Kind = map[native.ActionKind]native.ActionKind{actionVLANPush: actionVLANPop, actionEncap: actionDecap}[on.Kind]
			if back := run(t, []native.Action{on}, out); whole && !bytes.Equal(back, p) {
				t.Errorf("% x came back as % x", p, back)
			}
		}
	})
}
