package session

import (
	"fmt"
	"runtime"

	"github.com/daqiri/daqiri-run/native"
)

// change runs a native call that alters packets or their lengths, and reloads the columns.
func (b *Burst) change(what string, call func(native.Burst) error) error {
	if err := b.Writable(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return b.alter(what, call)
}

// alter is change for calls that do not modify packets with other readers.
func (b *Burst) alter(what string, call func(native.Burst) error) error {
	if err := b.Check(); err != nil {
		return err
	}
	if err := call(b.native); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b.native.View(&b.view)
	return nil
}

// reads returns an error if the packets' first segment must be read and cannot be.
func (b *Burst) reads(bytes bool) error {
	err := b.Check()
	if err == nil && bytes && !b.view.Heads() {
		err = b.readable(1)
	}
	return err
}

// writes returns an error if the packets' first segment cannot be changed.
func (b *Burst) writes() error {
	err := b.Writable()
	if err == nil {
		err = b.readable(1)
	}
	return err
}

// SetLen sets the length of packet i in a segment, or of all packets if i is -1.
func (b *Burst) SetLen(seg, i, n int) error {
	if err := b.checkPacket(seg, max(i, 0)); err != nil {
		return err
	}
	if n < 0 {
		return invalid("length %d", n)
	}
	return b.change(fmt.Sprintf("length %d", n), func(h native.Burst) error { return h.SetLen(seg, i, n) })
}

// Truncate keeps the first n packets and frees the others.
func (b *Burst) Truncate(n int) error {
	if n < 0 || n > b.N() {
		return invalid("%d packets: the burst has %d", n, b.N())
	}
	return b.change("truncate", func(h native.Burst) error { return h.Truncate(n) })
}

// FreePacket frees the buffers of packet i, or with other readers marks them to be freed with the burst. The packet's length becomes 0.
func (b *Burst) FreePacket(i int) error {
	if err := b.checkPacket(0, i); err != nil {
		return err
	}
	return b.alter("free packet", func(h native.Burst) error { return h.FreePacket(i) })
}

// FreeSegment frees the buffers of one segment of all packets.
func (b *Burst) FreeSegment(seg int) error {
	if err := b.checkPacket(seg, 0); err != nil {
		return err
	}
	return b.alter("free segment", func(h native.Burst) error { return h.FreeSegment(seg) })
}

// FreePacketSegment frees the buffer of one segment of packet i.
func (b *Burst) FreePacketSegment(seg, i int) error {
	if err := b.checkPacket(seg, i); err != nil {
		return err
	}
	return b.alter("free packet segment", func(h native.Burst) error { return h.FreePacketSegment(seg, i) })
}

// redirect sets the destination of the packets to a connection of the burst's session.
func (b *Burst) redirect(c *Conn) error {
	return b.alter("connection", func(h native.Burst) (err error) {
		b.native, err = h.Redirect(c.id)
		return err
	})
}

// Fill writes the burst's packets and lengths from a template.
func (b *Burst) Fill(t *Template) error {
	switch {
	case t.s != b.s:
		return invalid("template: it belongs to another session")
	case b.Segments() != 1:
		return invalid("template: it fills packets of one segment, the burst's have %d", b.Segments())
	}
	defer runtime.KeepAlive(t)
	if err := b.reads(true); err != nil {
		return err
	}
	return b.change("template", t.native.Fill)
}

// Prepend puts the template's packet, as headers, in front of each packet of the burst.
func (b *Burst) Prepend(t *Template) error {
	if t.s != b.s {
		return invalid("template: it belongs to another session")
	}
	defer runtime.KeepAlive(t)
	if err := b.reads(true); err != nil {
		return err
	}
	return b.change("template", t.native.Prepend)
}

// Column reads a field of every packet into out, which must have room for all; has[i] is 0 if packet i lacks the field (has may be nil). It returns
// the number of packets that have it.
func (b *Burst) Column(f Field, out []uint64, has []uint8) (int, error) {
	if err := b.reads(f.ReadsPacket()); err != nil {
		return 0, err
	}
	if len(out) < b.N() || has != nil && len(has) < b.N() {
		return 0, invalid("column: room for %d of %d packets", len(out), b.N())
	}
	return b.native.Column(f, out, has), nil
}

// Eval computes a number for every packet into out, with the same arguments as Column. It returns the number of packets for which the number exists.
func (b *Burst) Eval(n *Number, out []uint64, has []uint8) (int, error) {
	if err := b.reads(n.prog.ReadsPacket()); err != nil {
		return 0, err
	}
	if len(out) < b.N() || has != nil && len(has) < b.N() {
		return 0, invalid("column: room for %d of %d packets", len(out), b.N())
	}
	return b.native.Eval(n.prog, out, has), nil
}

// Set writes v, v + step, v + 2*step ... into the field of the packets. It returns the number of packets that have the field.
func (b *Burst) Set(f Field, v, step uint64, csum Csum) (int, error) {
	err := b.writes()
	n := 0
	if err == nil {
		n, err = b.native.Set(f, v, step, csum)
	}
	if err != nil {
		return 0, fmt.Errorf("set: %w", err)
	}
	return n, nil
}

// SetPlace is Set for a field whose position depends on the packet.
func (b *Burst) SetPlace(p *Place, v, step uint64, csum Csum) (int, error) {
	if p.prog == nil {
		return b.Set(p.Field, v, step, csum)
	}
	err := b.writes()
	n := 0
	if err == nil {
		n, err = b.native.SetAt(p.Field, p.prog, v, step, csum)
	}
	if err != nil {
		return 0, fmt.Errorf("set: %w", err)
	}
	return n, nil
}

// Checksums computes the IPv4, UDP, TCP and ICMP checksums of packet i, or of all packets if i < 0.
func (b *Burst) Checksums(i int) error {
	if err := b.checkPacket(0, max(i, 0)); err != nil {
		return err
	}
	err := b.writes()
	if err == nil {
		err = b.native.Checksums(i)
	}
	if err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	return nil
}

// Count returns the number of packets accepted by sel.
func (b *Burst) Count(sel *Selector) (int, error) {
	if err := b.reads(sel.prog.ReadsPacket()); err != nil {
		return 0, err
	}
	return b.native.Count(sel.prog), nil
}

// Select returns a burst of the packets accepted by sel, which may be empty. It references b's packets; the caller still owns b.
func (b *Burst) Select(sel *Selector) (*Burst, error) {
	if err := b.reads(sel.prog.ReadsPacket()); err != nil {
		return nil, err
	}
	idx := b.home.room(b.N())
	return b.Pick(idx[:b.native.Select(sel.prog, idx)])
}

// Pick returns a burst of the packets with these indices, in that order. Ownership is as for Select.
func (b *Burst) Pick(idx []uint32) (*Burst, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	h, err := b.native.Pick(idx)
	if err != nil {
		return nil, fmt.Errorf("select: %w", err)
	}
	out := new(Burst)
	b.home.hold(out, b.s, h)
	h.View(&out.view)
	if !b.kept {
		out.also, b.picks = b.picks, out
	}
	return out, nil
}
