package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import "time"

// Session is an engine session: see dq_session.h. Close must be the last call.
type Session struct {
	c      *C.dq_session
	xdp    []xdpIface
	steers []*steering
}

// Wire configures the simulated wire between a session's loop interfaces. Impairments are probabilities per packet; a rate of 0
// is unlimited.
type Wire struct {
	Loss, Dup, Reorder, Corrupt float64
	DelayNS                     int64
	RateBPS                     uint64
}

// SessionConf configures a session.
type SessionConf struct {
	Virtual                      bool  // no threads; time advances by Advance
	Seed                         int64 // of the wire's impairments
	StartNS                      int64 // time at the start, ns since the epoch; real clock, 0: now
	MonoNS                       int64 // real clock: CLOCK_MONOTONIC at StartNS; 0: now
	RxMetaBuffers, TxMetaBuffers int   // burst descriptors of each queue
	Wire                         Wire
}

// NewSession creates an empty session.
func NewSession(conf SessionConf) (*Session, error) {
	c := C.dq_session_conf{
		virtual_clock:   flag(conf.Virtual),
		seed:            C.uint64_t(conf.Seed),
		start_ns:        C.int64_t(conf.StartNS),
		mono_ns:         C.int64_t(conf.MonoNS),
		rx_meta_buffers: C.uint32_t(conf.RxMetaBuffers),
		tx_meta_buffers: C.uint32_t(conf.TxMetaBuffers),
		wire: C.dq_wire_conf{
			loss:     C.double(conf.Wire.Loss),
			dup:      C.double(conf.Wire.Dup),
			reorder:  C.double(conf.Wire.Reorder),
			corrupt:  C.double(conf.Wire.Corrupt),
			delay_ns: C.int64_t(conf.Wire.DelayNS),
			rate_bps: C.uint64_t(conf.Wire.RateBPS),
		},
	}
	var d C.dq_diag
	s := &Session{}
	if err := result("session", C.dq_session_new(&c, &s.c, &d), &d); err != nil {
		return nil, err
	}
	return s, nil
}

// Open allocates the arena and opens the engines. It may resolve host names, so it blocks.
func (s *Session) Open() error {
	for _, i := range s.xdp {
		if steer := i.steer(); steer != nil {
			s.steers = append(s.steers, steer)
		}
	}
	var d C.dq_diag
	return result("open", C.dq_session_open(s.c, &d), &d)
}

// Start starts workers and writers.
func (s *Session) Start() error {
	var d C.dq_diag
	return result("start", C.dq_session_start(s.c, &d), &d)
}

// Quiesced returns the session time at which receiving had ended and the last packet had left; 0 before Stop.
func (s *Session) Quiesced() int64 { return int64(C.dq_session_quiesced(s.c)) }

// Stop ends generation, sends queued packets for at most drain (of the first call), and ends receiving, at one point in time for
// all queues. It returns the number of packets that wait for tasks: serve the taps and call it again until it returns 0. No task
// may be waiting on a direct queue of the session.
func (s *Session) Stop(drain time.Duration) uint64 {
	return uint64(C.dq_session_stop(s.c, C.int64_t(drain.Nanoseconds())))
}

// Finish drops waiting packets and ends the writers, which close their files. It blocks.
func (s *Session) Finish() { C.dq_session_finish(s.c) }

// Failure returns the first queue that a device failed, and the reason; empty: none.
func (s *Session) Failure() (queue, why string) {
	why = read(func(buf *C.char, size C.size_t) {
		if name := C.dq_session_failure(s.c, buf, size); name != nil {
			queue = C.GoString(name)
		}
	})
	return queue, why
}

// Close frees everything and returns the number of packet buffers that were not in their
// pools. A second call returns 0.
func (s *Session) Close() uint64 {
	leaked := uint64(C.dq_session_close(s.c))
	s.c = nil
	for _, steer := range s.steers {
		steer.close()
	}
	s.steers = nil
	return leaked
}

// Now returns the session's clock in ns since the epoch. Any thread.
func (s *Session) Now() int64 { return int64(C.dq_now(s.c)) }

// StartTime returns the session's clock at its creation. Any thread.
func (s *Session) StartTime() int64 { return int64(C.dq_start_ns(s.c)) }

// Step polls everything once (virtual clock) and returns how many objects made progress.
func (s *Session) Step() int { return int(C.dq_step(s.c)) }

// NextTime returns the time of the next event (virtual clock); math.MaxInt64: none.
func (s *Session) NextTime() int64 { return int64(C.dq_next_time(s.c)) }

// Advance advances a virtual clock to t.
func (s *Session) Advance(t int64) { C.dq_advance(s.c, C.int64_t(t)) }

// Report returns lines on what runs in hardware or software, on copies, and on the reasons.
func (s *Session) Report() []string {
	var lines []string
	for more := true; more; {
		line := read(func(buf *C.char, size C.size_t) {
			more = bool(C.dq_session_report(s.c, C.uint32_t(len(lines)), buf, size))
		})
		if more {
			lines = append(lines, line)
		}
	}
	return lines
}
