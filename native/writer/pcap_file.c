// pcap_file.c: packets as records of a pcap file (draft-ietf-opsawg-pcap: version 2.4, little endian, link
// type 1, Ethernet) or as blocks of a pcapng file (pcapng.h).
//
// The segments of a packet become one contiguous record. Payloads get generated headers (pseudo_header.h); a
// TCP chunk that exceeds an IP packet becomes several records. A pcapng file describes an interface before
// its first packet. Runs on the writer's thread.
#include "writer/pcap_file.h"
#include "capture/capture_file.h"
#include "core/byteorder.h"
#include "core/peers.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "writer/format.h"
#include "writer/gather.h"
#include "writer/pcap_tail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S        1000000000
#define INTERFACE_BYTES 1024 // maximum of a description or statistics, without comment

// ---- file header ------------------------------------------------------------------------------------------

static uint32_t file_header(const dqi_pcap_file *p, uint8_t *h) {
    if (p->conf.ng) return dqi_pcapng_section(h, p->conf.comment);
    memset(h, 0, DQI_PCAP_HEADER);
    dqi_put_le32(h, p->conf.micro ? DQI_PCAP_MAGIC_US : DQI_PCAP_MAGIC_NS);
    dqi_put_le16(h + 4, 2);
    dqi_put_le16(h + 6, 4);
    dqi_put_le32(h + 16, p->conf.snaplen);
    dqi_put_le32(h + DQI_PCAP_LINK, DQI_LINK_ETHERNET);
    return DQI_PCAP_HEADER;
}

// Appends after the last complete record of an existing file.
static int resume(dqi_pcap_file *p, const char *path) {
    dqi_pcap_tail tail;
    int err = dqi_pcap_find_tail(path, &p->conf, &tail);
    if (err != 0) return err;
    return dqi_buffered_file_resume(&p->file, path, tail.whole, tail.crc);
}

// Computes checksums of frames copied by GPUs.
static void seal_landed(dqi_buffered_file *f, bool used) {
    dqi_pcap_file *p = (dqi_pcap_file *)f;
    for (uint32_t k = 0; k < p->n_seals && used; k++)
        dqi_pseudo_seal(p->seals[k].frame, p->seals[k].len);
    p->n_seals = 0;
}

int dqi_pcap_open(dqi_pcap_file *p, const char *path, const dqi_pcap_conf *conf, bool overlap,
                  dqi_file_tally *tally) {
    *p = (dqi_pcap_file){.conf = *conf};
    if (p->conf.snaplen == 0) p->conf.snaplen = DQI_CAPTURE_MAX_FRAME;
    int err = dqi_buffered_file_open(&p->file, path, overlap, conf->mode);
    if (err != 0) return err;
    p->file.landed = seal_landed;
    if (conf->mode == DQI_DISK_KEEP && p->file.disk.regular) err = resume(p, path);
    if (err == 0 && (p->file.was == 0 || conf->ng)) { // several sections are valid
        uint8_t *h = dqi_buffered_file_room(&p->file, DQI_PCAPNG_ROOM, tally, &err);
        if (h) dqi_buffered_file_commit(&p->file, file_header(p, h), 0, false, false);
    }
    if (err == 0) err = dqi_buffered_file_flush(&p->file, tally);
    if (err == 0)
        tally->files++;
    else
        dqi_buffered_file_close(&p->file);
    return err;
}

// ---- interfaces of a pcapng file --------------------------------------------------------------------------

// Removes descriptions that were lost with a failed write.
static void forget_lost(dqi_pcap_file *p) {
    if (p->failures == p->file.failures) return;
    p->failures = p->file.failures;
    while (p->n_ifaces > 0 && p->ifaces[p->n_ifaces - 1].end > p->file.whole)
        p->n_ifaces--;
}

// Finds a description; *number: its number, or with false the next free one.
static bool find_iface(const dqi_pcap_file *p, const dq_iface *iface, const dqi_origin_link *link,
                       uint32_t *number) {
    for (*number = 0; *number < p->n_ifaces; ++*number)
        if (p->ifaces[*number].iface == iface && p->ifaces[*number].link == link) return true;
    return false;
}

