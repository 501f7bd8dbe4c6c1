#include "core/id_table.h"
#include "pipeline/iface.h"
#include "pipeline/rx_count.h"
#include "pipeline/session.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct count {
    dqi_count packets, bytes;
} count;

struct dqi_peer_counts {
    dqi_id_table keys;
    count of[DQI_KEY_IDS];
    dqi_key last; // key of the previous packet, valid if last_id is not 0; poller only
    uint32_t last_id;
};

dqi_peer_counts *dqi_peer_counts_new(void) { return calloc(1, sizeof(dqi_peer_counts)); }
void dqi_peer_counts_free(dqi_peer_counts *c) { free(c); }

static void add(dqi_peer_counts *c, const dqi_key *key, uint64_t packets, uint64_t bytes) {
    if (packets == 0) return;
    if (c->last_id == 0 || !dqi_key_same(*key, c->last)) {
        c->last = *key;
        c->last_id = dqi_key_id(&c->keys, *key);
    }
    dqi_add(&c->of[c->last_id].packets, packets);
    dqi_add(&c->of[c->last_id].bytes, bytes);
}

// Batches adjacent packets of one peer; all packets of a connection have the same peer.
void dqi_peer_count(dqi_peer_counts *c, const dq_burst *b, uint32_t from) {
    dqi_key before = {0}, key = {0};
    uint64_t packets = 0, bytes = 0;
    for (uint32_t i = from; i < b->n; i++) {
        if ((i == from || b->conn == 0) && !dqi_key_of_peer(b, i, &key)) continue;
        if (!dqi_key_same(key, before)) {
            add(c, &before, packets, bytes);
            before = key;
            packets = bytes = 0;
        }
        packets++;
        bytes += b->len[0][i];
    }
    add(c, &before, packets, bytes);
}

uint32_t dq_peer_counts(const dq_session *s, dq_peer_count *out, uint32_t max) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        for (uint32_t k = 0; k < s->ifaces[i]->n_rx; k++) {
            const dq_queue *q = s->ifaces[i]->rx[k];
            const dqi_peer_counts *c = q->rx.peer_counts;
            uint32_t end = c ? dqi_key_end(&c->keys) : 0;
            for (uint32_t id = DQI_KEY_OTHER; id < end; id++) {
                uint64_t packets = dqi_get(&c->of[id].packets);
                if (packets == 0 || n++ >= max) continue;
                dq_peer_count *to = &out[n - 1];
                *to = (dq_peer_count){.queue_id = q->conf.id, .packets = packets};
                snprintf(to->name, sizeof to->name, "%s", q->iface->conf.name);
                to->bytes = dqi_get(&c->of[id].bytes);
                if (id >= DQI_KEY_FIRST)
                    dqi_key_peer_text(c->keys.keys[id - DQI_KEY_FIRST], to->peer, sizeof to->peer);
            }
        }
    return n;
}
