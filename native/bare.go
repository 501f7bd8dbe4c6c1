package native

/*
#include <unistd.h>
#include "yardstick/bare.h"
#include "yardstick/bare_pace.h"
*/
import "C"

import "time"

// BareFigures is what a bare loop did: see dq_bare_figures in bare.h.
type BareFigures struct {
	Packets, Bytes, Missing uint64
	Seconds, CPUSeconds     float64
	BufferBytes             int
}

// BareSend says what a bare sender sends: numbered datagrams of Size bytes to a numeric IPv4 address, Segments of
// them in one message where that is above 1, at PPS a second unless that is 0.
type BareSend struct {
	Host           string
	Port           int
	Size, Segments int
	PPS            float64
	For            time.Duration
	EndMarks       bool
}

// BareRecv says what a bare receiver receives: datagrams of at most Size bytes at a numeric IPv4 address.
type BareRecv struct {
	Host   string
	Size   int
	GRO    bool
	Stamps bool // of the kernel, for Latency
}

// BareLoop says what the bare loop over packet memory does: see dq_bare_loop_run.
type BareLoop struct {
	Buffers, Stride, Batch, Bytes, Port int
	Copy                                bool
	For                                 time.Duration
}

func bareFigures(f *C.dq_bare_figures) BareFigures {
	return BareFigures{uint64(f.packets), uint64(f.bytes), uint64(f.missing), float64(f.seconds), float64(f.cpu_seconds),
		int(f.buffer_bytes)}
}

// RunBareLoop blocks for conf.For.
func RunBareLoop(conf BareLoop) (BareFigures, error) {
	c := C.dq_bare_loop{buffers: C.uint32_t(conf.Buffers), stride: C.uint32_t(conf.Stride), batch: C.uint32_t(conf.Batch),
		len: C.uint32_t(conf.Bytes), port: C.uint16_t(conf.Port), copy: flag(conf.Copy), seconds: C.double(conf.For.Seconds())}
	var f C.dq_bare_figures
	var d C.dq_diag
	err := result("bare loop", C.dq_bare_loop_run(&c, &f, &d), &d)
	return bareFigures(&f), err
}

// RunBareSend blocks for conf.For.
func RunBareSend(conf BareSend) (BareFigures, error) {
	c := C.dq_bare_send{port: C.uint16_t(conf.Port), size: C.uint32_t(conf.Size), segments: C.uint32_t(conf.Segments),
		pps: C.double(conf.PPS), seconds: C.double(conf.For.Seconds()), end_marks: flag(conf.EndMarks)}
	if err := put(c.host[:], "address", conf.Host); err != nil {
		return BareFigures{}, err
	}
	var f C.dq_bare_figures
	var d C.dq_diag
	err := result("bare sender", C.dq_bare_udp_send(&c, &f, &d), &d)
	return bareFigures(&f), err
}

// BarePace says what a paced sender sends: N packets at PPS a second, by the engine's pacer on the loop engine or by a
// bare loop that waits for each time.
type BarePace struct {
	PPS    float64
	N      int
	Engine bool
}

// RunBarePace returns when each packet came, by the receiver's clock in ns. It blocks for the length of the schedule;
// fewer than N came when the receiver gave up.
func RunBarePace(conf BarePace) ([]int64, error) {
	c := C.dq_bare_pace{pps: C.double(conf.PPS), n: C.uint32_t(conf.N), engine: flag(conf.Engine)}
	at := make([]int64, conf.N)
	var got C.uint32_t
	var d C.dq_diag
	err := result("pacing", C.dq_bare_pace_run(&c, (*C.int64_t)(first(at)), &got, &d), &d)
	return at[:got], err
}

// BareReceiver is a bound socket. Receive and Latency block and may be called once each; Close must be the last call.
type BareReceiver struct {
	fd   C.int
	conf C.dq_bare_recv
	// Port is what the socket is bound to.
	Port int
}

// OpenBareReceiver binds a socket to a free port.
func OpenBareReceiver(conf BareRecv) (*BareReceiver, error) {
	r := &BareReceiver{conf: C.dq_bare_recv{size: C.uint32_t(conf.Size), gro: flag(conf.GRO), stamps: flag(conf.Stamps)}}
	if err := put(r.conf.host[:], "address", conf.Host); err != nil {
		return nil, err
	}
	var port C.uint16_t
	var d C.dq_diag
	if err := result("bare receiver", C.dq_bare_udp_open(&r.conf, &r.fd, &port, &d), &d); err != nil {
		return nil, err
	}
	r.Port = int(port)
	return r, nil
}

// Receive receives until a sender's end mark, or until nothing came for idle after the first datagram.
func (r *BareReceiver) Receive(idle time.Duration) (BareFigures, error) {
	var f C.dq_bare_figures
	var d C.dq_diag
	err := result("bare receiver", C.dq_bare_udp_recv(r.fd, &r.conf, C.double(idle.Seconds()), &f, &d), &d)
	return bareFigures(&f), err
}

// Latency receives n datagrams, or fewer when none comes for idle, and returns for each the ns between the kernel's
// stamp and this program.
func (r *BareReceiver) Latency(n int, idle time.Duration) ([]int64, error) {
	ns := make([]int64, n)
	var got C.uint32_t
	var d C.dq_diag
	rc := C.dq_bare_udp_latency(r.fd, C.uint32_t(n), C.double(idle.Seconds()), (*C.int64_t)(first(ns)), &got, &d)
	return ns[:got], result("bare receiver", rc, &d)
}

// Close closes the socket.
func (r *BareReceiver) Close() { C.close(r.fd) }
