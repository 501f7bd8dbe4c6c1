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

// CheckGrid checks that all blocks of a grid can run at the same time, as a persistent kernel requires.
func (k Kernel) CheckGrid(what string, grid Grid) error {
	c := grid.c()
	return named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_gn_check_grid(w, k.c, &c, d) })
}

// MaxGNRings is the maximum number of rings of each kind of a GN context; the others are the maxima of semaphores, writers, and
// regions, of the kernel and of its peer each.
const (
	MaxGNRings   = int(C.DQ_GN_RINGS)
	MaxGNSems    = int(C.DQ_GN_SEMS)
	MaxGNWriters = int(C.DQ_GN_WRITERS)
	MaxGNRegions = int(C.DQ_GN_REGIONS)
	MaxGNObjects = int(C.DQ_GN_OBJECTS)
)

// GNObject is an object of a kernel: a transmit ring, perhaps with a receive ring; a receive ring; or buffers. It mirrors dq_gn_object.
type GNObject struct {
	TX, RX       int  // numbers of rings, from 1; both 0: buffers
	MLX5         bool // the kernel writes entries of the transmit ring in mlx5's format
	Region       Region
	Peer         int // of buffers without Region: which of Peers
	Offset       uint64
	Bytes, Count int // of each buffer, and how many
}

func (o GNObject) c() C.dq_gn_object {
	kind := C.GN_OBJECT_TX
	switch {
	case o.TX == 0 && o.RX == 0:
		kind = C.GN_OBJECT_BUFFERS
	case o.TX == 0:
		kind = C.GN_OBJECT_RX
	}
	return C.dq_gn_object{kind: C.uint32_t(kind), tx: C.uint32_t(o.TX), rx: C.uint32_t(o.RX), mlx5: C.bool(o.MLX5), region: o.Region.c, peer: C.uint32_t(o.Peer),
		offset: C.uint64_t(o.Offset), bytes: C.uint32_t(o.Bytes), count: C.uint32_t(o.Count)}
}

// gnOps are the operations of transmit rings by their names in scripts, in the order of gn_op.
var gnOps = []string{"nop", "send", "put", "get", "add", "copy", "file", "cas", "wait"}

var _ = [1]struct{}{}[C.GN_OPS-9] // gnOps is complete

// GNOps returns the operations that a transmit ring may accept.
func GNOps() []string { return gnOps[1:] }

// GNConf configures a GN context; it mirrors dq_gn_conf.
type GNConf struct {
	Name                       string
	Kernel                     Kernel // that Start gets
	GPU                        int
	TX, RX                     []Queue
	TXSlots, RXSlots, SemSlots int
	Ops                        []string
	Regions, Remote            []Region
	Conn                       uint32   // 0: none; else Peers are the regions that its peer lends
	Peers                      []Remote // numbered after all regions
	Writers                    []Stage  // of files
	Objects                    []GNObject
	Sems                       int
	Policy                     Policy
	LimitNS, SilenceNS         int64
	Restarts                   int
	Timers                     bool
	Exits                      bool // an argument is ExitArg
}

// GN is the context of a persistent kernel: its rings to send and receive, and its semaphores.
type GN struct{ c *C.dq_gn }

