package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
)

// Remote is memory that the peer of a connection lends.
type Remote = native.Remote

// Rights of memory that is lent.
const (
	AccessRead  = native.AccessRead
	AccessWrite = native.AccessWrite
)

// Lease is a region that is lent to the peer of a connection. Safe for concurrent use.
type Lease struct {
	Remote // as the peer is told
	c      *Conn
	region *Region
	native native.Lease
}

// Lend lends a region, which no queue has, to the peer under a name, and tells it, if it is of our kind.
func (c *Conn) Lend(r *Region, as Remote) (*Lease, error) {
	if err := c.i.s.enter(); err != nil {
		return nil, err
	}
	defer c.i.s.leave()
	n, told, err := c.i.native.Lend(c.id, r.native, as)
	if err != nil {
		return nil, err
	}
	return &Lease{told, c, r, n}, nil
}

// Revoke takes the region back: when it returns the peer can't reach it any more. What is under way fails, and the
// connection ends with it.
func (l *Lease) Revoke() error {
	if err := l.c.i.s.enter(); err != nil {
		return nil // with the session
	}
	defer l.c.i.s.leave()
	return l.c.named(l.c.i.native.Revoke(l.native))
}

// Bytes are n bytes of what is lent, from an offset on, as they are now: a copy.
func (l *Lease) Bytes(offset, n int) ([]byte, error) {
	if err := l.c.i.s.enter(); err != nil {
		return nil, err
	}
	defer l.c.i.s.leave()
	p := l.region.native.Bytes(uint64(offset), n)
	if p == nil {
		return nil, invalid("%d bytes at %d: region %s has %d", n, offset, l.region.Name(), l.Remote.Bytes)
	}
	return append([]byte(nil), p...), nil
}

// Put writes bytes into what is lent, from an offset on: for a peer that reads.
func (l *Lease) Put(offset int, data []byte) error {
	if err := l.c.i.s.enter(); err != nil {
		return err
	}
	defer l.c.i.s.leave()
	p := l.region.native.Bytes(uint64(offset), len(data))
	if p == nil {
		return invalid("%d bytes at %d: region %s has %d", len(data), offset, l.region.Name(), l.Remote.Bytes)
	}
	copy(p, data)
	return nil
}

// Lent lists what the peer lends.
func (c *Conn) Lent() ([]Remote, error) {
	if err := c.i.s.enter(); err != nil {
		return nil, err
	}
	defer c.i.s.leave()
	return c.i.native.Lent(c.id), nil
}

// TellLent says what a peer of another kind lends, which can't tell itself.
func (c *Conn) TellLent(r Remote) error {
	if err := c.i.s.enter(); err != nil {
		return err
	}
	defer c.i.s.leave()
	return c.i.native.TellLent(c.id, r)
}

// reach finds n bytes at an offset of what the peer lends under a name, for an access.
func (c *Conn) reach(name string, offset, n uint64, access native.Access) (at native.RMA, err error) {
	if err := c.i.s.enter(); err != nil {
		return at, err
	}
	defer c.i.s.leave()
	r, err := c.i.native.LentNamed(c.id, name)
	switch {
	case err != nil:
		return at, err
	case offset > r.Bytes || n > r.Bytes-offset:
		return at, c.named(invalid("%d bytes at %d are beyond what its peer lends as %q: %d bytes", n, offset, name, r.Bytes))
	case r.Access&access == 0:
		what := map[native.Access]string{AccessRead: "read", AccessWrite: "written"}[access]
		return at, c.named(invalid("what its peer lends as %q may not be %s", name, what))
	}
	return native.RMA{Conn: c.id, Remote: r.Addr + offset, Key: r.Key}, nil
}

