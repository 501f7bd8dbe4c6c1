// xsk_test.c: AF_XDP over a pair of virtual Ethernet devices in a network namespace of the test's own: the
// driver's C code under the sanitizers. The eBPF program here takes every frame, so that the maps of rules
// are filled and never read; native/xdp_test.go has the real one.
#include "bed_frame.h"

#include "core/clock.h"
#include "core/region.h"
#include "engine/xdp/steer_map.h"
#include "engine/xdp/xsk.h"
#include "packet/packet.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/resources/dq_resources.h"
#include "pipeline/session.h"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 64, PORT = 7000, QUEUES = 2 };

// ---- the program ------------------------------------------------------------------------------------------

typedef struct program {
    dq_steer_maps maps;
    int fd, link;
    dq_steer *steer;
} program;

static int bpf(int cmd, union bpf_attr *a) { return (int)syscall(SYS_bpf, cmd, a, sizeof *a); }

static int32_t make_map(uint32_t type, uint32_t key, uint32_t value, uint32_t n, uint32_t flags) {
    union bpf_attr a = {
        .map_type = type, .key_size = key, .value_size = value, .max_entries = n, .map_flags = flags};
    return bpf(BPF_MAP_CREATE, &a);
}

static dq_steer_maps make_maps(void) {
    return (dq_steer_maps){
        .conf = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(steer_conf), 1, 0),
        .groups = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(steer_group), STEER_GROUPS, 0),
        .entries = make_map(BPF_MAP_TYPE_HASH, sizeof(steer_entry), 1, 64, BPF_F_NO_PREALLOC),
        .singles = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(steer_single), STEER_SINGLES, 0),
        .counts = make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(steer_counts), 1, 0),
        .sockets = make_map(BPF_MAP_TYPE_XSKMAP, 4, 4, STEER_QUEUES, 0),
    };
}

// return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
static int load(int32_t sockets) {
    struct bpf_insn code[] = {
        {.code = BPF_LDX | BPF_MEM | BPF_W,
         .dst_reg = 2,
         .src_reg = 1,
         .off = offsetof(struct xdp_md, rx_queue_index)},
        {.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = sockets},
        {.code = 0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr a = {.prog_type = BPF_PROG_TYPE_XDP,
                        .insn_cnt = sizeof code / sizeof *code,
                        .prog_flags = BPF_F_XDP_HAS_FRAGS};
    a.insns = (uint64_t)(uintptr_t)code;
    a.license = (uint64_t)(uintptr_t) "Apache-2.0";
    return bpf(BPF_PROG_LOAD, &a);
}

static int attach(int fd, const char *device) {
    union bpf_attr a = {
        .link_create = {.prog_fd = (uint32_t)fd, .attach_type = BPF_XDP, .flags = XDP_FLAGS_DRV_MODE}};
    a.link_create.target_ifindex = if_nametoindex(device);
    return bpf(BPF_LINK_CREATE, &a);
}

static bool program_open(program *p, const char *device) {
    dq_diag d = {{0}};
    p->maps = make_maps();
    p->fd = load(p->maps.sockets);
    p->link = p->fd >= 0 ? attach(p->fd, device) : -1;
    return p->link >= 0 && dq_steer_new(&p->maps, &p->steer, &d) == DQ_OK;
}

static void program_close(program *p) {
    const int all[] = {p->link,         p->fd,           p->maps.conf,   p->maps.groups,
                       p->maps.entries, p->maps.singles, p->maps.counts, p->maps.sockets};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k] >= 0) close(all[k]);
    dq_steer_free(p->steer);
}

// ---- a session: left sends, right receives ----------------------------------------------------------------

typedef struct rig_conf {
    uint32_t queues;         // each way [1]
    uint32_t device_queues;  // of each device [1]; left's transmit queue k reaches right's device queue k
    bool own;                // each receive queue has a region of its own
    uint32_t bufs, buf_size; // of receive regions [4096, 1600]
    uint32_t mtu;            // [1500]
} rig_conf;

