// engine_pcap.c: replays a capture as the receive queues of an interface: a raw Ethernet driver (ethernet.h)
// whose only device queue is a file. Its transmit queues, used when a configuration is run on a capture,
// count and discard packets.
//
// Packets are never lost for lack of room: the file waits while a queue that is read has no free buffer or
// descriptor.
#include "core/burst.h"
#include "core/dq_burst.h"
#include "core/err.h"
#include "core/region.h"
#include "engine/ethernet/ethernet.h"
#include "engine/ethernet/ethernet_rx.h"
#include "engine/replay/replay.h"
#include "engine/replay/replay_udp.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX      "pcap:"
#define MOST_OTHERS 1024  // limit of frames for other receivers in one read
#define AGAIN_NS    20000 // interval between polls for the file, or for room in a queue

typedef struct pcap_port {
    dqi_replay replay;
    _Atomic int64_t due_ns; // time of the next packet, as far as known
    _Atomic bool starved;   // a queue had no room at the last poll
    _Atomic bool stopped;
    // for interfaces of payloads
    dqi_replay_udp udp;
    dqi_sockaddr peers[DQI_ETH_PIECES]; // of the pieces of the last read
} pcap_port;

static pcap_port *state_of(const dqi_port *p) { return p->state; }

// ---- device queue -----------------------------------------------------------------------------------------

// Returns the number of packets for which every queue that is read has room, whichever queue they belong to.
static uint32_t room_for_all(const dqi_port *p, const dq_queue *reader) {
    const dq_iface *i = p->iface;
    uint32_t room = UINT32_MAX;
    for (uint32_t k = 0; k < i->n_rx; k++) {
        const dq_queue *q = i->rx[k];
        if (!atomic_load_explicit(&q->rx.consumed, memory_order_relaxed)) continue;
        for (uint32_t s = 0; s < q->conf.n_regions; s++) {
            uint32_t n = dqi_region_level(q->conf.regions[s]) * q->conf.regions[s]->group;
            room = n < room ? n : room;
        }
        if (q != reader && dqi_burst_pool_level(q->bursts) <= i->n_rx + 1) room = 0;
    }
    return room;
}

// Returns true if no further packets follow.
static bool is_over(const pcap_port *s) {
    return atomic_load_explicit(&s->stopped, memory_order_relaxed) || dqi_replay_ended(&s->replay);
}

static void look_at(pcap_port *s, int64_t ns) { atomic_store_explicit(&s->due_ns, ns, memory_order_relaxed); }

// Returns how many packets may be read at `now`, at most max; sets *due to the time of the next poll.
static uint32_t room_to_read(dqi_port_queue *l, uint32_t max, int64_t now, int64_t *due) {
    pcap_port *s = state_of(l->port);
    uint32_t room = room_for_all(l->port, l->reader);
    if (room < max) max = room;
    atomic_store_explicit(&s->starved, max == 0, memory_order_relaxed);
    *due = now;
    if (max == 0) *due = dqi_virtual(l->port->iface->session) ? INT64_MAX : now + AGAIN_NS;
    return max;
}

static uint32_t read_lane(dqi_port_queue *l, dqi_piece *out, uint32_t max) {
    dqi_port *p = l->port;
    pcap_port *s = state_of(p);
    if (is_over(s)) return 0;
    uint32_t n = 0, cut = 0;
    int64_t now = dq_now(p->iface->session), due;
    max = room_to_read(l, max, now, &due);
    for (; n < max && dqi_replay_next(&s->replay, now, n > 0, &due); n++) {
        const dqi_capture_packet *k = &s->replay.next;
        out[n] = (dqi_piece){
            .data = k->data, .len = k->len, .buf = DQI_NO_BUF, .ts = k->ts, .loop = (uint32_t)s->replay.loop};
        out[n].origin = (dqi_origin){s->replay.remark, k->orig > k->len ? k->orig - k->len : 0};
        cut += out[n].origin.cut > 0;
        dqi_replay_took(&s->replay);
    }
    if (cut > 0) dqi_add_shared(&p->c.extra[DQ_EXTRA_TRUNCATED], cut);
    look_at(s, due);
    return n;
}

