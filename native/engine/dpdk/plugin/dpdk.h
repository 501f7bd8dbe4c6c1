// dpdk.h: what the parts of libdaqiri_dpdk.so know of each other.
#ifndef DPDK_H
#define DPDK_H

#include "core/burst.h"
#include "engine/dpdk/dpdk_abi.h"
#include "core/region.h"
#include "core/session.h"
#include "packet/transform.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <string.h>

// The engine's functions, set once by dqi_dpdk_entry.
extern const dqi_dpdk_host *host;

#define BURST_MAX   512 // packets of one call into DPDK, at most
#define CHUNK       64  // the same, where a call costs little: still in the cache
#define FRAME_EXTRA (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN) // bytes of a frame beyond the MTU

// ---- eal.c: the environment, once per process -------------------------------------------------------------

// Starts it on its first call. An error says what to do.
int eal_start(dq_diag *diag);
bool eal_has_huge_pages(void);
// Forgets what DPDK has complained of; and gives the first of what it did since, for an error's text.
void eal_log_clear(void);
void eal_log_read(char *text, size_t len);
// Makes the calling thread known to DPDK, so that pools keep buffers at hand for it; until the thread ends.
void eal_join_slow(void);
extern _Thread_local bool eal_joined;
static inline void eal_join(void) {
    if (!eal_joined) eal_join_slow();
}

// ---- pool.c: a session's regions as DPDK sees them --------------------------------------------------------

// A region's buffers, each with a header of DPDK's for good: headers[k] is that of buffer first_id + k.
typedef struct pool {
    struct rte_mempool *mp;
    dq_region *region;
    uint8_t *start; // of the buffers, as the device has it: an address of the GPU's for a region there
    struct rte_mbuf **headers;
    uint32_t n;  // headers that there are
    bool pinned; // its buffers are external memory to drivers; else they take the headers for ones of their
                 // own kind
    bool live;   // all of them, and DPDK is not taking them down
    uint64_t inverse; // 2^64 / stride, rounded up
    uint32_t *unfit;  // buffers that lie across pages that are not neighbours: kept from everybody
    uint32_t n_unfit;
} pool;

typedef struct bound {
    dq_session *session;
    uint32_t users; // open interfaces
    uint32_t n;
    bool physical; // devices need physical addresses
    pool pools[DQI_MAX_REGIONS];
    struct bound *next;
} bound;

// The session's pools, made by its first dpdk interface; NULL: diag says why. unbind ends what bind began.
// One caller at a time.
bound *bind_session(dq_session *s, dq_diag *diag);
void unbind_session(bound *b);
// The pool of the region, NULL: it has none, and why (static text).
pool *pool_of(bound *b, const dq_region *r, const char **why);
// The id of the buffer that this header of pl is for.
static inline uint32_t pool_id(const pool *pl, const struct rte_mbuf *m) {
    uint64_t at = (uint64_t)((const uint8_t *)m->buf_addr - pl->start);
    return pl->region->first_id + (uint32_t)(((unsigned __int128)at * pl->inverse) >> 64);
}

// ---- port.c, device.c -------------------------------------------------------------------------------------

#define CLOCK_READINGS 16

typedef struct clock_reading {
    uint64_t ticks; // the device's
    int64_t ns;     // the session's
} clock_reading;

// A device's clock against the session's, as one thread at a time sees it.
typedef struct device_clock {
    uint32_t n;                         // readings so far
    clock_reading seen[CLOCK_READINGS]; // the last of them
    clock_reading last;
    double ns_per_tick;
    int64_t next; // session time of the next reading
} device_clock;

typedef struct rx_state {
    struct rte_mbuf *got[BURST_MAX]; // frames read, from first on not handed out
    uint32_t first, n;
    struct rte_mbuf *lent[BURST_MAX]; // frames of the last read that lie elsewhere
    uint32_t n_lent;
    uint64_t last_frames; // after the stop: how many are still taken
    uint16_t queue;
    device_clock clock; // where the device stamps
} rx_state;

typedef struct tx_state {
    uint16_t queue;
    struct rte_mempool *copies; // buffers for packets that others hold
    pool *pool;                 // of the burst before
    int64_t stuck;              // session time since when the device has taken nothing; 0: it takes
    int64_t next_look;          // at the kernel's interface
    device_clock clock;         // where the device sends at given times
    int64_t last_time;          // of these, in session time
} tx_state;

#define RULE_FORMS 4
#define MARK_DONE  0x800000u // of a mark: the device has carried out the flow's actions

