// steer.h: configures the eBPF program of an xdp interface (engine/xdp/bpf/steer.bpf.c), which decides for
// each frame between session and kernel. Used by cgo and by the driver.
#ifndef DQ_STEER_H
#define DQ_STEER_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"

typedef struct dq_steer dq_steer;

// File descriptors of the program's maps; the caller keeps them open until dq_steer_free.
typedef struct dq_steer_maps {
    int32_t conf, groups, entries, singles, counts, sockets;
} dq_steer_maps;

typedef struct dq_steer_counts {
    uint64_t ours, passed, dropped; // frames redirected to a socket, passed to the kernel, dropped by
                                    // drop_all
    uint64_t dropped_bytes;
} dq_steer_counts;

// Creates a steer with empty maps, which passes all frames to the kernel. The caller owns it. DQ_ESYS: no
// memory.
int dq_steer_new(const dq_steer_maps *maps, dq_steer **out, dq_diag *diag);
// Removes and adds rules: while the program runs, frames that match a rule are redirected to the session.
// Frames of a rule that stays are redirected throughout. All or nothing: NO_SPACE_AVAILABLE names the limit,
// INVALID_PARAMETER the rule. Not thread-safe, nor are the three functions below; one system call per rule.
int dq_steer_change(dq_steer *s, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
                    dq_diag *diag);
// Sets whether only frames that match a rule are redirected; otherwise (the default) all frames are and rules
// have no effect. Call before the first rule.
void dq_steer_isolate(dq_steer *s, bool isolated);
// Sets whether frames for the session are dropped.
void dq_steer_drop_all(dq_steer *s, bool drop);
// Enables the program's decisions; while disabled (the default) all frames go to the kernel.
void dq_steer_run(dq_steer *s, bool run);
// Reads the program's counters. Any thread.
void dq_steer_read(const dq_steer *s, dq_steer_counts *out);
// Redirects the frames of this receive queue of the device to socket fd; returns DQ_OK or DQ_ESYS - errno.
int dq_steer_socket(dq_steer *s, uint32_t queue, int fd);
void dq_steer_free(dq_steer *s);

// State of the program on an interface's device. Without a steer it is not attached: refused is then an errno
// and `why` describes the reason.
typedef struct dq_xdp {
    dq_steer *steer; // owned by the caller, which keeps it until the session is closed
    bool native;     // native mode: runs in the driver, not in the generic hook
    int32_t refused;
    char why[256];
    dq_region *staging; // created by the driver
} dq_xdp;
// Passes the program's state to an xdp interface before open; without it there is no program. DQ_ESYS: no
// memory.
int dq_iface_xdp(dq_iface *i, const dq_xdp *x);

// Returns 1 if any of n rules matches an Ethernet frame of len bytes in the user-space classifier, 0 if none
// does, a negative dq_err on error.
int dq_rules_want(const dq_rule *rules, uint32_t n, const uint8_t *frame, uint32_t len, dq_diag *diag);

#endif