// Reads payloads; frames that are not datagrams for the interface are dropped, a limited number per call.
static uint32_t read_payloads(dqi_port_queue *l, dqi_piece *out, uint32_t max) {
    dqi_port *p = l->port;
    const dq_iface *i = p->iface;
    pcap_port *s = state_of(p);
    if (is_over(s)) return 0;
    uint32_t n = 0, others = 0;
    uint64_t others_bytes = 0;
    int64_t now = dq_now(i->session), due;
    max = room_to_read(l, max, now, &due);
    dqi_lock(&s->udp.lock);
    while (n < max && others < MOST_OTHERS && dqi_replay_next(&s->replay, now, n > 0, &due)) {
        const dqi_capture_packet *k = &s->replay.next;
        dqi_datagram d;
        dq_reason why;
        if (dqi_replay_udp_take(&s->udp, k->data, k->len, &d, &why)) {
            s->peers[n] = d.peer;
            out[n] = (dqi_piece){.data = k->data + (d.payload - k->data),
                                 .len = d.len,
                                 .buf = DQI_NO_BUF,
                                 .ts = k->ts,
                                 .origin = {.remark = s->replay.remark},
                                 .peer = &s->peers[n],
                                 .loop = (uint32_t)s->replay.loop,
                                 .queue = (uint16_t)i->rx[d.spread % i->n_rx]->conf.id};
            n++;
        } else {
            dqi_port_drop(p, why, 1);
            others++;
            others_bytes += k->len;
        }
        dqi_replay_took(&s->replay);
    }
    dqi_unlock(&s->udp.lock);
    dqi_add_shared(&p->c.in, others);
    dqi_add_shared(&p->c.in_bytes, others_bytes);
    look_at(s, due);
    return n;
}

static void release_lane(dqi_port_queue *l) { (void)l; } // chunks are released before the next read

static int arm_rx(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max) {
    (void)l, (void)q, (void)fds, (void)max;
    return 0;
}

// Delivers a partial burst if no packet can follow before its delivery.
static int pcap_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    pcap_port *s = state_of(dqi_port_of(q->iface));
    int n = dqi_eth_rx(q, b, room);
    if (room == 0) return n;
    (*b)->clock = DQ_CLOCK_FILE;
    (*b)->time_origin = dqi_replay_origin(&s->replay);
    bool over = is_over(s);
    if (n == 0 && (*b)->n > 0 && (over || atomic_load_explicit(&s->starved, memory_order_relaxed)))
        q->rx.deliver_now = true;
    int64_t due = atomic_load_explicit(&s->due_ns, memory_order_relaxed);
    if (!over && due < q->next_ns) q->next_ns = due;
    return n;
}

// Discards only packets that were read; the file position stays.
static int64_t pcap_flush(dq_queue *q) { return dqi_eth_flush_inbox(q); }

// ---- transmit ---------------------------------------------------------------------------------------------

static int count_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    dqi_add(&q->c.out, n);
    dqi_add(&q->c.out_bytes, dqi_burst_sum(b, first, n));
    if (first + n == b->n) dq_burst_unref(b);
    return (int)n;
}

// ---- open and close ---------------------------------------------------------------------------------------

static void report_how(const dq_iface *i) {
    const dq_replay_conf *r = &i->conf.replay;
    char how[64] = "flat out", often[64] = "without end";
    if (r->bps > 0) snprintf(how, sizeof how, "at %.6g bit/s", r->bps);
    if (r->pps > 0) snprintf(how, sizeof how, "at %.6g packets/s", r->pps);
    if (r->speed > 0) snprintf(how, sizeof how, "with its own gaps, at %.6g times its speed", r->speed);
    if (r->speed == 1) snprintf(how, sizeof how, "with its own gaps");
    if (r->loops > 0) snprintf(often, sizeof often, "%llu times", (unsigned long long)r->loops);
    if (r->loops == 1) snprintf(often, sizeof often, "once");
    dqi_note(i->session, "interface %s: %s, %s, %s", i->conf.name, i->conf.address, how, often);
}

static int open_file(dqi_port *p, pcap_port *s, dq_diag *diag) {
    dq_iface *i = p->iface;
    const char *path = i->conf.address;
    if (strncmp(path, PREFIX, strlen(PREFIX)) == 0) path += strlen(PREFIX);
    const dq_replay_conf *r = &i->conf.replay;
    if (dqi_virtual(i->session) && r->loops == 0 && r->speed == 0 && r->bps == 0 && r->pps == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: cannot replay an endless capture at full speed on the virtual clock, "
                        "which would never advance; hint: replay: set loops, a speed or a rate",
                        i->conf.name);
    int err = dqi_replay_open(&s->replay, i, path, &p->c, diag);
    if (err == DQ_OK) report_how(i);
    return err;
}

static int open_pcap(dqi_port *p, dq_diag *diag) {
    const dq_iface *i = p->iface;
    pcap_port *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    p->state = s;
    p->stamps = DQ_STAMPS_FILE;
    p->copy = "from the file";
    if (i->n_tx > 0)
        dqi_note(i->session, "interface %s: packets sent on a replayed capture are counted and discarded",
                 i->conf.name);
    int err = i->ops->payload ? dqi_replay_udp_open(&s->udp, i, diag) : DQ_OK;
    if (i->n_rx == 0 || err != DQ_OK) return err;
    p->n_queues = 1;
    return open_file(p, s, diag);
}

static int start_pcap(dqi_port *p, dq_diag *diag) {
    const dq_iface *i = p->iface;
    if (i->n_rx == 0 || dqi_virtual(i->session)) return DQ_OK;
    int err = dqi_replay_start(&state_of(p)->replay);
    return err == DQ_OK ? DQ_OK
                        : dqi_fail(diag, err, "interface %s: cannot start the thread that reads the file: %s",
                                   i->conf.name, dq_err_name(err));
}

