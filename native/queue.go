package native

/*
#include "dq.h"
*/
import "C"

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// Limits of the engine.
const (
	MaxSegs   = int(C.DQ_MAX_SEGS)   // segments of a packet
	MaxQueues = int(C.DQ_MAX_QUEUES) // per direction of an interface
	MaxName   = int(C.DQ_NAME_LEN) - 1
)

// QueueConf describes a queue.
type QueueConf struct {
	Name    string
	Tx      bool
	Direct  bool // polled by the task that adopts it
	Core    int  // of the worker; -1: not pinned
	Regions []Region
	Numbers map[string]int64 // the other members of dq_queue_conf, by name; 0 if absent
}

// Queue is a receive or transmit queue; it lives as long as its session. Comparable, so that it can be a map key.
type Queue struct{ c *C.dq_queue }

// c returns the configuration for C; the error names a text that is too long.
func (conf *QueueConf) c() (C.dq_queue_conf, error) {
	c := C.dq_queue_conf{
		dir:       C.DQ_RX,
		direct:    flag(conf.Direct),
		core:      C.int32_t(conf.Core),
		n_regions: C.uint32_t(len(conf.Regions)),
	}
	if conf.Tx {
		c.dir = C.DQ_TX
	}
	for n, r := range conf.Regions {
		c.regions[n] = r.c
	}
	for name, n := range conf.Numbers {
		setNumber(&c, name, n)
	}
	return c, put(c.name[:], "queue", conf.Name)
}

// setNumber sets the member of *c with that name. It panics if there is none, or if n is outside of the member's range.
func setNumber(c *C.dq_queue_conf, name string, n int64) {
	f, ok := reflect.TypeFor[C.dq_queue_conf]().FieldByName(name)
	if !ok {
		panic("native: dq_queue_conf has no member " + name)
	}
	m := reflect.NewAt(f.Type, unsafe.Add(unsafe.Pointer(c), f.Offset)).Elem()
	switch {
	case m.CanInt() && !m.OverflowInt(n):
		m.SetInt(n)
	case m.CanUint() && n >= 0 && !m.OverflowUint(uint64(n)):
		m.SetUint(uint64(n))
	case m.CanFloat():
		m.SetFloat(float64(n))
	default:
		panic(fmt.Sprintf("native: %d does not fit member %s of dq_queue_conf", n, name))
	}
}

// AddQueue adds a queue to an interface before the session's open.
func (i Iface) AddQueue(conf QueueConf) (Queue, error) {
	var q Queue
	c, err := conf.c()
	if err != nil {
		return q, err
	}
	var d C.dq_diag
	return q, result("queue "+conf.Name, C.dq_queue_add(i.c, &c, &q.c, &d), &d)
}

// Alloc allocates a burst of n packets with buffers of the queue's regions and lengths 0.
// Errors: ErrNoBurst, ErrNoPacket, ErrInvalid. Task's thread.
func (q Queue) Alloc(n int) (Burst, error) {
	var b Burst
	return b, status(C.dq_tx_alloc(q.c, C.uint32_t(n), &b.c))
}

// Send queues b; it takes over the caller's reference only if it returns nil. ErrNoSpace if the ring is full.
func (q Queue) Send(b Burst) error { return status(C.dq_tx_send(q.c, b.c)) }

// Pace limits future sends to bits/s and packets/s; 0: no limit.
func (q Queue) Pace(bps, pps float64) { C.dq_tx_pace(q.c, C.double(bps), C.double(pps)) }

// Follow makes packets leave with the gaps of their receive times divided by speed, which must be above 0.
func (q Queue) Follow(speed float64) { C.dq_tx_follow(q.c, C.double(speed)) }

// Stamps returns the source of a receive queue's timestamps: software, kernel, hardware, virtual or file.
func (q Queue) Stamps() string { return C.GoString(C.dq_stamps_name(C.dq_rx_stamps(q.c))) }

// DeviceTimes reports whether the device enforces the send times of a transmit queue's packets.
func (q Queue) DeviceTimes() bool { return C.dq_tx_device_times(q.c) != 0 }

// Waiting returns the number of queued packets of a transmit queue; endless: it sends a template without end.
func (q Queue) Waiting() (n uint64, endless bool) {
	n = uint64(C.dq_tx_waiting(q.c))
	return n, n == math.MaxUint64
}

// Flush discards the packets queued in a receive queue and returns their number.
func (q Queue) Flush() int64 { return int64(C.dq_rx_flush(q.c)) }

// Transmit makes the queue's thread send count packets of t; 0: endless. The zero Template stops the current transmission.
func (q Queue) Transmit(t Template, count uint64) error {
	return status(C.dq_tx_transmit(q.c, t.c, C.uint64_t(count)))
}

// Remaining returns the remaining packets of the current transmission.
func (q Queue) Remaining() (n uint64, endless bool) {
	n = uint64(C.dq_tx_remaining(q.c))
	return n, n == math.MaxUint64
}
