package native

/*
#include "dq.h"
#include "gpunetio/device/gn_check.h"
*/
import "C"

import (
	"runtime"
	"slices"
)

// CheckGrid says whether all blocks of a grid run at the same time, as a persistent kernel's have to.
func (k Kernel) CheckGrid(what string, grid Grid) error {
	c := grid.c()
	return named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_gn_check_grid(w, k.c, &c, d) })
}

// MaxGNRings is how many rings of a kind a port has at most; the others say how many semaphores, writers and regions, of the kernel
// and of its peer each.
const (
	MaxGNRings   = int(C.DQ_GN_RINGS)
	MaxGNSems    = int(C.DQ_GN_SEMS)
	MaxGNWriters = int(C.DQ_GN_WRITERS)
	MaxGNRegions = int(C.DQ_GN_REGIONS)
)

// gnOps are the operations of transmit rings by their names in scripts, in the order of gn_op.
var gnOps = []string{"nop", "send", "put", "get", "add", "copy", "file"}

var _ = [1]struct{}{}[C.GN_OPS-7] // gnOps has them all

// GNOps are the operations that a transmit ring may take.
func GNOps() []string { return gnOps[1:] }

// GNConf says what a port has; it mirrors dq_gn_conf.
type GNConf struct {
	Name                       string
	GPU                        int
	TX, RX                     []Queue
	TXSlots, RXSlots, SemSlots int
	Ops                        []string
	Regions, Remote            []Region
	Conn                       uint32   // 0: none; else Peers are what its peer lends
	Peers                      []Remote // behind all regions
	Writers                    []Stage  // of files
	Sems                       int
	Policy                     Policy
	LimitNS, SilenceNS         int64
	Restarts                   int
	Timers                     bool
}

// GN is a port: what a persistent kernel has to send, receive and signal with.
type GN struct{ c *C.dq_gn }

// OpenGN makes a port in an open session, and a stage for each receive ring, which belongs into a pipe of its queue.
func (s *Session) OpenGN(conf GNConf) (GN, []Stage, error) {
	name := cString(conf.Name)
	defer name.free()
	c := C.dq_gn_conf{name: name.c, gpu: C.int32_t(conf.GPU), tx_slots: C.uint32_t(conf.TXSlots), rx_slots: C.uint32_t(conf.RXSlots),
		sem_slots: C.uint32_t(conf.SemSlots), n_sems: C.uint32_t(conf.Sems), policy: C.int32_t(conf.Policy), limit_ns: C.uint64_t(conf.LimitNS),
		silence_ns: C.uint64_t(conf.SilenceNS), restarts: C.uint32_t(conf.Restarts), timers: C.bool(conf.Timers),
		n_tx: C.uint32_t(len(conf.TX)), n_rx: C.uint32_t(len(conf.RX)), n_regions: C.uint32_t(len(conf.Regions)), n_remote: C.uint32_t(len(conf.Remote))}
	for i, q := range conf.TX {
		c.tx[i] = q.c
	}
	for i, q := range conf.RX {
		c.rx[i] = q.c
	}
	for i, r := range conf.Regions {
		c.regions[i] = r.c
	}
	for i, r := range conf.Remote {
		c.remote[i] = r.c
	}
	c.conn, c.n_peers = C.uint32_t(conf.Conn), C.uint32_t(len(conf.Peers))
	for i, r := range conf.Peers {
		c.peers[i] = C.dq_remote{addr: C.uint64_t(r.Addr), bytes: C.uint64_t(r.Bytes), key: C.uint64_t(r.Key), access: C.uint32_t(r.Access)}
	}
	c.n_writers = C.uint32_t(len(conf.Writers))
	for i, w := range conf.Writers {
		c.writers[i] = w.c
	}
	for _, op := range conf.Ops {
		c.ops |= 1 << slices.Index(gnOps, op)
	}
	var g GN
	var rings [MaxGNRings]*C.dq_stage
	var d C.dq_diag
	if err := result("kernel "+conf.Name, C.dq_gn_open(s.c, &c, &g.c, &rings[0], &d), &d); err != nil {
		return GN{}, nil, err
	}
	stages := make([]Stage, len(conf.RX))
	for i := range stages {
		stages[i] = Stage{rings[i]}
	}
	return g, stages, nil
}