// A rule that the device is to have.
typedef struct steered {
    dq_rule rule;
    dq_match outer;                     // what it asks of headers as they come
    dqi_act act;                        // of a rule with actions: the first
    bool done;                          // the device carries it out
    struct rte_flow *flows[RULE_FORMS]; // NULL: it does not have it (yet)
    bool async[RULE_FORMS];             // it came by a template
} steered;

typedef struct dpdk_port {
    uint16_t id;
    bool probed, configured, started, promiscuous, stopping;
    char device[256], args[256]; // as DPDK names it
    bool vdev;
    bool own_only; // it takes the engine's buffers alone
    struct rte_eth_dev_info info;
    bound *bound;
    pool *rx_pool;            // the receive region, when frames go straight into it
    pool *parts[DQ_MAX_SEGS]; // the same, and those of the parts behind the first
    uint32_t n_parts;         // of a frame: the device splits it where there are several
    uint32_t lent;            // bit k: part k's memory is a GPU's, and lent to the device
    struct rte_mempool *own;  // the engine's buffers, where frames are copied; NULL
    uint32_t own_room;        // bytes of one
    rx_state *queues;
    tx_state *txs;
    uint16_t rx_desc, tx_desc, n_rxq, n_txq; // as configured
    _Atomic uint32_t max_frame;              // bytes that the device sends
    uint32_t chunk;                          // packets of one call, where bursts are long
    uint32_t most;                           // frames that one call may ask for
    bool rss;                                // it spreads packets over its receive queues
    char link[RTE_ETH_LINK_MAX_STR_LEN];     // as the report has it
    bool links;                              // it sends frames whose buffers are linked
    uint8_t sums;                            // DQ_HAS_*: headers whose checksums it computes
    _Atomic bool up;                         // the link has come up; a virtual device has none
    _Atomic int64_t link_looked;             // session time of the last look
    int ts_offset;                           // of a received frame's time; -1: none
    uint64_t ts_flag;
    bool stamps, waits; // it stamps what it receives by its clock, it sends at given times
    int wait_offset;    // of such a time
    uint64_t wait_flag;
    steered *steered; // none with steer_off
    uint32_t n_steered;
    uint32_t n_rules;           // of the interface
    bool marks;                 // its rules mark packets
    bool steer_off;             // it refused a rule, or was not asked
    bool steer_said;            // in the report
    bool acts_said[2];          // the same, of transforms by software, by the device
    struct async_rules *async;  // rules by templates; NULL
    bool isolated;              // the device gives what its rules say, and nothing else
    int sees_all;               // a socket that keeps the kernel's interface promiscuous; -1: none
    int asks;                   // a socket for questions about that interface
    int state;                  // of the kernel's interface at the last look, as kernel_state
    int sockets[DQ_MAX_QUEUES]; // net_af_packet's
    uint32_t n_sockets;
} dpdk_port;

static inline dpdk_port *dpdk_of(const dqi_port *p) { return p->state; }
static inline bool driver_is(const dpdk_port *d, const char *name) {
    return strcmp(d->info.driver_name, name) == 0;
}

// Finds and acquires the device that the interface's address names: p->id, info.
int device_open(dqi_port *p, dq_diag *diag);
void device_close(dpdk_port *d);

int port_open(dqi_port *p, dq_diag *diag);
int port_start(dqi_port *p, dq_diag *diag);
void port_stop(dqi_port *p);
void port_close(dqi_port *p);
void port_refresh(dqi_port *p);
int port_steer(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
               dq_diag *diag);
uint32_t port_mtu(const dqi_port *p);
int port_set_rx_macs(dqi_port *p, const uint8_t (*macs)[6], uint32_t n, dq_diag *diag);
int port_mac(const dqi_port *p, uint8_t mac[6]);

// ---- memory.c ---------------------------------------------------------------------------------------------

// Why the device can't put the parts of a frame into buffers of the queue's regions itself; NULL: it can.
const char *memory_cannot_split(const dpdk_port *d, const dq_queue *q);
// Whether the device takes buffers wherever they lie.
bool memory_takes_any(const dpdk_port *d);
// Decides where frames are received: d->rx_pool and parts, p->copy.
void memory_choose(dqi_port *p, dpdk_port *d);
// The engine's buffers: for frames that are copied, and for a receive queue that nobody reads.
int memory_own(dqi_port *p, dpdk_port *d, dq_diag *diag);
// Sets a receive queue up with its memory: 0, or DPDK's error.
int memory_rx_queue(const dpdk_port *d, uint16_t k);
// Buffers that the smallest of the receive queue's regions has; UINT32_MAX: frames don't go straight there.
uint32_t memory_fewest(const dpdk_port *d);
// The longest frame for which the queues of one direction have buffers.
uint32_t memory_longest(dq_queue *const *queues, uint32_t n);