typedef struct rig {
    program left, right;
    dq_session *s;
    dq_region *out, *in[QUEUES];
    dq_queue *tx[QUEUES], *rx[QUEUES];
} rig;

static void must(int err, const dq_diag *d) {
    if (err == DQ_OK) return;
    fprintf(stderr, "%s: set-up: %s: %s\n", dq_case, dq_err_name(err), d->text);
    exit(1);
}

static bool run(const char *command) { return system(command) == 0; }

static dq_region *add_region(dq_session *s, const char *name, uint32_t bufs, uint32_t buf_size) {
    dq_diag d = {{0}};
    dq_region_conf c = {.affinity = -1, .num_bufs = bufs, .buf_size = buf_size};
    dq_region *r;
    snprintf(c.name, sizeof c.name, "%s", name);
    must(dq_region_add(s, &c, &r, &d), &d);
    return r;
}

// Makes the devices again, with so many queues each way.
static bool make_pair(uint32_t n) {
    char command[256];
    run("ip link del left 2>/dev/null");
    snprintf(command, sizeof command,
             "ip link add left numrxqueues %u numtxqueues %u type veth peer name right numrxqueues %u "
             "numtxqueues %u && ip link set left up && ip link set right up",
             n, n, n, n);
    return run(command);
}

// regions: one for each queue.
static void add_iface(dq_session *s, const char *device, program *p, dq_dir dir, dq_region **regions,
                      uint32_t n, dq_queue **q) {
    dq_diag d = {{0}};
    dq_iface_conf ic = {.engine = "xdp"};
    dq_iface *i;
    snprintf(ic.name, sizeof ic.name, "%s", device);
    snprintf(ic.address, sizeof ic.address, "%s", device);
    must(dq_iface_add(s, &ic, &i, &d), &d);
    for (uint32_t k = 0; k < n; k++) {
        dq_queue_conf qc = {
            .id = k, .dir = dir, .direct = 1, .batch_size = BATCH, .n_regions = 1, .regions = {regions[k]}};
        snprintf(qc.name, sizeof qc.name, "q%u", k);
        must(dq_queue_add(i, &qc, &q[k], &d), &d);
        if (dir == DQ_RX) atomic_store(&q[k]->rx.consumed, true);
    }
    DQ_CHECK(program_open(p, device));
    dq_xdp x = {.steer = p->steer, .native = true};
    dq_iface_xdp(i, &x);
}

// Datagrams to PORT + k go to queue k.
static void set_rules(dq_iface *i, uint32_t n) {
    dq_diag d = {{0}};
    dq_rule rules[QUEUES];
    for (uint32_t k = 0; k < n; k++) {
        uint16_t port = (uint16_t)(PORT + k);
        rules[k] = (dq_rule){.match = {.set = DQ_MATCH_UDP_DST, .udp_dst = {port, port}},
                             .order = k,
                             .flow_id = 1 + k,
                             .n_queues = 1};
        rules[k].queues[0] = (uint16_t)k;
    }
    must(dq_iface_change_rules(i, NULL, 0, rules, n, NULL, &d), &d);
}

static rig *rig_open(rig_conf c) {
    rig *r = calloc(1, sizeof *r);
    dq_diag d = {{0}};
    dq_session_conf sc = {.rx_meta_buffers = 64, .tx_meta_buffers = 64};
    char mtu[128];
    uint32_t size = c.mtu ? c.mtu : 1500;
    uint32_t n = c.queues ? c.queues : 1, buf_size = c.buf_size ? c.buf_size : 1600;
    DQ_CHECK(make_pair(c.device_queues ? c.device_queues : 1));
    snprintf(mtu, sizeof mtu, "ip link set left mtu %u && ip link set right mtu %u", size, size);
    DQ_CHECK(run(mtu));
    must(dq_session_new(&sc, &r->s, &d), &d);
    r->out = add_region(r->s, "out", 1024, buf_size);
    for (uint32_t k = 0; k < QUEUES; k++)
        r->in[k] = k > 0 && !c.own
                       ? r->in[0]
                       : add_region(r->s, k == 0 ? "in" : "in2", c.bufs ? c.bufs : 4096, buf_size);
    add_iface(r->s, "left", &r->left, DQ_TX, (dq_region *[]){r->out, r->out}, n, r->tx);
    add_iface(r->s, "right", &r->right, DQ_RX, r->in, n, r->rx);
    must(dq_session_open(r->s, &d), &d);
    set_rules(r->rx[0]->iface, n);
    must(dq_session_start(r->s, &d), &d);
    return r;
}

