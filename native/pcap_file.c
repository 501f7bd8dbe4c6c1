// pcap_file.c: packets as records of a pcap file (draft-ietf-opsawg-pcap: version 2.4, magic 0xa1b23c4d for
// times in nanoseconds, little endian, link type 1, Ethernet).
//
// The segments of a packet become one contiguous record. Payloads get headers (pseudo_header.h); a TCP chunk
// that is longer than an IP packet can be becomes several records. Runs on the writer's thread.
#include "pcap_file.h"
#include "burst.h"

#include <errno.h>
#include <string.h>

#define MAGIC_NS      0xa1b23c4du
#define LINK_ETHERNET 1
#define FILE_HEADER   24
#define REC_HEADER    16
#define NS_PER_S      1000000000

static void le16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void le32(uint8_t *p, uint32_t v) {
    le16(p, v & 0xffff);
    le16(p + 2, v >> 16);
}

uint32_t dqi_gather(const dq_burst *b, uint32_t i, uint32_t skip, uint8_t *dst, uint32_t max) {
    uint32_t done = 0;
    for (uint32_t s = 0; s < b->nseg && done < max; s++) {
        uint32_t len = b->len[s][i];
        if (skip >= len) {
            skip -= len;
            continue;
        }
        uint32_t n = len - skip;
        if (n > max - done) n = max - done;
        memcpy(dst + done, dqi_burst_base(b) + b->off[s][i] + skip, n);
        done += n;
        skip = 0;
    }
    return done;
}

int dqi_pcap_open(dqi_pcap_file *p, const char *path, uint32_t snaplen, bool overlap, dqi_file_tally *tally) {
    *p = (dqi_pcap_file){.snaplen = snaplen ? snaplen : DQI_PCAP_MAX_SNAPLEN};
    int err = dqi_block_open(&p->file, path, overlap);
    if (err != 0) return err;
    uint8_t *h = dqi_block_room(&p->file, FILE_HEADER, tally, &err);
    memset(h, 0, FILE_HEADER);
    le32(h, MAGIC_NS);
    le16(h + 4, 2);
    le16(h + 6, 4);
    le32(h + 16, p->snaplen);
    le32(h + 20, LINK_ETHERNET);
    dqi_block_commit(&p->file, FILE_HEADER, 0, false, false);
    err = dqi_block_flush(&p->file, tally);
    if (err == 0)
        tally->files++;
    else
        dqi_block_close(&p->file);
    return err;
}

static void record_header(uint8_t *rec, int64_t ts, uint32_t kept, uint32_t len) {
    if (ts < 0) ts = 0;
    le32(rec, (uint32_t)(ts / NS_PER_S));
    le32(rec + 4, (uint32_t)(ts % NS_PER_S));
    le32(rec + 8, kept);
    le32(rec + 12, len);
}

static int add_frame(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally) {
    uint32_t len = dqi_packet_len(b, i), kept = len < p->snaplen ? len : p->snaplen;
    int err = 0;
    uint8_t *rec = dqi_block_room(&p->file, REC_HEADER + kept, tally, &err);
    if (!rec) return err;
    record_header(rec, ts, kept, len);
    dqi_gather(b, i, 0, rec + REC_HEADER, kept);
    dqi_block_commit(&p->file, REC_HEADER + kept, kept, true, kept < len);
    return 0;
}

// One record with bytes [at, at + n) of payload i behind made-up headers.
static int add_part(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, uint32_t at, uint32_t n,
                    bool last, bool cut, dqi_talk *talk, const dqi_endpoint *from, dqi_file_tally *tally) {
    int err = 0;
    uint8_t *rec = dqi_block_room(&p->file, REC_HEADER + DQI_PSEUDO_MAX_HEADER + n, tally, &err);
    if (!rec) return err;
    uint8_t *frame = rec + REC_HEADER;
    uint32_t header = dqi_pseudo_put(talk, from, frame, n);
    dqi_gather(b, i, at, frame + header, n);
    uint32_t len = header + n;
    dqi_pseudo_seal(frame, len);
    uint32_t kept = len < p->snaplen ? len : p->snaplen;
    record_header(rec, ts, kept, len);
    dqi_block_commit(&p->file, REC_HEADER + kept, kept > header ? kept - header : 0, last, cut || kept < len);
    return 0;
}

static int add_payload(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally) {
    if (!p->talks && !(p->talks = dqi_talks_new())) return -ENOMEM;
    dqi_talk *talk = dqi_talks_of(p->talks, b);
    // What came with the packet holds longer than the connection.
    dqi_endpoint from = dqi_endpoint_of(dqi_burst_peer_addr(b, i));
    if (from.family == 0) from = talk->peer;
    uint32_t left = dqi_packet_len(b, i), at = 0;
    do {
        uint32_t n = left < DQI_PSEUDO_MAX_PAYLOAD ? left : DQI_PSEUDO_MAX_PAYLOAD;
        // What no datagram can hold is cut; a stream goes on in the next record.
        bool last = n == left || !talk->tcp;
        int err = add_part(p, b, i, ts, at, n, last, last && n < left, talk, &from, tally);
        if (err != 0) return err;
        at += n;
        left = last ? 0 : left - n;
    } while (left > 0);
    return 0;
}

int dqi_pcap_add(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally) {
    bool payload = b->queue && b->queue->iface->ops->payload;
    return payload ? add_payload(p, b, i, ts, tally) : add_frame(p, b, i, ts, tally);
}

int dqi_pcap_close(dqi_pcap_file *p) {
    dqi_talks_free(p->talks);
    p->talks = NULL;
    return dqi_block_close(&p->file);
}