// begin begins an operation over a burst of the connection's transmit queue.
func (c *Conn) begin(b *Burst, m native.RMA) (*Op, error) {
	q, err := c.TxQueue()
	if err != nil {
		return nil, err
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	if err := c.i.s.enter(); err != nil {
		return nil, err
	}
	defer c.i.s.leave()
	op, err := q.native.RMABurst(b.native, m)
	if err != nil {
		return nil, err
	}
	return newOp(fmt.Sprintf("connection %d", c.id), op), nil
}

// Write writes the burst's packets without gaps into what the peer lends under a name, from an offset on; with imm the
// peer is told, by a message without bytes. The burst is consumed when the error is nil; ErrNoSpace: the queue is full.
func (c *Conn) Write(b *Burst, name string, offset uint64, imm *uint32) (*Op, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	m, err := c.reach(name, offset, b.Bytes(), AccessWrite)
	if err != nil {
		return nil, err
	}
	m.Kind = native.RMAWrite
	return c.consume(b, m, imm)
}

// Message sends each of the burst's packets as a message; the last has the immediate value, where there is one. Consumed as
// by Write.
func (c *Conn) Message(b *Burst, imm *uint32) (*Op, error) {
	return c.consume(b, native.RMA{Kind: native.RMASend, Conn: c.id}, imm)
}

// Receive gives each of the burst's packets, with its length as room, to the peer's next messages in turn: for queues without
// regions. The task keeps the burst, which has the messages and their lengths once the operation has ended, and until then is
// not to be used.
func (c *Conn) Receive(b *Burst) (*Op, error) {
	return c.begin(b, native.RMA{Kind: native.RMARecv, Conn: c.id})
}

// ReadInto reads as many bytes of what the peer lends as the burst's packets are long. The task keeps the burst as by Receive.
func (c *Conn) ReadInto(b *Burst, name string, offset uint64) (*Op, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	m, err := c.reach(name, offset, b.Bytes(), AccessRead)
	if err != nil {
		return nil, err
	}
	m.Kind = native.RMARead
	return c.begin(b, m)
}

// AllocIn makes a burst of n packets in a region, for operations of the connection alone. As Queue.Alloc.
func (c *Conn) AllocIn(l *Leases, r *Region, n int) (*Burst, error) {
	q, err := c.TxQueue()
	if err != nil {
		return nil, err
	}
	if err := c.i.s.enter(); err != nil {
		return nil, err
	}
	defer c.i.s.leave()
	h, err := q.native.AllocIn(r.native, n)
	if err != nil {
		return nil, within("region "+r.Name(), err)
	}
	b := new(Burst)
	l.hold(b, c.i.s, h)
	h.View(&b.view)
	return b, nil
}

// Moved makes b the caller's own again, under no other name, and returns what tells those who ask for the old one that it
// has gone.
func (b *Burst) Moved(how string) *Burst { return &Burst{s: b.s, gone: how} }

// Received has the burst know the lengths that an operation wrote.
func (b *Burst) Received() error {
	if err := b.Check(); err != nil {
		return err
	}
	b.native.Received()
	b.native.View(&b.view)
	return nil
}

func (c *Conn) consume(b *Burst, m native.RMA, imm *uint32) (*Op, error) {
	if imm != nil {
		m.Imm, m.HasImm = *imm, true
	}
	op, err := c.begin(b, m)
	if err == nil {
		b.drop("was given to its connection")
	}
	return op, err
}

// Read reads n bytes of what the peer lends into packets of the connection's transmit queue, which the task holds: they
// have the bytes once the operation has ended without a failure.
func (c *Conn) Read(l *Leases, name string, offset, n uint64) (*Op, *Burst, error) {
	m, err := c.reach(name, offset, n, AccessRead)
	if err != nil {
		return nil, nil, err
	}
	m.Kind = native.RMARead
	return c.fetch(l, n, m)
}

// FetchAdd adds v to 8 bytes of what the peer lends; the burst gets what was there before, in this machine's order.
func (c *Conn) FetchAdd(l *Leases, name string, offset, v uint64) (*Op, *Burst, error) {
	m, err := c.reach(name, offset, 8, AccessWrite)
	m.Kind, m.Operand = native.RMAFetchAdd, v
	if err != nil {
		return nil, nil, err
	}
	return c.fetch(l, 8, m)
}

// CompareSwap puts v where `was` is in 8 bytes of what the peer lends; the burst gets what was there before.
func (c *Conn) CompareSwap(l *Leases, name string, offset, was, v uint64) (*Op, *Burst, error) {
	m, err := c.reach(name, offset, 8, AccessWrite)
	m.Kind, m.Operand, m.Compare = native.RMACompareSwap, v, was
	if err != nil {
		return nil, nil, err
	}
	return c.fetch(l, 8, m)
}

// fetch begins an operation that fills n bytes of a new burst.
func (c *Conn) fetch(l *Leases, n uint64, m native.RMA) (*Op, *Burst, error) {
	q, err := c.TxQueue()
	if err != nil {
		return nil, nil, err
	}
	if len(q.spec.MemoryRegions) != 1 {
		return nil, nil, q.named(invalid("it needs one memory region, for what is read"))
	}
	size := uint64(c.i.s.cfg.Region(q.spec.MemoryRegions[0]).BufSize)
	packets := max((n+size-1)/size, 1)
	if packets > uint64(q.BatchSize()) || n == 0 {
		return nil, nil, q.named(invalid("%d bytes: it reads 1 to %d at once (batch_size times buf_size)", n, size*uint64(q.BatchSize())))
	}
	b, err := q.Alloc(l, int(packets))
	if err != nil {
		return nil, nil, err
	}
	for k := range int(packets) {
		if err := b.SetLen(0, k, int(min(size, n-uint64(k)*size))); err != nil {
			return nil, nil, err
		}
	}
	op, err := c.begin(b, m)
	if err != nil {
		_ = b.Free()
		return nil, nil, err
	}
	return op, b, nil
}

// Imm is the immediate value that packet i came with; false: it came without.
func (b *Burst) Imm(i int) (uint32, bool) { return b.native.Imm(i) }