static void rig_close(rig *r) {
    DQ_EQ(dq_session_close(r->s), 0);
    program_close(&r->left);
    program_close(&r->right);
    free(r);
}

static const dqi_port *port_of(const rig *r) { return dqi_port_of(r->rx[0]->iface); }

static dq_line port_line(const rig *r) {
    dq_line lines[16];
    uint32_t n = dq_ledger(r->s, lines, 16);
    for (uint32_t k = 0; k < n && k < 16; k++)
        if (lines[k].kind == DQ_LINE_WIRE && strcmp(lines[k].name, "right") == 0) return lines[k];
    dq_failed(__FILE__, __LINE__, "no line of the port");
    return lines[0];
}

static uint64_t copied(const rig *r, uint32_t k) { return dqi_get(&r->rx[k]->c.extra[DQ_EXTRA_COPIED]); }

// ---- frames -----------------------------------------------------------------------------------------------

static uint32_t length_of(const rig *r, uint64_t seq) {
    uint32_t most = dqi_eth_link.mtu(r->rx[0]->iface) + 14;
    return 60 + (uint32_t)(seq * 37 % (most - 59));
}

// Sends frames first to first + n - 1 of receive queue k by a device queue, and waits until the kernel has
// them.
static void send_by(const rig *r, uint32_t from, uint32_t k, uint64_t first, uint32_t n) {
    dq_queue *q = r->tx[from];
    dq_burst *b;
    DQ_EQ(dq_tx_alloc(q, n, &b), DQ_OK);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t len = length_of(r, first + i);
        dq_burst_set_len(b, 0, i, len);
        bed_frame(r->s->core.base + b->off[0][i], len, (uint16_t)(1000 + k), (uint16_t)(PORT + k), first + i);
    }
    DQ_EQ(dq_tx_send(q, b), DQ_OK);
    const int64_t until = dqi_mono_ns() + INT64_C(20000000000);
    while (dqi_gauge_get(&q->held) > 0 && dqi_mono_ns() < until)
        dqi_tx_poll(q);
    DQ_EQ(dqi_gauge_get(&q->held), 0);
}

static void send_frames(const rig *r, uint32_t k, uint64_t first, uint32_t n) { send_by(r, k, k, first, n); }

// Takes the frames of queue k from *next on, n at least, or those that come within some seconds.
static uint32_t take_frames(const rig *r, uint32_t k, uint32_t n, uint64_t *next) {
    const int64_t until = dqi_mono_ns() + INT64_C(5000000000);
    dq_queue *q = r->rx[k];
    uint8_t want[16384];
    uint32_t got = 0;
    while (got < n && dqi_mono_ns() < until) {
        dq_burst *b = dqi_burst_get(q->bursts);
        got += (uint32_t)q->iface->ops->rx(q, &b, BATCH);
        for (uint32_t i = 0; i < b->n; i++, ++*next) {
            uint32_t len = length_of(r, *next);
            bed_frame(want, len, (uint16_t)(1000 + k), (uint16_t)(PORT + k), *next);
            DQ_EQ(b->len[0][i], len);
            DQ_EQ_BYTES(r->s->core.base + b->off[0][i], want, len);
            DQ_EQ(b->flow[i], 1 + k);
        }
        dqi_add(&q->c.out, b->n);
        dq_burst_unref(b);
    }
    return got;
}

