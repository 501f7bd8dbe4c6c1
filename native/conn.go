package native

/*
#include "dq.h"
*/
import "C"

import "unsafe"

// ConnInfo describes a connection.
type ConnInfo struct {
	Local, Peer string // address:port
	Open        bool
	Private     string // data that the peer passed when it connected or accepted (roce://)
	Rx, Tx      Queue
}

// Connecting specifies a connection to open.
type Connecting struct {
	Address string // host:port
	Local   string // local address; empty: default
	Private string // data passed to the peer with the request, only for roce://
}

// Events delivers connect and disconnect events of the interface to w with this tag.
func (i Iface) Events(w *Waiter, tag uint64) error {
	var d C.dq_diag
	return result("events", C.dq_iface_events(i.c, w.c, C.uint64_t(tag), &d), &d)
}

// Connect starts a connection; an event reports the outcome.
func (i Iface) Connect(to Connecting) (conn uint32, err error) {
	a, l, private := cString(to.Address), cString(to.Local), cString(to.Private)
	defer a.free()
	defer l.free()
	defer private.free()
	asked := C.dq_connect{address: a.c, local: l.c, private_data: unsafe.Pointer(private.c), private_bytes: C.uint32_t(len(to.Private))}
	var id C.uint32_t
	var d C.dq_diag
	err = result("connection to "+to.Address, C.dq_conn_open(i.c, &asked, &id, &d), &d)
	return uint32(id), err
}

// Disconnect closes a connection.
func (i Iface) Disconnect(conn uint32) error {
	return status(C.dq_conn_close(i.c, C.uint32_t(conn)))
}

// Conn returns the state of a connection.
func (i Iface) Conn(conn uint32) (ConnInfo, error) {
	var c C.dq_conn_info
	if err := status(C.dq_conn_read(i.c, C.uint32_t(conn), &c)); err != nil {
		return ConnInfo{}, err
	}
	return ConnInfo{
		Local:   text(c.local[:]),
		Peer:    text(c.peer[:]),
		Open:    c.open != 0,
		Private: C.GoStringN((*C.char)(unsafe.Pointer(&c.private_data[0])), C.int(c.private_bytes)),
		Rx:      Queue{c.rx},
		Tx:      Queue{c.tx},
	}, nil
}

// SetSockopt calls setsockopt(2) on a connection, or with 0 on the interface's own socket.
func (i Iface) SetSockopt(conn uint32, level, option int, value []byte) error {
	return status(C.dq_conn_setsockopt(i.c, C.uint32_t(conn), C.int(level), C.int(option),
		unsafe.Pointer(first(value)), C.uint32_t(len(value))))
}