// Gets the number of packet i's interface, and describes it first if it is new. 0, or -errno as dqi_pcap_add.
static int describe(dqi_pcap_file *p, const dq_burst *b, uint32_t i, uint32_t *number,
                    dqi_file_tally *tally) {
    const dq_iface *iface = b->queue ? b->queue->iface : NULL;
    const dqi_remark *remark = dqi_remark_of(b, i);
    const dqi_origin_link *link = remark ? remark->link : NULL;
    forget_lost(p);
    if (find_iface(p, iface, link, number)) return 0;
    if (link && p->n_ifaces >= DQI_PCAP_LINKS) {
        link = NULL;
        if (find_iface(p, iface, NULL, number)) return 0;
    }
    int err = 0;
    uint8_t *at = dqi_buffered_file_room(&p->file, INTERFACE_BYTES, tally, &err);
    if (!at) return err;
    forget_lost(p);
    *number = p->n_ifaces;
    const char *name = iface ? iface->conf.name : "none", *about = iface ? iface->conf.address : "";
    if (link && link->name[0]) name = link->name;
    if (link && link->about[0]) about = link->about;
    uint32_t n = dqi_pcapng_interface(at, name, about, link ? link->fcs : -1, p->conf.snaplen, p->conf.micro);
    dqi_buffered_file_commit(&p->file, n, 0, false, false);
    p->ifaces[p->n_ifaces++] = (dqi_pcap_iface){iface, link, dqi_buffered_file_size(&p->file)};
    return 0;
}

static void count_iface(const dq_iface *i, dqi_pcapng_statistics *s) {
    for (uint32_t q = 0; q < i->n_rx; q++) {
        const dqi_counters *c = &i->rx[q]->c;
        s->received += dqi_get(&c->in);
        s->dropped += dqi_get(&c->dropped[DQ_DROP_NO_PACKET_BUFFER]) +
                      dqi_get(&c->dropped[DQ_DROP_NO_BURST_BUFFER]) +
                      dqi_get(&c->dropped[DQ_DROP_QUEUE_FULL]) + dqi_get(&c->extra[DQ_EXTRA_NIC_MISSED]);
        s->osdropped += dqi_get(&c->extra[DQ_EXTRA_KERNEL_DROPPED]);
    }
}

// Whether description k is the only one of its interface, so that the interface's counters apply to it.
static bool is_lone(const dqi_pcap_file *p, uint32_t k) {
    uint32_t n = 0;
    for (uint32_t j = 0; j < p->n_ifaces; j++)
        n += p->ifaces[j].iface == p->ifaces[k].iface;
    return n == 1;
}

int dqi_pcap_end(dqi_pcap_file *p, int64_t now, const char *comment, dqi_file_tally *tally) {
    int err = 0;
    uint64_t unit = p->conf.micro ? 1000 : 1;
    for (uint32_t k = 0; p->conf.ng && k < p->n_ifaces && err == 0; k++) {
        const dq_iface *i = p->ifaces[k].iface;
        if (!i || !is_lone(p, k)) continue;
        uint8_t *at = dqi_buffered_file_room(&p->file, INTERFACE_BYTES, tally, &err);
        if (!at) break;
        forget_lost(p);
        if (k >= p->n_ifaces) break;
        dqi_pcapng_statistics s = {
            .interface = k, .start = (uint64_t)i->session->core.start_ns / unit, .end = (uint64_t)now / unit};
        count_iface(i, &s);
        dqi_buffered_file_commit(&p->file, dqi_pcapng_statistics_of(at, &s, comment), 0, false, false);
    }
    return err;
}

// ---- records ----------------------------------------------------------------------------------------------

// A record's packet and metadata.
typedef struct source {
    const dq_burst *b;
    uint32_t i, number; // its interface
    int64_t ts;
    bool timed;
} source;

static uint32_t head_bytes(const dqi_pcap_file *p) { return p->conf.ng ? DQI_PCAPNG_HEAD : DQI_PCAP_RECORD; }

static uint32_t tail_bytes(const dqi_pcap_file *p) { return p->conf.ng ? DQI_PCAPNG_TAIL : 0; }

