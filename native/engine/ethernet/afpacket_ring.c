// afpacket_ring.c: fixed-size frames, passed one by one. TPACKET_V3 packs frames more tightly but passes
// whole blocks, and in quiet times the last one is a millisecond or more late. The kernel marks the work left
// undone in each frame: a stripped VLAN tag, an incomplete checksum, segmentation.
//
// Of a frame longer than those of the ring the kernel puts the first bytes there and all of it into the
// socket's receive buffer (PACKET_COPY_THRESH), in the same order. So only long frames take room for such.
#include "engine/ethernet/afpacket_ring.h"
#include "core/region.h"
#include "packet/packet.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef PACKET_FANOUT_FLAG_IGNORE_OUTGOING // Linux 5.5
#define PACKET_FANOUT_FLAG_IGNORE_OUTGOING 0x4000
#endif
#define RING_BYTES (8u << 20)
#define LEAST      512 // frames
#define BLOCK      (256u << 10)
#define RESERVE    16 // bytes before a frame, for its tag
#define COPIES     16 // long frames of a read
#define COPY_BYTES (DQI_JOINED_MAX + 64u)
#define WAITING    (16 << 20) // bytes of long frames that wait in the kernel, which doubles it
#define IN_FRONT   128        // upper bound of the kernel's headers in front of a frame, with the reserve

static uint8_t *frame_at(const dqi_afpacket_ring *r, uint32_t k) {
    return r->map + (size_t)(k / r->per_block) * BLOCK + (size_t)(k % r->per_block) * r->frame_bytes;
}

// ---- open and close ---------------------------------------------------------------------------------------

static int set(int fd, int option, int value) {
    return setsockopt(fd, SOL_PACKET, option, &value, sizeof value) == 0 ? 0 : errno;
}

static int map_ring(dqi_afpacket_ring *r, uint32_t bytes) {
    r->frame_bytes = (bytes + IN_FRONT + 127) / 128 * 128;
    r->per_block = BLOCK / r->frame_bytes;
    uint32_t blocks = RING_BYTES / BLOCK;
    if (blocks * r->per_block < LEAST) blocks = LEAST / r->per_block + 1;
    struct tpacket_req req = {.tp_block_size = BLOCK, .tp_block_nr = blocks, .tp_frame_size = r->frame_bytes};
    req.tp_frame_nr = r->n_frames = req.tp_block_nr * r->per_block;
    if (setsockopt(r->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req) != 0) return errno;
    void *map =
        mmap(NULL, (size_t)req.tp_block_nr * req.tp_block_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (map == MAP_FAILED) return errno;
    r->map = map;
    return 0;
}

// Attaches a filter that rejects all frames: a socket in a fanout group cannot be unbound.
static int refuse_all(int fd) {
    struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog prog = {.len = 1, .filter = &none};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog) == 0 ? 0 : errno;
}

static int join_group(int fd, int *group, bool outgoing) {
    if (*group == DQI_PACKET_ALONE) return 0;
    const bool first = *group == DQI_PACKET_NEW_GROUP;
    int how = PACKET_FANOUT_HASH, id = first ? 0 : *group;
    if (!outgoing) how |= PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    if (first) how |= PACKET_FANOUT_FLAG_UNIQUEID;
    int err = set(fd, PACKET_FANOUT, (int)((uint32_t)how << 16 | (uint32_t)id));
    socklen_t len = sizeof id;
    if (err != 0 || !first) return err;
    if (getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &id, &len) != 0) return errno;
    *group = id & 0xffff;
    return 0;
}

// Has the kernel keep frames that are longer than those of the ring.
static int keep_long(dqi_afpacket_ring *r) {
    const int room = WAITING;
    r->copies =
        mmap(NULL, (size_t)COPIES * COPY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->copies == MAP_FAILED) {
        r->copies = NULL;
        return ENOMEM;
    }
    if (setsockopt(r->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0 &&
        setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) != 0)
        return errno;
    return set(r->fd, PACKET_COPY_THRESH, 1);
}

