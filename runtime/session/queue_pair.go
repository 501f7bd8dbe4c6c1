package session

import "github.com/daqiri/daqiri-run/native"

// QueuePair is one end of a connection of RDMA that is made by hand.
type QueuePair = native.QueuePair

// QKey is the connection manager's, of datagrams: the default of those who are told another way, too.
const QKey = 0x01234567

// OpenQueuePair makes a queue pair, which waits until Conn.Join tells it its peer: for peers without connection manager.
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

// Join tells a queue pair its peer. The connection is open then, which comes as a Connect item.
func (c *Conn) Join(peer QueuePair) error {
	if err := c.i.s.enter(); err != nil {
		return err
	}
	defer c.i.s.leave()
	return c.i.named(c.i.native.JoinQueuePair(c.id, peer))
}

// QueuePair is our end, as the peer has to know it; ErrNotSupported: the connection manager made it.
func (c *Conn) QueuePair() (QueuePair, error) {
	if err := c.i.s.enter(); err != nil {
		return QueuePair{}, err
	}
	defer c.i.s.leave()
	return c.i.native.QueuePair(c.id)
}