static void stop_pcap(dqi_port *p) { atomic_store(&state_of(p)->stopped, true); }

static void close_pcap(dqi_port *p) {
    pcap_port *s = p->state;
    if (!s) return;
    if (p->iface->n_rx > 0) dqi_replay_close(&s->replay);
    free(s);
    p->state = NULL;
}

static int mac(const dqi_port *p, uint8_t out[6]) {
    uint32_t k = p->iface->index + 1;
    const uint8_t m[6] = {0x02, 0, 0, 1, (uint8_t)(k >> 8), (uint8_t)k};
    memcpy(out, m, sizeof m);
    return DQ_OK;
}

// All captured packets are delivered, whatever was joined.
static int multicast(dqi_port *p, const char *group, const char *source, bool join, dq_diag *diag) {
    dqi_group g;
    (void)join;
    return dqi_group_parse(p->iface->conf.name, group, source, &g, diag);
}

static int join_udp(dqi_port *p, const char *group, const char *source, bool join, dq_diag *diag) {
    return dqi_replay_udp_join(&state_of(p)->udp, p->iface, group, source, join, diag);
}

#define DRIVER                                                                                               \
    .open = open_pcap, .start = start_pcap, .stop = stop_pcap, .close = close_pcap, .release = release_lane, \
    .tx = count_tx, .arm_rx = arm_rx

static const dqi_port_driver driver = {DRIVER, .name = "a capture", .read = read_lane, .mac = mac,
                                       .multicast = multicast};

static const dqi_port_driver udp_driver = {DRIVER, .name = "datagrams of a capture", .read = read_payloads,
                                           .multicast = join_udp};

static int udp_open(dq_iface *i, dq_diag *diag) {
    if (i->conf.socket.proto != DQ_PROTO_UDP)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: cannot replay a capture as TCP, only as datagrams", i->conf.name);
    return dqi_eth_open(i, &udp_driver, diag);
}

static int pcap_open(dq_iface *i, dq_diag *diag) { return dqi_eth_open(i, &driver, diag); }

static bool is_read(const dq_iface *i) {
    bool some = false;
    for (uint32_t k = 0; k < i->n_rx; k++)
        some |= atomic_load_explicit(&i->rx[k]->rx.consumed, memory_order_relaxed);
    return some;
}

bool dq_iface_source(const dq_iface *i, dq_source *out) {
    if (i->ops->rx != pcap_rx || !i->engine || i->n_rx == 0) return false;
    const dqi_replay *r = &state_of(dqi_port_of(i))->replay;
    out->ended = dqi_replay_ended(r) || !is_read(i);
    dqi_replay_read(r, out);
    return true;
}

// ---- socket of an interface of payloads -------------------------------------------------------------------
//
// As with a UDP socket, there are no incoming connections and therefore no connection events; the only
// connection is 0.

static int conn_open(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag) {
    (void)conn;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "interface %s: cannot connect to %s: a replayed capture has no peers; hint: packets from "
                    "there arrive on the receive queues, with their sender",
                    i->conf.name, to->address);
}

static int conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    *out = (dq_conn_info){0};
    if (conn != 0) return DQ_INVALID_PARAMETER;
    const dqi_replay_udp *u = &state_of(dqi_port_of(i))->udp;
    if (u->n_local > 0) dqi_addr_text(&u->local[0], out->local, sizeof out->local);
    if (u->n_remote > 0) dqi_addr_text(&u->remote[0], out->peer, sizeof out->peer);
    out->open = !atomic_load(&state_of(dqi_port_of(i))->stopped);
    out->rx = i->n_rx > 0 ? i->rx[0] : NULL;
    out->tx = i->n_tx > 0 ? i->tx[0] : NULL;
    return DQ_OK;
}

static int conn_setsockopt(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len) {
    (void)v, (void)len;
    if (conn != 0) return DQ_INVALID_PARAMETER;
    dqi_note(i->session,
             "interface %s: cannot set socket option %d of level %d: a replayed capture has no socket",
             i->conf.name, option, level);
    return DQ_OK;
}

#define ENGINE                                                                                               \
    .name = "pcap", .waits = true, .origins = true, .loops = true, .virtual_clock = true, .rx = pcap_rx,     \
    .flush = pcap_flush

static const dqi_conn_ops conns = {.open = conn_open, .read = conn_read, .setsockopt = conn_setsockopt};

static const dqi_engine_ops of_sockets = {
    ENGINE, DQI_PORT_OPS, .payload = true, .open = udp_open, .link = &dqi_eth_groups, .conns = &conns};

const dqi_engine_ops dqi_engine_pcap = {ENGINE, DQI_FRAME_OPS, .open = pcap_open, .sockets = &of_sockets};
