// dq_core.h: types shared by all public calls: statuses, handles, sessions and their clock, regions, hardware
// clocks.
//
// Conventions: set-up calls return 0 (DQ_OK) or a negative dq_err and write a message into a dq_diag. Burst
// calls return n >= 0 or a negative dq_err and format nothing. Times are int64 nanoseconds since the Unix
// epoch in the session's clock. "Owner's thread" means the one thread that polls the queue: its worker, or,
// in direct mode, the task that adopted it.
#ifndef DQ_CORE_H
#define DQ_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DQ_MAX_SEGS    4
#define DQ_MAX_QUEUES  32
#define DQ_NAME_LEN    64
#define DQ_ADDRESS_LEN 1024
#define DQ_HEADROOM    128 // bytes before each packet, for headers pushed later
// Receive time of a packet without one: allocated locally, or captured without. 0 is a valid time.
#define DQ_NO_TIME INT64_MIN

// Status of a call. The first thirteen are those of NVIDIA DAQIRI; a system error is DQ_ESYS - errno.
typedef enum dq_err {
    DQ_OK = 0,
    DQ_NULL_PTR = -1,
    DQ_NO_FREE_BURST_BUFFERS = -2,
    DQ_NO_FREE_PACKET_BUFFERS = -3,
    DQ_NOT_READY = -4,
    DQ_INVALID_PARAMETER = -5,
    DQ_NO_SPACE_AVAILABLE = -6,
    DQ_NOT_SUPPORTED = -7,
    DQ_GENERIC_FAILURE = -8,
    DQ_CONNECT_FAILURE = -9,
    DQ_INTERNAL_ERROR = -10,
    DQ_RESOURCE_IN_USE = -11,
    DQ_ALREADY_EXISTS = -12,
    DQ_ESYS = -1000,
} dq_err;

// The error message: the object concerned and a remedy; empty after success.
typedef struct dq_diag {
    char text[512];
} dq_diag;

typedef struct dq_session dq_session;
typedef struct dq_region dq_region;
typedef struct dq_iface dq_iface;
typedef struct dq_queue dq_queue;
typedef struct dq_burst dq_burst;
typedef struct dq_stage dq_stage;
typedef struct dq_pipe dq_pipe;
typedef struct dq_op dq_op;
typedef struct dq_waiter dq_waiter;
typedef struct dq_template dq_template;
typedef struct dq_prog dq_prog;

// An IPv4 or IPv6 address.
typedef struct dq_ip {
    uint8_t len; // 4 or 16
    uint8_t bytes[16];
} dq_ip;
typedef enum dq_proto { DQ_PROTO_NONE, DQ_PROTO_UDP, DQ_PROTO_TCP, DQ_PROTO_ROCE } dq_proto;
// Returns the lowest memory limit, in bytes, of this process's control groups; UINT64_MAX: no limit. Writes
// the path of the limiting file to file (n bytes). Reads files.
uint64_t dq_cgroup_memory(char *file, size_t n);

// Returns the name of a status ("NO_SPACE_AVAILABLE"), or strerror's text of a system error. Static or
// thread-local text.
const char *dq_err_name(int err);
// Returns "first" to "fourth" for segments 0 to 3, as in messages; scripts count from 1, NVIDIA's API from 0.
const char *dq_ordinal(uint32_t k);

// ---- sessions ---------------------------------------------------------------------------------------------
// The simulated wire between a session's loop interfaces. Probabilities are 0..1; rate_bps 0 is unlimited.
typedef struct dq_wire_conf {
    double loss, dup, reorder, corrupt;
    int64_t delay_ns;
    uint64_t rate_bps;
} dq_wire_conf;

typedef struct dq_session_conf {
    int32_t virtual_clock;    // 1: no threads; time advances by dq_advance only
    uint64_t seed;            // seed of the wire's random impairments
    int64_t start_ns;         // time at the start; real clock, 0: the wall clock
    int64_t mono_ns;          // real clock: CLOCK_MONOTONIC at start_ns; 0: now
    uint32_t rx_meta_buffers; // burst descriptors of each receive queue
    uint32_t tx_meta_buffers; // burst descriptors of each transmit queue
    dq_wire_conf wire;
} dq_session_conf;

