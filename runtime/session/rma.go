package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
)

// Remote is memory lent by the peer of a connection.
type Remote = native.Remote

// Access rights of lent memory.
const (
	AccessRead  = native.AccessRead
	AccessWrite = native.AccessWrite
)

// Lease is a region lent to the peer of a connection. It is safe for concurrent use.
type Lease struct {
	Remote // description for the peer
	c      *Conn
	region *Region
	native native.Lease
}

// Lend lends a region that no queue uses to the peer under a name, and notifies the peer if it is of the same kind.
func (c *Conn) Lend(r *Region, as Remote) (*Lease, error) {
	if err := c.i.s.enter(); err != nil {
		return nil, err
	}
	defer c.i.s.leave()
	n, remote, err := c.i.native.Lend(c.id, r.native, as)
	if err != nil {
		return nil, err
	}
	return &Lease{remote, c, r, n}, nil
}

// Revoke ends the lease: when it returns the peer can no longer access the region. Operations in progress fail, and the connection ends with them.
func (l *Lease) Revoke() error {
	if err := l.c.i.s.enter(); err != nil {
		return nil // the session's end revokes it
	}
	defer l.c.i.s.leave()
	return l.c.named(l.c.i.native.Revoke(l.native))
}

// Bytes returns a copy of n bytes of the lent region from an offset on.
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

// Put writes bytes to the lent region from an offset on, for a peer that reads.
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

// Lent returns the memory lent by the peer.
func (c *Conn) Lent() ([]Remote, error) {
	if err := c.i.s.enter(); err != nil {
		return nil, err
	}
	defer c.i.s.leave()
	return c.i.native.Lent(c.id), nil
}

// DeclareLent declares memory lent by a peer of another kind, which does not announce it.
func (c *Conn) DeclareLent(r Remote) error {
	if err := c.i.s.enter(); err != nil {
		return err
	}
	defer c.i.s.leave()
	return c.i.native.DeclareLent(c.id, r)
}

// reach returns an operation on n bytes at an offset of named memory of the peer, after checking the access.
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

// begin starts an operation on a burst of the connection's transmit queue.
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

// Write writes the burst's packets back to back to named memory of the peer from an offset on; imm is sent in an additional message without bytes. On
// success the burst is consumed. It returns ErrNoSpace if the queue is full.
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

// Message sends each of the burst's packets as a message, the last one with the immediate value if given. The burst is consumed as by Write.
func (c *Conn) Message(b *Burst, imm *uint32) (*Op, error) {
	return c.consume(b, native.RMA{Kind: native.RMASend, Conn: c.id}, imm)
}

// Receive posts each of the burst's packets, with its length as capacity, for the peer's next messages in order, for queues without regions. The task
// still owns the burst, which holds the messages and their lengths after completion and must not be used before.
func (c *Conn) Receive(b *Burst) (*Op, error) {
	return c.begin(b, native.RMA{Kind: native.RMARecv, Conn: c.id})
}

// ReadInto reads from the peer's memory into the burst's packets, as many bytes as they are long. Ownership is that of Receive.
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

// AllocIn allocates a burst of n packets in a region, for operations of the connection only. It is otherwise like Queue.Alloc.
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

// Moved returns a burst that replaces b in references that must fail with the given reason; the caller still owns b.
func (b *Burst) Moved(how string) *Burst { return &Burst{s: b.s, gone: how} }

// Received updates the burst's lengths after an operation has written them.
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

// Read reads n bytes of the peer's memory into packets of the connection's transmit queue, which the task owns. They hold the data after successful
// completion.
func (c *Conn) Read(l *Leases, name string, offset, n uint64) (*Op, *Burst, error) {
	m, err := c.reach(name, offset, n, AccessRead)
	if err != nil {
		return nil, nil, err
	}
	m.Kind = native.RMARead
	return c.fetch(l, n, m)
}

// FetchAdd adds v to 8 bytes of the peer's memory; the burst receives the previous value in host byte order.
func (c *Conn) FetchAdd(l *Leases, name string, offset, v uint64) (*Op, *Burst, error) {
	m, err := c.reach(name, offset, 8, AccessWrite)
	m.Kind, m.Operand = native.RMAFetchAdd, v
	if err != nil {
		return nil, nil, err
	}
	return c.fetch(l, 8, m)
}

// CompareSwap replaces `was` by v in 8 bytes of the peer's memory; the burst receives the previous value.
func (c *Conn) CompareSwap(l *Leases, name string, offset, was, v uint64) (*Op, *Burst, error) {
	m, err := c.reach(name, offset, 8, AccessWrite)
	m.Kind, m.Operand, m.Compare = native.RMACompareSwap, v, was
	if err != nil {
		return nil, nil, err
	}
	return c.fetch(l, 8, m)
}

// fetch starts an operation that writes n bytes to a new burst.
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

// Imm returns the immediate value of packet i, or false if it has none.
func (b *Burst) Imm(i int) (uint32, bool) { return b.native.Imm(i) }