// GNPort is the argument that becomes the port's address.
var GNPort = KernelArg{Kind: ArgNumber, Value: uint64(C.DQ_GN_PORT)}

// RegionArg is the argument that is the number that the kernel knows a region by; false: it was not given.
func (g GN) RegionArg(r Region) (KernelArg, bool) {
	row := C.dq_gn_region(g.c, r.c)
	return KernelArg{Kind: ArgNumber, Value: uint64(uint32(row))}, row >= 0
}

// PeerArg is the same of the k-th of what the connection's peer lends.
func (g GN) PeerArg(k int) KernelArg {
	return KernelArg{Kind: ArgNumber, Value: uint64(C.dq_gn_peer(g.c, C.uint32_t(k)))}
}

// Start starts the kernel; the operation, of one part, ends with it.
func (g GN) Start(k Kernel, grid Grid, args []KernelArg) (Op, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var op Op
	var d C.dq_diag
	c := grid.c()
	return op, result("start", C.dq_gn_start(g.c, k.c, &c, kernelArgs(args, &pin), C.uint32_t(len(args)), &op.c, &d), &d)
}

// Abort ends every wait of the kernel.
func (g GN) Abort() { C.dq_gn_abort(g.c) }

// Ended reports whether the kernel has ended, or never began; one that died is started anew by it. Control thread.
func (g GN) Ended() bool { return bool(C.dq_gn_ended(g.c)) }

// Kill ends a kernel that doesn't, soon; false: it runs in the program's process.
func (g GN) Kill() bool { return bool(C.dq_gn_kill(g.c)) }

// Idle reports whether all that the kernel has posted is done. Any thread.
func (g GN) Idle() bool { return bool(C.dq_gn_idle(g.c)) }

// Unread is the queue that holds what the kernel sent, where nothing reads it and nothing else has it. The session's own goroutine.
func (g GN) Unread() (q Queue, is bool) {
	q = Queue{C.dq_gn_unread(g.c)}
	return q, q.c != nil
}

// Detach ends the rings, once the kernel has ended.
func (g GN) Detach() { C.dq_gn_detach(g.c) }

// Release lets go of it: it goes with its session.
func (g GN) Release() { C.dq_gn_release(g.c) }

// GNState is what is known of a port; it mirrors dq_gn_state.
type GNState struct {
	Posted, Completed, Refused, Received uint64
	SilentNS                             int64 // since the kernel was last heard of; -1: it never was
	Broken, Restarted                    int   // rings; how often the kernel died and was started anew
	Fault                                string
	ABIDiffers                           bool
}

// State reads it. One thread.
func (g GN) State() GNState {
	var c C.dq_gn_state
	C.dq_gn_read(g.c, &c)
	st := GNState{Posted: uint64(c.posted), Completed: uint64(c.completed), Refused: uint64(c.dropped), Received: uint64(c.received),
		SilentNS: int64(c.silent_ns), Broken: int(c.broken), Restarted: int(c.restarted), ABIDiffers: c.abi_differs != 0}
	if c.fault != 0 {
		st.Fault = C.GoString(C.dq_gn_fault_name(c.fault))
	}
	return st
}

// TakeItem takes the next item of a semaphore that the kernel produces; false: there is none. One thread a semaphore.
func (g GN) TakeItem(sem int) (first, count uint64, ok bool) {
	var f, n C.uint64_t
	ok = bool(C.dq_gn_sem_take(g.c, C.uint32_t(sem), &f, &n))
	return uint64(f), uint64(n), ok
}

// GiveItem gives the oldest item that was taken back.
func (g GN) GiveItem(sem int) { C.dq_gn_sem_done(g.c, C.uint32_t(sem)) }

// Progress polls the interface's queues and stages once, where no worker does: how much was done.
func (i Iface) Progress() (int, error) {
	var work C.uint32_t
	var d C.dq_diag
	err := result("progress", C.dq_iface_progress(i.c, &work, &d), &d)
	return int(work), err
}