// Completes the record whose kept bytes lie at rec + head_bytes; returns its length.
static uint32_t seal(const dqi_pcap_file *p, const source *from, uint8_t *rec, uint32_t kept, uint32_t len) {
    uint64_t ts = from->ts < 0 ? 0 : (uint64_t)from->ts;
    if (p->conf.ng) {
        const dq_burst *b = from->b;
        const dqi_pcapng_packet at = {.interface = from->number,
                                      .queue = b->queue ? b->queue->conf.id : 0,
                                      .flow = b->flow ? b->flow[from->i] : 0,
                                      .ts = p->conf.micro ? ts / 1000 : ts,
                                      .kept = kept,
                                      .len = len,
                                      .timed = from->timed,
                                      .comment = dqi_op_comment(p->file.op),
                                      .remark = dqi_remark_of(b, from->i)};
        if (!p->file.landing && dqi_pcapng_is_simple(&at, p->conf.snaplen))
            return dqi_pcapng_simple_around(rec, &at);
        return dqi_pcapng_packet_around(rec, &at);
    }
    dqi_put_le32(rec, (uint32_t)(ts / NS_PER_S));
    dqi_put_le32(rec + 4, (uint32_t)(ts % NS_PER_S / (p->conf.micro ? 1000 : 1)));
    dqi_put_le32(rec + 8, kept);
    dqi_put_le32(rec + 12, len);
    return DQI_PCAP_RECORD + kept;
}

static int add_frame(dqi_pcap_file *p, const source *from, dqi_file_tally *tally) {
    uint32_t len = dqi_packet_len(from->b, from->i), kept = len < p->conf.snaplen ? len : p->conf.snaplen;
    uint32_t had = len + dqi_cut_of(from->b, from->i);
    int err = 0;
    uint8_t *rec = dqi_buffered_file_room(&p->file, head_bytes(p) + kept + tail_bytes(p), tally, &err);
    if (!rec) return err;
    dqi_gather(&p->file, from->b, from->i, 0, rec + head_bytes(p), kept);
    dqi_buffered_file_commit(&p->file, seal(p, from, rec, kept, had), kept, true, kept < len);
    return 0;
}

// Adds a record with bytes [at, at + n) of the payload after generated headers.
static int add_part(dqi_pcap_file *p, const source *from, uint32_t at, uint32_t n, bool last, bool cut,
                    dqi_talk *talk, const dqi_endpoint ends[2], dqi_file_tally *tally) {
    int err = p->n_seals == DQI_PCAP_SEALS ? dqi_buffered_file_land(&p->file, tally) : 0;
    if (err != 0) return err;
    uint8_t *rec = dqi_buffered_file_room(&p->file, head_bytes(p) + DQI_PSEUDO_MAX_HEADER + n + tail_bytes(p),
                                          tally, &err);
    if (!rec) return err;
    uint8_t *frame = rec + head_bytes(p);
    uint32_t header = dqi_pseudo_put(talk, &ends[0], &ends[1], frame, n);
    dqi_gather(&p->file, from->b, from->i, at, frame + header, n);
    uint32_t len = header + n;
    if (!p->file.landing)
        dqi_pseudo_seal(frame, len);
    else
        p->seals[p->n_seals++] = (dqi_pcap_seal){frame, len};
    uint32_t kept = len < p->conf.snaplen ? len : p->conf.snaplen;
    dqi_buffered_file_commit(&p->file, seal(p, from, rec, kept, len), kept > header ? kept - header : 0, last,
                             cut || kept < len);
    return 0;
}

static int add_payload(dqi_pcap_file *p, const source *from, dqi_file_tally *tally) {
    if (!p->talks && !(p->talks = dqi_talks_new())) return -ENOMEM;
    dqi_talk *talk = dqi_talks_of(p->talks, from->b);
    // Addresses stored with the packet are preferred, as the connection may be gone.
    dqi_endpoint ends[] = {dqi_endpoint_of(dqi_burst_peer_addr(from->b, from->i)),
                           dqi_talk_to(talk, from->b, from->i)};
    if (ends[0].family == 0) ends[0] = talk->peer;
    uint32_t left = dqi_packet_len(from->b, from->i), at = 0;
    do {
        uint32_t n = left < DQI_PSEUDO_MAX_PAYLOAD ? left : DQI_PSEUDO_MAX_PAYLOAD;
        // Bytes beyond a datagram's maximum are cut; a stream continues in the next record.
        bool last = n == left || !talk->tcp;
        int err = add_part(p, from, at, n, last, last && n < left, talk, ends, tally);
        if (err != 0) return err;
        at += n;
        left = last ? 0 : left - n;
    } while (left > 0);
    return 0;
}

