// steer.h: tells the eBPF program of an xdp interface (engine/xdp/bpf/steer.bpf.c) which frames are ours.
// What cgo sees of it, and what the driver does.
#ifndef DQ_STEER_H
#define DQ_STEER_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"

typedef struct dq_steer dq_steer;

// Descriptors of the program's maps. The caller keeps them open until the steer is freed.
typedef struct dq_steer_maps {
    int32_t conf, groups, entries, singles, counts, sockets;
} dq_steer_maps;

typedef struct dq_steer_counts {
    uint64_t ours, passed, dropped; // frames: to a socket, to the kernel, because of drop_all
    uint64_t dropped_bytes;
} dq_steer_counts;

// A steer of empty maps: everything is the kernel's. The caller owns it. DQ_ESYS: no memory.
int dq_steer_new(const dq_steer_maps *maps, dq_steer **out, dq_diag *diag);
// Takes rules, which it has, out and others in: while the program runs, the frames that some rule matches are
// ours. Frames of a rule that stays are ours throughout. All or nothing: NO_SPACE_AVAILABLE names the limit,
// INVALID_PARAMETER the rule. One caller at a time, of this and of the three below; a system call for each
// rule.
int dq_steer_change(dq_steer *s, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
                    dq_diag *diag);
// Whether only frames that some rule matches are ours, else (as after dq_steer_new) all are and rules don't
// matter. Before the first rule.
void dq_steer_isolate(dq_steer *s, bool isolated);
// Whether what is ours is dropped.
void dq_steer_drop_all(dq_steer *s, bool drop);
// Whether the program decides at all; else everything is the kernel's, as after dq_steer_new.
void dq_steer_run(dq_steer *s, bool run);
// What the program has counted so far. Any thread.
void dq_steer_read(const dq_steer *s, dq_steer_counts *out);
// Lets the socket fd have what the device's receive queue gets; DQ_ESYS - errno.
int dq_steer_socket(dq_steer *s, uint32_t queue, int fd);
void dq_steer_free(dq_steer *s);

// How the program is attached to an interface's device; or, without a steer, why it is not: refused is then
// an errno and why says it in words.
typedef struct dq_xdp {
    dq_steer *steer; // the caller's, until the session is closed
    bool native;     // in the driver, not behind it
    int32_t refused;
    char why[256];
    dq_region *staging; // the driver's
} dq_xdp;
// Before open. An xdp interface without it has no program. DQ_ESYS: no memory.
int dq_iface_xdp(dq_iface *i, const dq_xdp *x);

// Whether some of n rules matches an Ethernet frame of len bytes, by the classifier in user space; negative:
// dq_err.
int dq_rules_want(const dq_rule *rules, uint32_t n, const uint8_t *frame, uint32_t len, dq_diag *diag);

#endif
