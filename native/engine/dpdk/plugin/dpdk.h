// dpdk.h: internal interfaces of libdaqiri_dpdk.so.
#ifndef DPDK_H
#define DPDK_H

#include "core/burst.h"
#include "core/region.h"
#include "engine/dpdk/dpdk_abi.h"
#include "packet/transform.h"
#include "pipeline/session.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <string.h>

// Engine functions, set once by dqi_dpdk_entry.
extern const dqi_dpdk_host *host;

#define BURST_MAX   512 // maximum packets of one DPDK call
#define CHUNK       64  // packets of one call where calls are cheap: fits the cache
#define FRAME_EXTRA (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN) // bytes of a frame beyond the MTU

// ---- eal.c: the DPDK environment, once per process --------------------------------------------------------

// Starts the EAL on the first call. An error states the remedy.
int eal_start(dq_diag *diag);
bool eal_has_huge_pages(void);
// Clear the log of DPDK's messages, and read the first ones since then, for an error message.
void eal_log_clear(void);
void eal_log_read(char *text, size_t len);
// Registers the calling thread with DPDK, so that pools cache buffers for it; ends with the thread.
void eal_join_slow(void);
extern _Thread_local bool eal_joined;
static inline void eal_join(void) {
    if (!eal_joined) eal_join_slow();
}

// ---- pool.c: a session's regions as mempools --------------------------------------------------------------