int dqi_pcap_add(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally) {
    source from = {.b = b, .i = i, .ts = ts == DQ_NO_TIME ? p->last_ns : ts, .timed = ts != DQ_NO_TIME};
    p->last_ns = from.ts;
    int err = p->conf.ng ? describe(p, b, i, &from.number, tally) : 0;
    if (err != 0) return err;
    return b->payload ? add_payload(p, &from, tally) : add_frame(p, &from, tally);
}

static uint64_t capture_bytes_of(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b,
                                 uint32_t i) {
    (void)c;
    const dqi_pcap_file *p = (const dqi_pcap_file *)f;
    uint64_t len = dqi_packet_len(b, i), around = head_bytes(p) + tail_bytes(p);
    uint64_t first = p->conf.ng ? 2 * INTERFACE_BYTES : 0; // a description, and its statistics
    if (!b->payload) return first + around + (len < p->conf.snaplen ? len : p->conf.snaplen);
    return first + len + (len / DQI_PSEUDO_MAX_PAYLOAD + 1) * (around + DQI_PSEUDO_MAX_HEADER);
}

int dqi_pcap_close(dqi_pcap_file *p) {
    dqi_talks_free(p->talks);
    p->talks = NULL;
    return dqi_buffered_file_close(&p->file);
}

// ---- formats ----------------------------------------------------------------------------------------------

static uint64_t capture_header_bytes(const dq_writer_conf *c) {
    return c->kind == DQ_WRITE_PCAPNG ? 512 + strlen(c->text) : DQI_PCAP_HEADER;
}

static int capture_open(dqi_buffered_file *f, const dqi_new_file *n, dqi_file_tally *tally) {
    const dqi_pcap_conf conf = {.ng = n->conf->kind == DQ_WRITE_PCAPNG,
                                .micro = n->conf->micro,
                                .mode = n->mode,
                                .snaplen = n->conf->snaplen,
                                .comment = n->conf->text};
    return dqi_pcap_open((dqi_pcap_file *)f, n->path, &conf, n->overlap, tally);
}

static int capture_add(dqi_buffered_file *f, const dq_burst *b, uint32_t i, int64_t ts,
                       dqi_file_tally *tally) {
    return dqi_pcap_add((dqi_pcap_file *)f, b, i, ts, tally);
}

static uint64_t pcapng_end_bytes(const dqi_buffered_file *f) {
    return (uint64_t)((const dqi_pcap_file *)f)->n_ifaces * INTERFACE_BYTES;
}

static int pcapng_end(dqi_buffered_file *f, const char *writer, int64_t now, dqi_file_tally *tally) {
    char comment[256];
    snprintf(comment, sizeof comment, "writer %s: %" PRIu64 " packets in this file", writer, f->packets);
    return dqi_pcap_end((dqi_pcap_file *)f, now, comment, tally);
}

static int capture_close(dqi_buffered_file *f) { return dqi_pcap_close((dqi_pcap_file *)f); }

const dqi_format dqi_format_pcap = {
    .about = {.kind = "pcap",
              .choice = "pcap",
              .suffix = ".pcap",
              .options = "append format overwrite precision snaplen"},
    .capture = true,
    .size = sizeof(dqi_pcap_file),
    .header_bytes = capture_header_bytes,
    .bytes_of = capture_bytes_of,
    .open = capture_open,
    .add = capture_add,
    .close = capture_close,
};

const dqi_format dqi_format_pcapng = {
    .about = {.kind = "pcap",
              .choice = "pcapng",
              .suffix = ".pcapng",
              .options = "append comment format overwrite precision snaplen"},
    .capture = true,
    .comments = true,
    .size = sizeof(dqi_pcap_file),
    .header_bytes = capture_header_bytes,
    .bytes_of = capture_bytes_of,
    .open = capture_open,
    .add = capture_add,
    .end_bytes = pcapng_end_bytes,
    .end = pcapng_end,
    .close = capture_close,
};