static int prepare(dqi_afpacket_ring *r, uint32_t bytes, int *group, bool outgoing, bool joined) {
    struct sockaddr_ll at = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = r->index};
    int err = set(r->fd, PACKET_VERSION, TPACKET_V2);
    if (err == 0) err = set(r->fd, PACKET_RESERVE, RESERVE);
    if (err == 0) err = set(r->fd, PACKET_VNET_HDR, 1);
    if (err == 0 && !outgoing) err = set(r->fd, PACKET_IGNORE_OUTGOING, 1);
    if (err == 0 && joined) err = keep_long(r);
    if (err == 0) err = refuse_all(r->fd);
    if (err == 0) err = map_ring(r, bytes);
    if (err == 0 && bind(r->fd, (struct sockaddr *)&at, sizeof at) != 0) err = errno;
    return err == 0 ? join_group(r->fd, group, outgoing) : err;
}

int dqi_afpacket_ring_open(dqi_afpacket_ring *r, int index, uint32_t bytes, int *group, bool outgoing,
                           bool joined) {
    *r = (dqi_afpacket_ring){.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                             .index = index};
    if (r->fd < 0) return errno;
    int err = prepare(r, bytes, group, outgoing, joined);
    if (err != 0) dqi_afpacket_ring_close(r);
    return err;
}