// Sends and takes n frames, a batch at a time: the device has room for no more.
static void pass(const rig *r, uint32_t n) {
    uint64_t next = 0;
    for (uint64_t at = 0; at < n; at += BATCH) {
        send_frames(r, 0, at, BATCH);
        DQ_EQ(take_frames(r, 0, BATCH, &next), BATCH);
    }
    dq_line l = port_line(r);
    DQ_EQ(l.in, n);
    DQ_EQ(l.out, n);
    DQ_EQ(l.extra[DQ_EXTRA_KERNEL_DROPPED], 0);
}

// ---- cases ------------------------------------------------------------------------------------------------

// More frames than a ring has places, each in the queue's own region.
static void in_place(void) {
    rig *r = rig_open((rig_conf){0});
    DQ_CHECK(port_of(r)->direct);
    pass(r, 3 * XSK_RING);
    DQ_EQ(copied(r, 0), 0);
    rig_close(r);
}

// Frames of up to several parts each way, out of a region of the driver's own.
static void in_parts(void) {
    rig *r = rig_open((rig_conf){.buf_size = 9018, .mtu = 9000});
    DQ_CHECK(!port_of(r)->direct);
    if (((const xsk_port *)port_of(r)->state)->frags) {
        pass(r, 16 * BATCH);
        DQ_EQ(copied(r, 0), 16 * BATCH);
    }
    rig_close(r);
}

// Frames that nothing reads: what the kernel had no buffer for is its loss, to the frame.
static void no_buffers(void) {
    rig *r = rig_open((rig_conf){.bufs = 256});
    const xsk_socket *x = port_of(r)->queues[0].state;
    uint64_t next = 0, sent = 0, lost = 0;
    for (; sent < 1024; sent += BATCH) {
        const int64_t until = dqi_mono_ns() + INT64_C(5000000000);
        send_frames(r, 0, sent, BATCH);
        do { // until the device has handed over all
            lost = port_line(r).extra[DQ_EXTRA_KERNEL_DROPPED];
        } while (__atomic_load_n(x->rx.producer, __ATOMIC_ACQUIRE) + lost < sent + BATCH &&
                 dqi_mono_ns() < until);
    }
    DQ_CHECK(lost > 0);
    DQ_EQ(take_frames(r, 0, (uint32_t)(sent - lost), &next) + lost, sent);
    for (uint32_t k = 0; k < 8; k++) { // and it continues
        send_frames(r, 0, next, BATCH);
        DQ_EQ(take_frames(r, 0, BATCH, &next), BATCH);
    }
    rig_close(r);
}

typedef struct side {
    const rig *r;
    uint32_t k;
    bool sends;
    _Atomic uint32_t *taken; // of queue k
} side;

enum { EACH = 32 * BATCH };

// The senders wait for the receivers, as the device has few places and two of them.
static void *work(void *arg) {
    const side *s = arg;
    uint64_t next = 0;
    for (uint32_t at = 0; at < EACH; at += BATCH / 2) {
        if (s->sends) {
            const int64_t until = dqi_mono_ns() + INT64_C(20000000000);
            while (atomic_load(s->taken) < at && dqi_mono_ns() < until)
                dqi_yield();
            send_frames(s->r, s->k, at, BATCH / 2);
        } else {
            DQ_EQ(take_frames(s->r, s->k, BATCH / 2, &next), BATCH / 2);
            atomic_store(s->taken, (uint32_t)next);
        }
    }
    return NULL;
}