// ---- clock.c ----------------------------------------------------------------------------------------------

// Asks the device in conf for receive times and send times where the configuration wants them; says why not.
void clock_choose(dqi_port *p, dpdk_port *d, struct rte_eth_conf *conf);
// After the start: 0, or -EIO: the clock stands still. And at the end: waits for what the device is to send.
int clock_begin(const dqi_port *p, dpdk_port *d);
void clock_end(const dqi_port *p, const dpdk_port *d);
// Two readings, 2 ms apart; false: they can't be had.
bool clock_start(const dpdk_port *d, const dq_session *s, device_clock *c);
// Holds the clocks against each other again when it is time. Whoever has c.
void clock_follow_slow(const dpdk_port *d, const dq_session *s, device_clock *c, int64_t now);
static inline void clock_follow(const dpdk_port *d, const dq_session *s, device_clock *c, int64_t now) {
    if (now >= c->next) clock_follow_slow(d, s, c, now);
}
static inline int64_t clock_time(const device_clock *c, uint64_t ticks) {
    return c->last.ns + (int64_t)((double)(int64_t)(ticks - c->last.ticks) * c->ns_per_tick);
}
static inline uint64_t clock_ticks(const device_clock *c, int64_t ns) {
    return c->last.ticks + (uint64_t)(int64_t)((double)(ns - c->last.ns) / c->ns_per_tick);
}
// Has the device send each of n frames at its time, those without one (NULL: all), or of a time that has
// passed, at once: headers keep what an earlier packet asked for.
void clock_ask(const dpdk_port *d, tx_state *t, struct rte_mbuf **frames, uint32_t n, const int64_t *at,
               int64_t now);

// ---- counters.c -------------------------------------------------------------------------------------------

// The link, at the start and where it is another at the stop, and the losses that the device counted in
// between go into the report.
void counters_start(const dqi_port *p, dpdk_port *d);
void counters_stop(const dqi_port *p, dpdk_port *d);

// ---- kernel.c: the kernel's interface behind a device, where there is one ---------------------------------

// Its MTU, 0: there is no interface.
uint32_t kernel_mtu(const dpdk_port *d);
// 0, ENETDOWN, or ENODEV: it was removed.
int kernel_state(const dpdk_port *d);
// After the device was opened, started; before it is closed.
void kernel_open(dpdk_port *d);
void kernel_start(const dpdk_port *d);
void kernel_close(dpdk_port *d);
// Makes it promiscuous until kernel_close or the process's end; false: that is the driver's business.
bool kernel_promiscuous(dpdk_port *d);
// A descriptor that becomes readable when the device queue has frames, where p->pollable; their number, 0
// or 1. Any thread.
int kernel_arm(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max);
// Counts what its sockets lost and notes what became of it. Any thread, one at a time.
void kernel_refresh(dqi_port *p, dpdk_port *d);

// ---- rx.c, tx.c -------------------------------------------------------------------------------------------

uint32_t rx_read(dqi_port_queue *l, dqi_piece *out, uint32_t max);
void rx_release(dqi_port_queue *l);
uint32_t rx_receive(dqi_port *p, dq_burst *b, uint32_t room);
void rx_columns(dq_burst *b);
// A burst's handles, where b->to_columns.
static inline struct rte_mbuf **frames_of(dq_burst *b) { return (struct rte_mbuf **)b->off[0]; }
int tx_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);

// ---- sums.c -----------------------------------------------------------------------------------------------

#define SUMS_OFFLOADS                                                                                        \
    (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM)

// The headers (DQ_HAS_*) whose checksums a device with these offloads computes.
uint8_t sums_offered(uint64_t offloads);
// Has the device compute these checksums of n frames, or none: headers keep what an earlier packet asked for.
// How many of them it is ready to send.
uint32_t sums_ask(const dpdk_port *d, const tx_state *t, struct rte_mbuf **frames, uint32_t n, dqi_sums s);

// ---- steer.c ----------------------------------------------------------------------------------------------

// Has the device put packets into their queues without the rules that are gone and by those that came, as far
// as it can, from steer_start on: NULL, or why the device, isolated, refuses the change. One caller at a
// time. end takes all out.
const char *steer_change(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add,
                         uint32_t n_add);
// Before the device's start: has it make room for rules by templates, and give what its rules say and nothing
// else, where flow_isolation asks for it; as far as it can.
void steer_prepare(dqi_port *p);
int steer_start(dqi_port *p); // 0, or DPDK's error
void steer_end(dpdk_port *d);

#endif