// OpenGN creates a GN context in an open session, and a stage for each receive ring, to be placed in a pipe of its queue.
func (s *Session) OpenGN(conf GNConf) (GN, []Stage, error) {
	name := cString(conf.Name)
	defer name.free()
	c := C.dq_gn_conf{name: name.c, kernel: conf.Kernel.c, gpu: C.int32_t(conf.GPU), tx_slots: C.uint32_t(conf.TXSlots), rx_slots: C.uint32_t(conf.RXSlots),
		sem_slots: C.uint32_t(conf.SemSlots), n_sems: C.uint32_t(conf.Sems), policy: C.int32_t(conf.Policy), limit_ns: C.uint64_t(conf.LimitNS),
		silence_ns: C.uint64_t(conf.SilenceNS), restarts: C.uint32_t(conf.Restarts), timers: C.bool(conf.Timers), exits: C.bool(conf.Exits),
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
	c.n_objects = C.uint32_t(len(conf.Objects))
	for i, o := range conf.Objects {
		c.objects[i] = o.c()
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

// GNPort is the argument that is replaced by the address of the GN context.
var GNPort = KernelArg{Kind: ArgNumber, Value: uint64(C.DQ_GN_PORT)}

// RegionArg returns the argument with the number of a region in the kernel; false: the context does not have the region.
func (g GN) RegionArg(r Region) (KernelArg, bool) {
	row := C.dq_gn_region(g.c, r.c)
	return KernelArg{Kind: ArgNumber, Value: uint64(uint32(row))}, row >= 0
}

// PeerArg returns the argument with the number of the k-th region that the connection's peer lends.
func (g GN) PeerArg(k int) KernelArg {
	return KernelArg{Kind: ArgNumber, Value: uint64(C.dq_gn_peer(g.c, C.uint32_t(k)))}
}

// ObjectArg returns the argument with the address of object k.
func (g GN) ObjectArg(k int) KernelArg {
	return KernelArg{Kind: ArgNumber, Value: uint64(C.dq_gn_object_at(g.c, C.uint32_t(k)))}
}

// ExitArg returns the argument with the address of the word that becomes 1 when the kernel's waits are ended.
func (g GN) ExitArg() KernelArg {
	return KernelArg{Kind: ArgNumber, Value: uint64(C.dq_gn_abort_at(g.c))}
}

// AddressArg returns the argument with the kernel's address of an offset of a region, given by its number; a peer's memory begins at 0.
func (g GN) AddressArg(number KernelArg, offset uint64) KernelArg {
	base := uint64(C.dq_gn_base(g.c, C.uint32_t(number.Value)))
	return KernelArg{Kind: ArgNumber, Value: base + offset, row: uint32(number.Value) + 1}
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

// Abort ends all waits of the kernel.
func (g GN) Abort() { C.dq_gn_abort(g.c) }

// Ended reports whether the kernel has ended, or was never started; it restarts one that crashed. Control thread.
func (g GN) Ended() bool { return bool(C.dq_gn_ended(g.c)) }

// Kill kills the process of a kernel that does not end; false: it runs in the program's process.
func (g GN) Kill() bool { return bool(C.dq_gn_kill(g.c)) }

// Idle reports whether all posted operations are completed. Any thread.
func (g GN) Idle() bool { return bool(C.dq_gn_idle(g.c)) }

// Unread returns a queue with packets that the kernel sent and that have no reader. The session's own goroutine.
func (g GN) Unread() (q Queue, is bool) {
	q = Queue{C.dq_gn_unread(g.c)}
	return q, q.c != nil
}

// Detach closes the rings, once the kernel has ended.
func (g GN) Detach() { C.dq_gn_detach(g.c) }

// Release drops the caller's reference: it is freed with its session.
func (g GN) Release() { C.dq_gn_release(g.c) }

// GNState is the state of a GN context; it mirrors dq_gn_state.
type GNState struct {
	Posted, Completed, Refused, Received uint64
	SilentNS                             int64 // since the last sign of life of the kernel; -1: none yet
	Broken, Restarted                    int   // broken rings; restarts of the kernel after crashes
	Fault                                string
	ABIDiffers                           bool
}

// State returns the current state. One thread.
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

// TakeItem takes the next item of a semaphore that the kernel produces; false: there is none. One thread per semaphore.
func (g GN) TakeItem(sem int) (first, count uint64, ok bool) {
	var f, n C.uint64_t
	ok = bool(C.dq_gn_sem_take(g.c, C.uint32_t(sem), &f, &n))
	return uint64(f), uint64(n), ok
}

// ReleaseItem returns the oldest taken item to the kernel.
func (g GN) ReleaseItem(sem int) { C.dq_gn_sem_done(g.c, C.uint32_t(sem)) }

// Progress polls the interface's queues and stages once, if no worker does; it returns the amount of work done.
func (i Iface) Progress() (int, error) {
	var work C.uint32_t
	var d C.dq_diag
	err := result("progress", C.dq_iface_progress(i.c, &work, &d), &d)
	return int(work), err
}