// Two queues each way on one socket each, and four threads.
static void threads(void) {
    rig *r = rig_open((rig_conf){.queues = QUEUES});
    pthread_t t[2 * QUEUES];
    side sides[2 * QUEUES];
    _Atomic uint32_t taken[QUEUES] = {0};
    for (uint32_t k = 0; k < 2 * QUEUES; k++) {
        sides[k] = (side){r, k / 2, k % 2 == 0, &taken[k / 2]};
        DQ_EQ(pthread_create(&t[k], NULL, work, &sides[k]), 0);
    }
    for (uint32_t k = 0; k < 2 * QUEUES; k++)
        pthread_join(t[k], NULL);
    dq_line l = port_line(r);
    DQ_EQ(l.in, QUEUES * EACH);
    DQ_EQ(l.out, QUEUES * EACH);
    DQ_EQ(copied(r, 0) + copied(r, 1), 0); // their region is one
    rig_close(r);
}

// A device queue for each receive queue: what comes by its queue's device queue is not copied, what comes by
// another's is.
static void homes(void) {
    enum { N = 8 * BATCH };
    rig *r = rig_open((rig_conf){.queues = QUEUES, .device_queues = QUEUES, .own = true});
    uint64_t next[QUEUES] = {0};
    DQ_EQ(port_of(r)->n_queues, QUEUES);
    for (uint32_t crossed = 0; crossed < 2; crossed++) {
        for (uint64_t at = crossed * N; at < (crossed + 1) * N; at += BATCH)
            for (uint32_t k = 0; k < QUEUES; k++) {
                send_by(r, k ^ crossed, k, at, BATCH);
                DQ_EQ(take_frames(r, k, BATCH, &next[k]), BATCH);
            }
        for (uint32_t k = 0; k < QUEUES; k++)
            DQ_EQ(copied(r, k), crossed * N);
    }
    dq_line l = port_line(r);
    DQ_EQ(l.in, 2 * QUEUES * N);
    DQ_EQ(l.out, 2 * QUEUES * N);
    rig_close(r);
}

// A consumer that keeps all of queue 0's packets holds up its own queue alone: queue 1's come by device queue
// 0.
static void hoards(void) {
    enum { BUFS = 256, KEPT = 64 };
    rig *r = rig_open((rig_conf){.queues = QUEUES, .device_queues = QUEUES, .own = true, .bufs = BUFS});
    const _Atomic uint64_t *none = &r->rx[0]->c.dropped[DQ_DROP_NO_PACKET_BUFFER];
    dq_burst *kept[KEPT];
    uint32_t n = 0;
    uint64_t next = 0;
    for (; n < KEPT && dqi_get(none) == 0; n++) {
        send_by(r, 0, 0, n * (BATCH / 4), BATCH / 4);
        kept[n] = dqi_burst_get(r->rx[0]->bursts);
        const int64_t until = dqi_mono_ns() + INT64_C(5000000000);
        while (kept[n]->n + dqi_get(none) < BATCH / 4 && dqi_mono_ns() < until)
            r->rx[0]->iface->ops->rx(r->rx[0], &kept[n], BATCH);
    }
    DQ_CHECK(dqi_get(none) > 0);
    for (uint64_t at = 0; at < 16 * BATCH; at += BATCH / 4) {
        send_by(r, 0, 1, at, BATCH / 4);
        DQ_EQ(take_frames(r, 1, BATCH / 4, &next), BATCH / 4);
    }
    DQ_EQ(port_line(r).extra[DQ_EXTRA_KERNEL_DROPPED], 0);
    for (uint32_t k = 0; k < n; k++) {
        dqi_add(&r->rx[0]->c.out, kept[k]->n);
        dq_burst_unref(kept[k]);
    }
    rig_close(r);
}

static dq_queue *join(const rig *r, dq_dir dir) {
    dq_diag d = {{0}};
    dq_queue *q;
    dq_queue_conf qc = {.id = 1,
                        .name = "later",
                        .dir = dir,
                        .direct = 1,
                        .batch_size = BATCH,
                        .n_regions = 1,
                        .regions = {dir == DQ_RX ? r->in[0] : r->out}};
    must(dq_queue_join(dir == DQ_RX ? r->rx[0]->iface : r->tx[0]->iface, &qc, &q, &d), &d);
    return q;
}

