package native

/*
#include "dq.h"
*/
import "C"

import "net/netip"

// QueuePair is one end of a manual connection, as its other end must know it.
type QueuePair struct {
	QPN, PSN uint32     // its number, and its first packet sequence number: 24 bits each
	QKey     uint32     // of datagrams (UD)
	LID      uint16     // in an InfiniBand subnet; 0: none, as on Ethernet
	GID      netip.Addr // an IPv6 address, or IPv4 mapped into one; invalid: none
	GIDIndex int        // local: index of the GID in the port's table; -1: none
	MTU      int        // maximum bytes of a packet on the wire; 0: unknown
}

// OpenQueuePair creates a queue pair, which waits for its peer, and returns its connection's id.
func (i Iface) OpenQueuePair() (conn uint32, err error) {
	var id C.uint32_t
	var d C.dq_diag
	err = result("queue pair", C.dq_queue_pair_open(i.c, &id, &d), &d)
	return uint32(id), err
}

// JoinQueuePair connects it to its peer; an event reports that the connection is open.
func (i Iface) JoinQueuePair(conn uint32, peer QueuePair) error {
	p := C.dq_queue_pair{
		qpn: C.uint32_t(peer.QPN), psn: C.uint32_t(peer.PSN), qkey: C.uint32_t(peer.QKey), lid: C.uint16_t(peer.LID), gid_index: -1,
		mtu: C.uint32_t(peer.MTU),
	}
	if peer.GID.IsValid() {
		for k, b := range peer.GID.As16() {
			p.gid[k] = C.uint8_t(b)
		}
	}
	var d C.dq_diag
	return result("queue pair", C.dq_queue_pair_join(i.c, C.uint32_t(conn), &p, &d), &d)
}

// QueuePair returns the local end of a manual connection; ErrNotSupported: the connection manager created it.
func (i Iface) QueuePair(conn uint32) (QueuePair, error) {
	var p C.dq_queue_pair
	if err := status(C.dq_queue_pair_read(i.c, C.uint32_t(conn), &p)); err != nil {
		return QueuePair{}, err
	}
	var gid [16]byte
	for k, b := range p.gid {
		gid[k] = byte(b)
	}
	return QueuePair{
		QPN: uint32(p.qpn), PSN: uint32(p.psn), QKey: uint32(p.qkey), LID: uint16(p.lid), GID: netip.AddrFrom16(gid),
		GIDIndex: int(p.gid_index), MTU: int(p.mtu),
	}, nil
}