// Kinds of memory: X(NAME, name). The last one, for tests, is device-only memory of the host: only the
// emulated device can access it, at an address of its own.
#define DQ_KIND_ROWS(X)                                                                                      \
    X(HOST, "host")                                                                                          \
    X(HUGE, "huge")                                                                                          \
    X(HOST_PINNED, "host_pinned")                                                                            \
    X(DEVICE, "device")                                                                                      \
    X(DARK, "dark")

typedef enum dq_kind {
#define X(id, ...) DQ_KIND_##id,
    DQ_KIND_ROWS(X)
#undef X
        DQ_KINDS
} dq_kind;

// Returns the name as in configurations ("host"); NULL: not a valid kind.
const char *dq_kind_name(int kind);

// Access rights of peers and devices to a region's memory.
enum dq_access { DQ_ACCESS_LOCAL = 1 << 0, DQ_ACCESS_READ = 1 << 1, DQ_ACCESS_WRITE = 1 << 2 };

typedef struct dq_region_conf {
    char name[DQ_NAME_LEN];
    int32_t kind;     // dq_kind
    int32_t affinity; // NUMA node; -1: any
    int32_t gpu;      // kind DEVICE: the GPU's number
    uint32_t access;  // dq_access
    uint32_t num_bufs;
    uint32_t buf_size; // bytes usable in each buffer
} dq_region_conf;

int dq_region_add(dq_session *s, const dq_region_conf *conf, dq_region **out, dq_diag *diag);

// Memory of the application that a region is bound to (dq_bound_new).
typedef struct dqi_bound dqi_bound;
// Adds a region to a session that is open: kinds host and huge. Its memory is mapped and populated before the
// return. bound: memory of the application, which the region owns from the call on, also if that fails; NULL:
// memory of the session. ALREADY_EXISTS: a region has the name; NOT_SUPPORTED: the kind; INVALID_PARAMETER:
// sizes of 0 or too large, or the memory does not fit; DQ_ESYS - ENOMEM and other system errors: no memory.
// Control thread; may block.
int dq_region_join(dq_session *s, const dq_region_conf *conf, dqi_bound *bound, dq_region **out,
                   dq_diag *diag);
// Deletes a region once all of its buffers are free, and gives its memory back. Returns false while buffers
// are in use; call it again later. No queue and no stage may use the region. Control thread.
bool dq_region_leave(dq_region *r);

// Returns the session clock in ns since the epoch. Any thread.
int64_t dq_now(const dq_session *s);
// Returns the time of dq_session_new in ns since the epoch.
int64_t dq_start_ns(const dq_session *s);

// Virtual clock: advances time to t_ns.
void dq_advance(dq_session *s, int64_t t_ns);
// Copies line i of the session's report (what runs in hardware or software, copies and their reasons, page
// sizes) to buf; false: there are fewer lines.
bool dq_session_report(const dq_session *s, uint32_t i, char *buf, size_t len);

typedef struct dq_region_info {
    uint8_t *base;     // CPU address of the arena; packets are at base + offset. NULL: device-only
    uint8_t *device;   // device address of the region; NULL: the CPU address
    uint64_t offset;   // arena offset of the region, bytes
    uint32_t stride;   // bytes between the starts of adjacent buffers
    uint32_t headroom; // bytes before each packet
    uint32_t num_bufs, buf_size, free_bufs;
    uint32_t group; // buffers per super-buffer; 1: no super-buffers
    int32_t kind;
    int32_t huge;   // 1: lies on huge pages
    int32_t cpu;    // 1: the CPU can access it
    uint64_t bytes; // of all buffers; 0 before the open, or dq_session_measure
} dq_region_info;
void dq_region_read(const dq_region *r, dq_region_info *out);

// ---- hardware clocks --------------------------------------------------------------------------------------

// A PTP hardware clock, /dev/ptpINDEX.
typedef struct dq_ptp {
    int32_t index;
    char name[64];          // as reported by the driver
    int64_t offset_ns;      // device time minus system time (mostly the 37 s from UTC to TAI)
    int64_t uncertainty_ns; // bound of the error of offset_ns
} dq_ptp;
// Writes up to max clock indices; returns the total available. Control thread.
uint32_t dq_ptp_list(int *index, uint32_t max);
// Reads one clock. Returns system errors as DQ_ESYS - errno; index and name are set in any case.
int dq_ptp_read(int index, dq_ptp *out);

#endif
