package session

import "github.com/daqiri/daqiri-run/native"

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