// Mempool of a region. Each buffer has a permanent mbuf: headers[k] belongs to buffer first_id + k.
typedef struct pool {
    struct rte_mempool *mp;
    dq_region *region;
    uint8_t *start; // base address as seen by the device: a GPU address for a GPU region
    struct rte_mbuf **headers;
    uint32_t n;  // number of headers
    bool pinned; // buffers are pinned external memory to drivers; else drivers treat the headers as ordinary
                 // mbufs
    bool live;   // all headers exist and the mempool is not being freed
    uint64_t inverse; // 2^64 / stride, rounded up
    uint32_t *unfit;  // buffers across physically discontiguous pages, permanently reserved
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

// Returns the session's pools, created for its first dpdk interface; NULL with the reason in diag on error.
// unbind drops that reference. Not thread-safe.
bound *bind_session(dq_session *s, dq_diag *diag);
void unbind_session(bound *b);
// Returns the pool of the region; NULL if it has none, with the reason (static text) in *why.
pool *pool_of(bound *b, const dq_region *r, const char **why);
// Returns the id of the buffer to which this mbuf of pl belongs.
static inline uint32_t pool_id(const pool *pl, const struct rte_mbuf *m) {
    uint64_t at = (uint64_t)((const uint8_t *)m->buf_addr - pl->start);
    return pl->region->first_id + (uint32_t)(((unsigned __int128)at * pl->inverse) >> 64);
}

// ---- port.c, device.c -------------------------------------------------------------------------------------

#define CLOCK_READINGS 16

typedef struct clock_reading {
    uint64_t ticks; // of the device
    int64_t ns;     // session time
} clock_reading;

// Relation of a device's clock to the session's, used by one thread at a time.
typedef struct device_clock {
    uint32_t n;                         // readings so far
    clock_reading seen[CLOCK_READINGS]; // the latest readings
    clock_reading last;
    double ns_per_tick;
    int64_t next; // session time of the next reading
} device_clock;

typedef struct rx_state {
    struct rte_mbuf *got[BURST_MAX]; // frames read; those from first on are not yet passed on
    uint32_t first, n;
    struct rte_mbuf *lent[BURST_MAX]; // frames of the last read outside the region
    uint32_t n_lent;
    uint64_t last_frames; // after the stop: how many more are accepted
    uint16_t queue;
    device_clock clock; // where the device timestamps packets
} rx_state;

// Device queue of transmission. A transmit queue that is added after the open shares one.
typedef struct tx_state {
    dqi_spin busy;
    uint16_t queue;
    struct rte_mempool *copies; // buffers for packets with other references
    pool *pool;                 // pool of the previous burst
    int64_t stuck;              // session time at which the device stopped accepting packets; 0: it accepts
    int64_t next_look;          // next check of the kernel's interface
    device_clock clock;         // where the device sends at given times
    int64_t last_time;          // latest of them, in session time
} tx_state;

#define RULE_FORMS 4
#define MARK_DONE  0x800000u // mark bit: the device has executed the flow's actions

// Rule to be offloaded to the device.
typedef struct steered {
    dq_rule rule;
    dq_match outer;                     // match on headers before decapsulation
    dqi_act act;                        // first action, if the rule has actions
    bool done;                          // the action is executed by the device
    struct rte_flow *flows[RULE_FORMS]; // NULL: not in the device (yet)
    bool async[RULE_FORMS];             // created by a template
} steered;

typedef struct dpdk_port {
    uint16_t id;
    bool probed, configured, started, promiscuous, stopping;
    char device[256], args[256]; // name and arguments in DPDK's form
    bool vdev;
    bool own_only; // the driver accepts only the engine's buffers
    struct rte_eth_dev_info info;
    bound *bound;
    pool *rx_pool;            // pool of the receive region, if frames are received there
    pool *parts[DQ_MAX_SEGS]; // pools of all parts of a frame, the first included
    uint32_t n_parts;         // parts of a frame; more than 1: split by the device
    uint32_t lent;            // bit k: part k is in GPU memory that is mapped for the device
    struct rte_mempool *own;  // the engine's buffers, for copies; NULL
    uint32_t own_room;        // bytes of a buffer
    rx_state *queues;
    tx_state *txs;
    uint16_t rx_desc, tx_desc, n_rxq, n_txq; // as configured
    _Atomic uint32_t max_frame;              // longest frame that the device sends, in bytes
    uint32_t chunk;                          // packets of one call for long bursts
    uint32_t most;                           // limit of frames for one receive call
    bool rss;                                // the device distributes packets over its receive queues
    char link[RTE_ETH_LINK_MAX_STR_LEN];     // last reported link state
    bool links;                              // it sends multi-segment mbufs
    uint8_t sums;                            // DQ_HAS_*: headers whose checksums it computes
    _Atomic bool up;                         // the link has come up; always true for a virtual device
    _Atomic int64_t link_looked;             // session time of the last check
    int ts_offset;                           // dynamic field of receive times; -1: none
    uint64_t ts_flag;
    bool stamps, waits; // stamps: hardware receive timestamps; waits: scheduled transmission
    int wait_offset;    // dynamic field of send times
    uint64_t wait_flag;
    steered *steered; // empty if steer_off
    uint32_t n_steered;
    uint32_t n_rules;           // of the interface
    bool marks;                 // its rules mark packets
    bool steer_off;             // a rule was rejected, or offload was not tried
    bool steer_reported;        // reported already
    bool acts_reported[2];      // the same for transforms: [0] in software, [1] in the device
    struct async_rules *async;  // template rules; NULL
    bool isolated;              // the device delivers only frames that its rules match
    int sees_all;               // socket that keeps the kernel's interface promiscuous; -1: none
    int asks;                   // socket for ioctls on that interface
    int state;                  // kernel_state of the kernel's interface at the last check
    int sockets[DQ_MAX_QUEUES]; // sockets of net_af_packet
    uint32_t n_sockets;
} dpdk_port;

static inline dpdk_port *dpdk_of(const dqi_port *p) { return p->state; }
static inline bool driver_is(const dpdk_port *d, const char *name) {
    return strcmp(d->info.driver_name, name) == 0;
}

// Finds and acquires the device of the interface's address; sets p->id and info.
int device_open(dqi_port *p, dq_diag *diag);
void device_close(dpdk_port *d);

int port_open(dqi_port *p, dq_diag *diag);
int port_start(dqi_port *p, dq_diag *diag);
void port_stop(dqi_port *p);
void port_close(dqi_port *p);
void port_refresh(dqi_port *p);
int port_steer(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
               dq_diag *diag);
// See dqi_port_driver.tx_open.
int port_tx_open(dq_queue *q, dq_diag *diag);
uint32_t port_mtu(const dqi_port *p);
int port_set_rx_macs(dqi_port *p, const uint8_t (*macs)[6], uint32_t n, dq_diag *diag);
int port_mac(const dqi_port *p, uint8_t mac[6]);

// ---- memory.c ---------------------------------------------------------------------------------------------

// Returns why the device cannot split frames into the queue's regions; NULL: it can.
const char *memory_cannot_split(const dpdk_port *d, const dq_queue *q);
// Returns true if the device accepts buffers at any address.
bool memory_takes_any(const dpdk_port *d);
// Chooses where frames are received: sets d->rx_pool, d->parts and p->copy.
void memory_choose(dqi_port *p, dpdk_port *d);
// Creates the engine's buffers, for copied frames and for a receive queue without a reader.
int memory_own(dqi_port *p, dpdk_port *d, dq_diag *diag);
// Sets up a receive queue with its memory; returns 0 or a DPDK error.
int memory_rx_queue(const dpdk_port *d, uint16_t k);
// Returns the number of buffers of the smallest receive region; UINT32_MAX: frames are not received there.
uint32_t memory_fewest(const dpdk_port *d);
// Regions that are added later have no mempool: their packets are copied when they are sent.
extern const dqi_region_ops memory_regions;
// Returns the longest frame for which the queues of one direction have buffers.
uint32_t memory_longest(dq_queue *_Atomic const *queues, uint32_t n);

// ---- clock.c ----------------------------------------------------------------------------------------------

// Enables hardware receive and send times in conf where configured; reports why not.
void clock_choose(dqi_port *p, dpdk_port *d, struct rte_eth_conf *conf);
// Starts the clocks after the device: 0, or -EIO if the device's clock stands still. clock_end waits for
// scheduled packets.
int clock_begin(const dqi_port *p, dpdk_port *d);
void clock_end(const dqi_port *p, const dpdk_port *d);
// Takes two readings, 2 ms apart; returns false if the clock cannot be read.
bool clock_start(const dpdk_port *d, const dq_session *s, device_clock *c);
// Takes another reading when one is due. The caller owns c.
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
// Schedules each of n frames for its send time; frames without one (at NULL: all), or with a past one, are
// sent at once. Resets the request of an earlier packet in each mbuf.
void clock_ask(const dpdk_port *d, tx_state *t, struct rte_mbuf **frames, uint32_t n, const int64_t *at,
               int64_t now);

// ---- counters.c -------------------------------------------------------------------------------------------

// Report the link state (at the start, and at the stop if it changed) and the losses that the device counted
// in between.
void counters_start(const dqi_port *p, dpdk_port *d);
void counters_stop(const dqi_port *p, dpdk_port *d);

// ---- kernel.c: the kernel's interface of a device, if any -------------------------------------------------

// Returns its MTU; 0: no interface.
uint32_t kernel_mtu(const dpdk_port *d);
// Returns 0, ENETDOWN, or ENODEV if it was removed.
int kernel_state(const dpdk_port *d);
// Called after the device was opened, after it was started, before it is closed.
void kernel_open(dpdk_port *d);
void kernel_start(const dpdk_port *d);
void kernel_close(dpdk_port *d);
// Enables promiscuous mode until kernel_close or the end of the process; false: left to the driver.
bool kernel_promiscuous(dpdk_port *d);
// Writes a descriptor that becomes readable when the device queue has frames, if p->pollable; returns 0 or 1.
// Any thread.
int kernel_arm(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max);
// Counts the losses of its sockets and records state changes. Any thread, one at a time.
void kernel_refresh(dqi_port *p, dpdk_port *d);

// ---- rx.c, tx.c -------------------------------------------------------------------------------------------

uint32_t rx_read(dqi_port_queue *l, dqi_piece *out, uint32_t max);
void rx_release(dqi_port_queue *l);
uint32_t rx_receive(dqi_port *p, dq_burst *b, uint32_t room);
void rx_columns(dq_burst *b);
// Returns the burst's handles; valid while b->to_columns is set.
static inline struct rte_mbuf **frames_of(dq_burst *b) { return (struct rte_mbuf **)b->off[0]; }
int tx_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);

// ---- sums.c -----------------------------------------------------------------------------------------------

#define SUMS_OFFLOADS                                                                                        \
    (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM)

// Returns the headers (DQ_HAS_*) whose checksums a device with these offloads computes.
uint8_t sums_offered(uint64_t offloads);
// Requests these checksums for n frames, or none; resets the request of an earlier packet in each mbuf.
// Returns how many frames are ready to send.
uint32_t sums_ask(const dpdk_port *d, const tx_state *t, struct rte_mbuf **frames, uint32_t n, dqi_sums s);

// ---- steer.c ----------------------------------------------------------------------------------------------

// Updates the device's rules for a change, as far as possible; effective from steer_start on. Returns NULL,
// or why an isolated device rejects the change. Not thread-safe. steer_end removes all rules.
const char *steer_change(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add,
                         uint32_t n_add);
// Before the device's start: allocates tables for template rules, and isolates the device if flow_isolation
// is set; as far as supported.
void steer_prepare(dqi_port *p);
int steer_start(dqi_port *p); // returns 0 or a DPDK error
void steer_end(dpdk_port *d);

#endif
