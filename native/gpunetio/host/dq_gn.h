// dq_gn.h: contexts, through which persistent kernels send, receive and signal.
//
// A context is a memory block shared by both sides (gpunetio/device/gn_ring.h): rings, semaphores, regions.
// The proxy consists of a stage per ring, polled by the pollers of the context's queues. Kernels are
// untrusted: everything they write is validated before use.
#ifndef DQ_GN_H
#define DQ_GN_H

#include "compute/dq_compute.h"
#include "pipeline/connection/dq_rma.h"

typedef struct dq_gn dq_gn;

#define DQ_GN_RINGS   16
#define DQ_GN_REGIONS 32
#define DQ_GN_SEMS    64
#define DQ_GN_WRITERS 16
#define DQ_GN_OBJECTS 64
#define DQ_GN_BLOCK   (UINT64_C(1) << 20) // maximum bytes of a context's block

// An object of the kernel (gn_object of gpunetio/device/gn_ring.h): a transmit ring, perhaps with a receive
// ring; a receive ring; or buffers in a region or a peer's memory.
typedef struct dq_gn_object {
    uint32_t kind;     // gn_object_kind
    uint32_t tx, rx;   // numbers of rings, from 1; 0: none
    bool mlx5;         // the kernel writes entries of the transmit ring in mlx5's format (gn_mlx5.h)
    dq_region *region; // of buffers; NULL: the peer's with number `peer`
    uint32_t peer;
    uint64_t offset;       // of the first one
    uint32_t bytes, count; // of each, and how many
} dq_gn_object;

typedef struct dq_gn_conf {
    const char *name;                            // of the kernel, in errors and of the rings' ledger lines
    dq_kernel *kernel;                           // that dq_gn_start gets
    int32_t gpu;                                 // DQ_HOST_GPU: kernel on the host
    dq_queue *tx[DQ_GN_RINGS], *rx[DQ_GN_RINGS]; // of one session; several rings may share a queue
    uint32_t n_tx, n_rx;
    uint32_t tx_slots, rx_slots, sem_slots; // each a power of two
    uint32_t ops;                           // bit k: transmit rings accept gn_op k
    dq_region *regions[DQ_GN_REGIONS];      // accessible to the kernel; numbered after those of the queues,
    uint32_t n_regions;
    dq_region *remote[DQ_GN_REGIONS]; // and before these, which represent a peer's
    uint32_t n_remote, n_sems;
    uint32_t conn;                  // connection of the transmit queues' interface, 0: none; its peer lends
    dq_remote peers[DQ_GN_REGIONS]; // these regions, numbered last
    uint32_t n_peers;
    dq_stage *writers[DQ_GN_WRITERS]; // file writers, by their number in the kernel
    uint32_t n_writers;
    dq_gn_object objects[DQ_GN_OBJECTS];
    uint32_t n_objects;
    int32_t policy;    // dq_policy of full receive rings
    uint64_t limit_ns; // default limit of the kernel's waits
    bool exits;        // the kernel has the word of dq_gn_abort_at as its exit flag
    bool timers;       // record histograms of operation times
    uint64_t first;    // initial ticket of all rings: 0 except in tests
    // for a kernel in its own process
    uint64_t silence_ns; // maximum time without a sign of life (gn_beat, waits) before it is killed
    uint32_t restarts;   // maximum restarts after its death
} dq_gn_conf;

// Creates a context in an open session: rings, with a stage each. out_rx gets the stages of receive rings, to
// be added to a pipe of their queue. INVALID_PARAMETER names ring and kernel. Control thread.
int dq_gn_open(dq_session *s, const dq_gn_conf *conf, dq_gn **out, dq_stage **out_rx, dq_diag *diag);
// Returns the kernel's number of a region (gn_place), or -1 if it has no access.
int dq_gn_region(const dq_gn *g, const dq_region *r);
// Returns the same for the k-th region lent by the connection's peer.
uint32_t dq_gn_peer(const dq_gn *g, uint32_t k);
// Returns the address of an object in the kernel, and of the word that becomes 1 when its waits are ended.
uint64_t dq_gn_object_at(const dq_gn *g, uint32_t k);
uint64_t dq_gn_abort_at(const dq_gn *g);
// Returns the kernel's address of a region by its number; 0 for a peer's.
uint64_t dq_gn_base(const dq_gn *g, uint32_t row);
// Checks that all blocks of the grid can run concurrently, as persistent kernels require.
int dq_gn_check_grid(const char *what, const dq_kernel *k, const dq_grid *grid, dq_diag *diag);
// Starts the kernel, once: args are as for a launch; an argument DQ_ARG_NUMBER with value DQ_GN_PORT becomes
// the context's address. *op: an operation of one part that completes when the kernel ends.
#define DQ_GN_PORT UINT64_MAX
int dq_gn_start(dq_gn *g, dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args, uint32_t n,
                dq_op **op, dq_diag *diag);
// Ends all waits of the kernel, which then ends by itself.
void dq_gn_abort(dq_gn *g);
// Checks for the kernel's end; returns true if it has ended or was never started. Restarts a kernel that
// died. Control thread.
bool dq_gn_ended(dq_gn *g);
// Kills a kernel that does not end. Returns false if it runs in the program's process and can't be killed.
// Control thread.
bool dq_gn_kill(dq_gn *g);
// Whether all operations posted by the kernel have completed. Any thread.
bool dq_gn_idle(dq_gn *g);
// Returns the unread receive queue that holds the kernel's sent packets, if no other reference to them
// exists: the kernel's ring can't complete until the queue gets a consumer. NULL: none. Control thread.
dq_queue *dq_gn_unread(dq_gn *g);
// Detaches the rings after the kernel's end: they accept no more, and release everything.
void dq_gn_detach(dq_gn *g);
// Releases the caller's reference. The context is freed with the session, like its stages.
void dq_gn_release(dq_gn *g);

typedef struct dq_gn_state {
    uint64_t posted, completed, dropped; // transmit tickets, all rings
    uint64_t received;                   // descriptors written
    int64_t silent_ns;                   // since the kernel's last sign of life; -1: none so far
    uint32_t broken;                     // broken rings
    uint32_t restarted;                  // restarts after the kernel's death
    int32_t fault;                       // last gn_fault of a ring; 0: none
    int32_t abi_differs;                 // the kernel was compiled with another version of gn.h
} dq_gn_state;
void dq_gn_read(dq_gn *g, dq_gn_state *out);
const char *dq_gn_fault_name(int32_t fault);

// Takes the next item of a semaphore produced by the kernel; dq_gn_sem_done releases it. Returns false if
// none is ready. One thread per semaphore.
bool dq_gn_sem_take(dq_gn *g, uint32_t sem, uint64_t *first, uint64_t *count);
void dq_gn_sem_done(dq_gn *g, uint32_t sem);

// Polls everything that the pollers of the interface's queues poll, once, on the calling thread; only for
// queues without a worker, otherwise NOT_SUPPORTED. *work: the work done.
int dq_iface_progress(dq_iface *i, uint32_t *work, dq_diag *diag);

#endif
