package baseline

/*
#include <unistd.h>
#include "baseline.h"
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// Send configures a sender: numbered datagrams of Size bytes to a numeric IPv4 address, Segments of them in one message where that is
// above 1, at PPS a second unless that is 0.
type Send struct {
	Host           string
	Port           int
	Size, Segments int
	PPS            float64
	For            time.Duration
	EndMarks       bool
}

// RunSend sends for conf.For.
func RunSend(conf Send) (Figures, error) {
	c := C.dq_baseline_send{port: C.uint16_t(conf.Port), size: C.uint32_t(conf.Size), segments: C.uint32_t(conf.Segments),
		pps: C.double(conf.PPS), seconds: C.double(conf.For.Seconds()), end_marks: flag(conf.EndMarks)}
	if !put(c.host[:], conf.Host) {
		return Figures{}, fmt.Errorf("baseline sender: %q is not a valid address (expected a numeric IPv4 address)", conf.Host)
	}
	var f C.dq_baseline_figures
	var d C.dq_diag
	err := result("baseline sender", C.dq_baseline_udp_send(&c, &f, &d), &d)
	return figures(&f), err
}

// Recv configures a receiver: datagrams of at most Size bytes at a numeric IPv4 address.
type Recv struct {
	Host   string
	Size   int
	GRO    bool
	Stamps bool // of the kernel, for Latency
}

// Receiver is a bound socket. Receive and Latency block and may be called once each; Close must be the last call.
type Receiver struct {
	fd   C.int
	conf C.dq_baseline_recv
	port C.uint16_t
}

// Listen binds a receiver to a free port.
func Listen(conf Recv) (*Receiver, error) {
	r := &Receiver{conf: C.dq_baseline_recv{size: C.uint32_t(conf.Size), gro: flag(conf.GRO), stamps: flag(conf.Stamps)}}
	if !put(r.conf.host[:], conf.Host) {
		return nil, fmt.Errorf("baseline receiver: %q is not a valid address (expected a numeric IPv4 address)", conf.Host)
	}
	var d C.dq_diag
	if err := result("baseline receiver", C.dq_baseline_udp_open(&r.conf, &r.fd, &r.port, &d), &d); err != nil {
		return nil, err
	}
	return r, nil
}

// Port returns the port that the receiver is bound to.
func (r *Receiver) Port() int { return int(r.port) }

// Receive receives until a sender's end mark, or until no datagram arrived for idle after the first one.
func (r *Receiver) Receive(idle time.Duration) (Figures, error) {
	var f C.dq_baseline_figures
	var d C.dq_diag
	err := result("baseline receiver", C.dq_baseline_udp_recv(r.fd, &r.conf, C.double(idle.Seconds()), &f, &d), &d)
	return figures(&f), err
}

// Latency receives n datagrams, or fewer when none arrives for idle, and returns for each the ns between the kernel's timestamp and
// this program.
func (r *Receiver) Latency(n int, idle time.Duration) ([]int64, error) {
	ns := make([]int64, n)
	var got C.uint32_t
	var d C.dq_diag
	rc := C.dq_baseline_udp_latency(r.fd, C.uint32_t(n), C.double(idle.Seconds()), (*C.int64_t)(unsafe.SliceData(ns)), &got, &d)
	return ns[:got], result("baseline receiver", rc, &d)
}

// Close closes the socket.
func (r *Receiver) Close() { C.close(r.fd) }