static void leave(dq_queue *q) {
    dq_diag d = {{0}};
    const int64_t until = dqi_mono_ns() + INT64_C(20000000000);
    must(dq_queue_delete(q, &d), &d);
    while (!dq_queue_leave(q) && dqi_mono_ns() < until)
        dqi_queue_poll(q);
    DQ_CHECK(dqi_queue_gone(q));
}

// Queues are added and deleted on the sockets of the open. Where the last packets of a queue are all too
// long, no completion follows, and their burst is free at once. Device queues keep buffers, as queues share
// them.
static void come_and_go(void) {
    enum { LIVES = 3, LONG = 4 };
    rig *r = rig_open((rig_conf){0});
    const xsk_socket *x = port_of(r)->queues[0].state;
    uint64_t next = 0;
    DQ_EQ(x->reserve, 0);
    for (uint32_t life = 1; life <= LIVES; life++) {
        dq_queue *rx = join(r, DQ_RX);
        dq_burst *b;
        DQ_EQ(x->reserve, x->most_posted / 4);
        r->tx[1] = join(r, DQ_TX);
        send_by(r, 1, 0, next, BATCH);
        DQ_EQ(take_frames(r, 0, BATCH, &next), BATCH);
        const int64_t until = dqi_mono_ns() + INT64_C(20000000000);
        while (xsk_held(r->tx[1]) > 0 && dqi_mono_ns() < until)
            dqi_tx_poll(r->tx[1]);
        DQ_EQ(dq_tx_alloc(r->tx[1], LONG, &b), DQ_OK);
        dq_burst_set_len(b, 0, -1, 1600);
        DQ_EQ(dq_tx_send(r->tx[1], b), DQ_OK);
        dqi_tx_poll(r->tx[1]);
        DQ_CHECK(dqi_burst_pool_whole(r->tx[1]->bursts));
        DQ_EQ(dqi_get(&r->tx[1]->c.dropped[DQ_DROP_TOO_LONG]), life * LONG);
        leave(r->tx[1]);
        leave(rx);
    }
    dq_diag d = {{0}};
    dq_region_conf c = {.name = "later", .affinity = -1, .num_bufs = 64, .buf_size = 1600};
    dq_region *region;
    DQ_EQ(dq_session_region_join(r->s, &c, NULL, &region, &d), DQ_NOT_SUPPORTED); // the UMEM is the open's
    rig_close(r);
}

// A session that ends with frames in the receiver's ring, and some that were not sent as the peer is down.
static void ends_early(void) {
    rig *r = rig_open((rig_conf){0});
    dq_burst *b;
    send_frames(r, 0, 0, BATCH);
    DQ_CHECK(run("ip link set right down"));
    DQ_EQ(dq_tx_alloc(r->tx[0], BATCH, &b), DQ_OK);
    dq_burst_set_len(b, 0, -1, 60);
    DQ_EQ(dq_tx_send(r->tx[0], b), DQ_OK);
    dqi_tx_poll(r->tx[0]);
    rig_close(r);
}

int main(int argc, char **argv) {
    program p = {.fd = -1, .link = -1};
    dq_begin(argc, argv);
    if (unshare(CLONE_NEWNET) != 0) dq_lack("netns", "no right to make a network namespace");
    if (access("/proc/sys/net/ipv6", F_OK) == 0 &&
        !run("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6"))
        dq_lack("netns", "IPv6 can't be switched off");
    if (!make_pair(1)) dq_lack("netns", "ip(8) makes no pair of virtual Ethernet devices");
    if (!program_open(&p, "right")) dq_lack("xdp", "this kernel, or its emulation, takes no eBPF program");
    program_close(&p);
    DQ_RUN(in_place);
    DQ_RUN(in_parts);
    DQ_RUN(no_buffers);
    DQ_RUN(threads);
    DQ_RUN(homes);
    DQ_RUN(hoards);
    DQ_RUN(come_and_go);
    DQ_RUN(ends_early);
    return dq_done();
}
