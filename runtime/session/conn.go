package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
)

// Conn is one connection of a socket interface: a TCP connection or a UDP peer.
type Conn struct {
	i  *Interface
	id uint32
}

// ConnInfo describes a connection.
type ConnInfo struct {
	Local, Peer string // address:port
	Open        bool
	Private     string // private data that the peer sent when it connected or accepted (roce://)
}

// Connecting is the destination of Connect.
type Connecting = native.Connecting

// Connect starts to connect. The result arrives as a Connect item at the task that listens.
func (i *Interface) Connect(to Connecting) (*Conn, error) {
	if err := i.s.enter(); err != nil {
		return nil, err
	}
	defer i.s.leave()
	id, err := i.native.Connect(to)
	if err != nil {
		return nil, i.named(err)
	}
	return &Conn{i, id}, nil
}

// Conn returns the connection with an id, as found in items and bursts.
func (i *Interface) Conn(id uint32) *Conn { return &Conn{i, id} }

// ID returns the connection's id, unique in its interface.
func (c *Conn) ID() uint32 { return c.id }

// Interface returns the interface of the connection.
func (c *Conn) Interface() *Interface { return c.i }

func (c *Conn) named(err error) error {
	if err == ErrInvalid { // unknown to the engine
		err = invalid("it is closed")
	}
	return c.i.named(within(fmt.Sprintf("connection %d", c.id), err))
}

// Info returns the state of the connection.
func (c *Conn) Info() (ConnInfo, error) {
	if err := c.i.s.enter(); err != nil {
		return ConnInfo{}, err
	}
	defer c.i.s.leave()
	info, err := c.i.native.Conn(c.id)
	return ConnInfo{info.Local, info.Peer, info.Open, info.Private}, c.named(err)
}

// RxQueue returns the queue that receives from the connection.
func (c *Conn) RxQueue() (*Queue, error) { return c.queue(true) }

// TxQueue returns the queue that sends on the connection.
func (c *Conn) TxQueue() (*Queue, error) { return c.queue(false) }

func (c *Conn) queue(rx bool) (*Queue, error) {
	if err := c.i.s.enter(); err != nil {
		return nil, err
	}
	defer c.i.s.leave()
	info, err := c.i.native.Conn(c.id)
	if err != nil {
		return nil, c.named(err)
	}
	n := info.Tx
	if rx {
		n = info.Rx
	}
	q := c.i.s.queueOf(n)
	if q == nil {
		return nil, c.named(ErrNotSupported)
	}
	return q, nil
}

// Send queues the burst for sending on this connection, like Queue.Send.
func (c *Conn) Send(b *Burst) error {
	q, err := c.TxQueue()
	if err != nil {
		return err
	}
	if err := q.mayTake(b); err != nil {
		return err
	}
	if err := b.redirect(c); err != nil {
		return c.named(err)
	}
	return q.Send(b)
}

// Close closes the connection; the task that listens gets a Disconnect item.
func (c *Conn) Close() error {
	if err := c.i.s.enter(); err != nil {
		return err
	}
	defer c.i.s.leave()
	return c.named(c.i.native.Disconnect(c.id))
}

// SetSockopt calls setsockopt(2) on the connection.
func (c *Conn) SetSockopt(level, option int, value []byte) error {
	if err := c.i.s.enter(); err != nil {
		return err
	}
	defer c.i.s.leave()
	return c.named(c.i.native.SetSockopt(c.id, level, option, value))
}

// QueuePair is one end of a manually established RDMA connection.
type QueuePair = native.QueuePair

// QKey is the connection manager's key of datagrams, which is also the default for manual queue pairs.
const QKey = 0x01234567

// OpenQueuePair creates a queue pair for a peer without connection manager. It is idle until Conn.Join.
func (i *Interface) OpenQueuePair() (*Conn, error) {
	if err := i.s.enter(); err != nil {
		return nil, err
	}
	defer i.s.leave()
	id, err := i.native.OpenQueuePair()
	if err != nil {
		return nil, i.named(err)
	}
	return &Conn{i, id}, nil
}

// Join connects a queue pair to its peer. The connection is then open, which is reported by a Connect item.
func (c *Conn) Join(peer QueuePair) error {
	if err := c.i.s.enter(); err != nil {
		return err
	}
	defer c.i.s.leave()
	return c.i.named(c.i.native.JoinQueuePair(c.id, peer))
}

// QueuePair returns the local end, for the peer; ErrNotSupported for a connection of the connection manager.
func (c *Conn) QueuePair() (QueuePair, error) {
	if err := c.i.s.enter(); err != nil {
		return QueuePair{}, err
	}
	defer c.i.s.leave()
	return c.i.native.QueuePair(c.id)
}
