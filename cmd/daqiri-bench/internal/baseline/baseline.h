// baseline.h: the baselines of daqiri-bench: what plain C reaches with the same system calls, or on the same
// memory, and nothing of the engine around it.
//
// Each is one loop with as little in it as the task allows, one blocking call on the caller's thread, and
// independent of sessions. Datagrams carry their number (u64, host order) in their first eight bytes: what is
// missing at the receiver is known from the packets alone. All return 0 or DQ_ESYS - errno with the step that
// failed in diag.
#ifndef DQ_BASELINE_H
#define DQ_BASELINE_H

#include "core/dq_core.h"

#define DQ_BASELINE_MIN_BYTES 16 // of a datagram: number, and in the end mark the count

typedef struct dq_baseline_figures {
    uint64_t packets, bytes;
    uint64_t missing;      // receiver: numbers that never came
    double seconds;        // sender: of sending; receiver: from the first packet to the last
    double cpu_seconds;    // of the process, in these seconds
    uint32_t buffer_bytes; // receiver: what the kernel grants as SO_RCVBUF
} dq_baseline_figures;

typedef struct dq_baseline_send {
    char host[64]; // numeric IPv4 address
    uint16_t port;
    uint32_t size;     // bytes of a datagram, at least DQ_BASELINE_MIN_BYTES
    uint32_t segments; // datagrams of one UDP_SEGMENT message; 0: one datagram a message, without it
    double pps;        // datagrams a second, 0: as fast as it goes
    double seconds;    // how long
    int32_t end_marks; // 1: marks the end of the stream for the receiver
} dq_baseline_send;

// Sends for conf->seconds: sendmmsg of several messages a call, 64 MiB of socket buffer where allowed.
// Blocks.
int dq_baseline_udp_send(const dq_baseline_send *conf, dq_baseline_figures *out, dq_diag *diag);

typedef struct dq_baseline_recv {
    char host[64];  // numeric IPv4 address to bind
    uint32_t size;  // largest datagram, bytes
    int32_t gro;    // 1: UDP_GRO and buffers of 64 KiB; 0: one buffer a datagram
    int32_t stamps; // 1: SO_TIMESTAMPNS, for dq_baseline_udp_latency
} dq_baseline_recv;

// Binds a receiving socket to a free port. The caller closes *fd.
int dq_baseline_udp_open(const dq_baseline_recv *conf, int *fd, uint16_t *port, dq_diag *diag);
// Receives by recvmmsg until a sender's end mark, or until nothing came for idle_s after the first packet.
// Blocks.
int dq_baseline_udp_recv(int fd, const dq_baseline_recv *conf, double idle_s, dq_baseline_figures *out,
                         dq_diag *diag);
// Receives n datagrams one by one; ns[i] is the time from the kernel's stamp to here. Ends early after idle_s
// without any; *got: how many. Blocks.
int dq_baseline_udp_latency(int fd, uint32_t n, double idle_s, int64_t *ns, uint32_t *got, dq_diag *diag);

typedef struct dq_baseline_loop {
    uint32_t buffers, stride, batch, len; // len: bytes of a frame
    uint16_t port;                        // UDP port to match
    int32_t copy;                         // 1: into a second pool of the same size
    double seconds;
} dq_baseline_loop;

// Takes a batch of buffers from a stack, writes a frame into each, reads the UDP port of each, sets flow id
// and time in columns, counts, and puts the buffers back. Frames are written and copied with the engine's own
// means. Blocks.
int dq_baseline_loop_run(const dq_baseline_loop *conf, dq_baseline_figures *out, dq_diag *diag);

#endif