void dqi_afpacket_ring_start(dqi_afpacket_ring *r) {
    int none = 0;
    setsockopt(r->fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
}

void dqi_afpacket_ring_close(dqi_afpacket_ring *r) {
    if (r->map) munmap(r->map, (size_t)r->n_frames / r->per_block * BLOCK);
    if (r->copies) munmap(r->copies, (size_t)COPIES * COPY_BYTES);
    if (r->fd >= 0) close(r->fd);
    *r = (dqi_afpacket_ring){.fd = -1};
}

// ---- receive ----------------------------------------------------------------------------------------------

// Completes a transport checksum: its field holds the pseudo-header sum, to which the bytes from `start` on
// are added.
static void finish_checksum(uint8_t *p, uint32_t len, const struct virtio_net_hdr *v) {
    uint32_t start = v->csum_start, at = start + v->csum_offset;
    if (at + 2 > len) return;
    uint16_t sum = dqi_csum_fold(dqi_csum_add(p + start, len - start, 0));
    dqi_put_be16(p + at, sum != 0 ? sum : 0xffff);
}

// Frames that could not be passed on. full: the kernel had no room for a long frame.
typedef struct bad_frames {
    uint32_t cut, joined, full;
    uint64_t bytes;
} bad_frames;

// Returns true if a frame of session time ts arrived after the stop; `last` is the time of the frame before
// it. Frames received at once on two cores may be out of order.
static bool is_late(dqi_afpacket_ring *r, const dq_session *s, int64_t ts, int64_t last) {
    int64_t stop = dqi_stop_time(s);
    if (ts < stop) return false;
    r->stamps.last = last;
    r->over |= ts >= stop + DQI_ON_WAY_NS;
    return true;
}

// Takes the long frame of slot h from the socket: returns its bytes, behind its virtio_net_hdr, and their
// number in *len; less than tp_len if it is longer than DQI_JOINED_MAX.
static uint8_t *take_long(dqi_afpacket_ring *r, uint32_t *len) {
    uint8_t *p = r->copies + (size_t)r->n_copies++ * COPY_BYTES + RESERVE;
    const size_t before = sizeof(struct virtio_net_hdr);
    ssize_t n = recv(r->fd, p - before, before + DQI_JOINED_MAX, MSG_DONTWAIT);
    *len = n > (ssize_t)before ? (uint32_t)n - (uint32_t)before : 0;
    return p;
}

// Completes the frame of slot h at p. Returns false if it can't be passed on: it is truncated, or the kernel
// has joined it and the ring does not keep such.
static bool finish(const dqi_afpacket_ring *r, const struct tpacket2_hdr *h, uint8_t *p, uint32_t len,
                   bad_frames *bad) {
    struct virtio_net_hdr v;
    memcpy(&v, p - sizeof v, sizeof v);
    const bool joined = v.gso_type != VIRTIO_NET_HDR_GSO_NONE, cut = len < h->tp_len;
    if (cut || (joined && !r->copies)) {
        const bool full = r->copies && !(h->tp_status & TP_STATUS_COPY);
        bad->full += full;
        bad->joined += joined && !r->copies;
        bad->cut += cut && !full && (!joined || r->copies);
        bad->bytes += h->tp_len;
        return false;
    }
    if (v.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) finish_checksum(p, len, &v);
    return true;
}

// Returns false for frames that can't be passed on, or that were received after the stop.
static bool take(dqi_afpacket_ring *r, const dq_session *s, struct tpacket2_hdr *h, dqi_piece *out,
                 bad_frames *bad) {
    int64_t last = r->stamps.last,
            ts = dqi_stamps_time(&r->stamps, (int64_t)h->tp_sec * 1000000000 + h->tp_nsec);
    uint8_t *p = (uint8_t *)h + h->tp_mac;
    uint32_t len = h->tp_snaplen;
    if (h->tp_status & TP_STATUS_COPY) p = take_long(r, &len);
    if (is_late(r, s, ts, last) || !finish(r, h, p, len, bad)) return false;
    *out = (dqi_piece){.data = p, .len = len, .buf = DQI_NO_BUF};
    if (h->tp_status & TP_STATUS_VLAN_VALID) {
        out->vlan_tci = h->tp_vlan_tci;
        out->vlan_tpid = h->tp_status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : DQI_TYPE_VLAN;
    }
    out->ts = ts;
    return true;
}

static void count_bad(dqi_port *p, const bad_frames *bad) {
    const uint32_t n = bad->cut + bad->joined + bad->full;
    if (n == 0) return;
    dqi_add_shared(&p->c.in, n);
    dqi_add_shared(&p->c.in_bytes, bad->bytes);
    dqi_port_drop(p, DQ_DROP_TOO_LONG, bad->cut);
    dqi_port_drop(p, DQ_DROP_JOINED, bad->joined);
    dqi_port_drop(p, DQ_DROP_QUEUE_FULL, bad->full);
}

// After the stop, with an empty ring: frames timestamped earlier may still be on their way into it.
static void look_for_rest(dqi_afpacket_ring *r, dq_queue *reader) {
    int64_t end = dqi_stop_time(reader->session) + DQI_ON_WAY_NS;
    r->over |= dq_now(reader->session) >= end;
    if (!r->over && end < reader->next_ns) reader->next_ns = end;
}

uint32_t dqi_afpacket_ring_read(dqi_port_queue *l, dqi_piece *out, uint32_t max) {
    dqi_afpacket_ring *r = l->state;
    const dq_session *s = l->port->iface->session;
    uint32_t n = 0;
    bad_frames bad = {0};
    r->taken = r->n_copies = 0;
    if (!r->over && !dqi_receives(s)) look_for_rest(r, l->reader); // must precede the read of the ring
    while (n < max && r->taken < r->n_frames && r->n_copies < COPIES) {
        uint32_t k = r->head + r->taken;
        struct tpacket2_hdr *h = (void *)frame_at(r, k < r->n_frames ? k : k - r->n_frames);
        if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
        if (r->taken++ == 0) dqi_stamps_look(&r->stamps, s);
        n += take(r, s, h, &out[n], &bad);
    }
    count_bad(l->port, &bad);
    if (n == 0) dqi_afpacket_ring_release(l);
    return n;
}

void dqi_afpacket_ring_release(dqi_port_queue *l) {
    dqi_afpacket_ring *r = l->state;
    for (; r->taken > 0; r->taken--) {
        struct tpacket2_hdr *h = (void *)frame_at(r, r->head);
        __atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        if (++r->head == r->n_frames) r->head = 0;
    }
}

// ---- state of the socket ----------------------------------------------------------------------------------

int dqi_afpacket_ring_error(dqi_afpacket_ring *r) {
    int err = 0;
    socklen_t len = sizeof err;
    return getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 ? err : errno;
}

uint32_t dqi_afpacket_ring_lost(dqi_afpacket_ring *r) {
    struct tpacket_stats s = {0};
    socklen_t len = sizeof s;
    return getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0 ? s.tp_drops : 0;
}

bool dqi_afpacket_ring_gone(const dqi_afpacket_ring *r) {
    struct sockaddr_ll at = {0};
    socklen_t len = sizeof at;
    return getsockname(r->fd, (struct sockaddr *)&at, &len) == 0 && at.sll_ifindex != r->index;
}
