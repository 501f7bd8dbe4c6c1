// dq_gn.h: contexts: what a persistent kernel has to send, receive and signal with.
//
// A context is a block of memory that both sides see (gpunetio/device/gn_ring.h): rings, semaphores, regions.
// The proxy is two kinds of stages, one a ring, which the pollers of the context's queues poll. A kernel is
// untrusted: what it wrote is checked before anything is done with it.
#ifndef DQ_GN_H
#define DQ_GN_H

#include "compute/dq_compute.h"
#include "pipeline/dq_rma.h"

typedef struct dq_gn dq_gn;

#define DQ_GN_RINGS   16
#define DQ_GN_REGIONS 32
#define DQ_GN_SEMS    64
#define DQ_GN_WRITERS 16
#define DQ_GN_BLOCK   (UINT64_C(1) << 20) // bytes of a context's block at most

typedef struct dq_gn_conf {
    const char *name;                            // of the kernel, in errors and of the rings' lines
    int32_t gpu;                                 // DQ_HOST_GPU: the host runs the kernel
    dq_queue *tx[DQ_GN_RINGS], *rx[DQ_GN_RINGS]; // of one session; several rings may have one queue
    uint32_t n_tx, n_rx;
    uint32_t tx_slots, rx_slots, sem_slots; // a power of two each
    uint32_t ops;                           // bit k: transmit rings take gn_op k
    dq_region *regions[DQ_GN_REGIONS];      // in the kernel's reach; those of the queues come before them,
    uint32_t n_regions;
    dq_region *remote[DQ_GN_REGIONS]; // and those that stand for a peer's behind them
    uint32_t n_remote, n_sems;
    uint32_t conn;                  // of the transmit queues' interface, 0: none: whose peer lends
    dq_remote peers[DQ_GN_REGIONS]; // this, behind all regions
    uint32_t n_peers;
    dq_stage *writers[DQ_GN_WRITERS]; // of files, by the numbers that the kernel knows them by
    uint32_t n_writers;
    int32_t policy;    // dq_policy of receive rings that are full
    uint64_t limit_ns; // of a kernel's waits that name none
    bool timers;       // histograms of what operations took
    uint64_t first;    // ticket of all rings: 0, but in tests
    // of a kernel that runs in a process of its own
    uint64_t silence_ns; // for which it may be silent (gn_beat, waits) before it is killed
    uint32_t restarts;   // how often one that died is started anew
} dq_gn_conf;

// Makes a context in an open session: rings, and a stage of each: out_rx gets those of receive rings, which
// belong into a pipe of their queue each. INVALID_PARAMETER names ring and kernel. Control thread.
int dq_gn_open(dq_session *s, const dq_gn_conf *conf, dq_gn **out, dq_stage **out_rx, dq_diag *diag);
// The number that the kernel knows a region by (gn_place), or -1: it was not given.
int dq_gn_region(const dq_gn *g, const dq_region *r);
// The same of the k-th of what the connection's peer lends.
uint32_t dq_gn_peer(const dq_gn *g, uint32_t k);
// Whether all blocks of the grid run at the same time, as a persistent kernel's have to.
int dq_gn_check_grid(const char *what, const dq_kernel *k, const dq_grid *grid, dq_diag *diag);
// Starts the kernel: args are as of a launch, one of kind DQ_ARG_NUMBER gets the context's address where its
// value is DQ_GN_PORT. Once. *op: an operation of one part that ends with the kernel.
#define DQ_GN_PORT UINT64_MAX
int dq_gn_start(dq_gn *g, dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args, uint32_t n,
                dq_op **op, dq_diag *diag);
// Ends every wait of the kernel, which then ends by itself.
void dq_gn_abort(dq_gn *g);
// Looks for the kernel's end; true: it has ended, or never began. One that died is started anew here. Control
// thread.
bool dq_gn_ended(dq_gn *g);
// Ends a kernel that doesn't, soon. False: it runs in the program's process, and can't be ended. Control
// thread.
bool dq_gn_kill(dq_gn *g);
// Whether what the kernel has posted is done. Any thread.
bool dq_gn_idle(dq_gn *g);
// The queue that holds what the kernel sent, where nothing reads it and nothing else has it: until something
// reads that queue the kernel's ring is not done. NULL: there is none. Control thread.
dq_queue *dq_gn_unread(dq_gn *g);
// The kernel has ended: rings take nothing any more, and let go of what they hold.
void dq_gn_detach(dq_gn *g);
// The caller lets go of it. It is freed with the session, as its stages are.
void dq_gn_release(dq_gn *g);

typedef struct dq_gn_state {
    uint64_t posted, completed, dropped; // of transmit tickets, all rings
    uint64_t received;                   // descriptors written
    int64_t silent_ns;                   // since the kernel was last heard of; -1: it never was
    uint32_t broken;                     // rings that are
    uint32_t restarted;                  // how often the kernel died and was started anew
    int32_t fault;                       // the last fault of a ring; 0: none
    int32_t abi_differs;                 // the kernel was compiled against another version of gn.h
} dq_gn_state;
void dq_gn_read(dq_gn *g, dq_gn_state *out);
const char *dq_gn_fault_name(int32_t fault);

// The next item of a semaphore that the kernel produces, taken by the caller, who says when it is done with
// it. False: there is none now. One thread a semaphore.
bool dq_gn_sem_take(dq_gn *g, uint32_t sem, uint64_t *first, uint64_t *count);
void dq_gn_sem_done(dq_gn *g, uint32_t sem);

// Polls what a queue's poller polls, once, on the calling thread: queues without a worker alone, else
// NOT_SUPPORTED. *work: what was done.
int dq_iface_progress(dq_iface *i, uint32_t *work, dq_diag *diag);

#endif
