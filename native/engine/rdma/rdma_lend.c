// rdma_lend.c: memory lent to a peer, and memory lent by it.
//
// Each lease has its own registration with its own key, and is revoked by deregistration. Peers of this
// engine (detected when they connect) exchange notes: messages with a reserved immediate value, whose 88
// bytes are sent inline, so no memory is registered for them.
#include "core/err.h"
#include "engine/rdma/rdma_ops.h"
#include "engine/rdma/verbs_memory.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define NOTE_LEND   1
#define NOTE_REVOKE 2

// Note, in network byte order.
typedef struct note {
    uint32_t kind, access, slots, slot_bytes;
    uint64_t addr, bytes;
    uint32_t key, rest;
    char name[48];
} note;

_Static_assert(sizeof(note) == DQI_RDMA_NOTE_BYTES, "it goes inline");

struct dqi_rdma_lease {
    dqi_rdma_lease *next;
    vb_mr *mr;
    uint32_t conn;
};

// ---- notes ------------------------------------------------------------------------------------------------

static int send_note(dqi_rconn *c, uint32_t kind, const dq_remote *what) {
    note n = {.kind = htonl(kind),
              .access = htonl(what->access),
              .slots = htonl(what->slots),
              .slot_bytes = htonl(what->slot_bytes),
              .addr = htobe64(what->addr),
              .bytes = htobe64(what->bytes),
              .key = htonl((uint32_t)what->key)};
    memcpy(n.name, what->name, strlen(what->name));
    vb_sge sge = {.addr = (uintptr_t)&n, .length = sizeof n};
    int err = DQ_NO_SPACE_AVAILABLE;
    vb_send_wr *bad;
    dqi_rconn_lock(c);
    if (c->qp && !c->flushing && dqi_rconn_sending(c) < DQI_RDMA_DEPTH) {
        vb_send_wr wr = {.wr_id = (uint64_t)dqi_rconn_id(c) << 32 | DQI_RDMA_SEND | c->sent_tail,
                         .sg_list = &sge,
                         .num_sge = 1,
                         .opcode = VB_WR_SEND_WITH_IMM,
                         .imm_data = htonl(DQI_RDMA_NOTE),
                         .send_flags = VB_SEND_SIGNALED | VB_SEND_INLINE};
        int sys = vb_post_send(c->qp, &wr, &bad);
        err = sys == 0 ? DQ_OK : DQ_ESYS - sys;
        if (sys == 0) {
            c->sent[c->sent_tail % DQI_RDMA_DEPTH] = (dqi_rdma_sent){.queue = c->conn.tx};
            dqi_rconn_posted(c, 1);
        }
    }
    dqi_rconn_unlock(c);
    return err;
}

// Returns the index of a name among the peer's lent memory; n_remotes: not found.
static uint32_t find(const dqi_rconn *c, const char *name) {
    uint32_t k = 0;
    while (k < c->n_remotes && strcmp(c->remotes[k].name, name) != 0)
        k++;
    return k;
}

static bool put(dqi_rconn *c, const dq_remote *what) {
    uint32_t k = find(c, what->name);
    if (k == DQI_RDMA_REMOTES) return false;
    if (!c->remotes) c->remotes = calloc(DQI_RDMA_REMOTES, sizeof *c->remotes);
    if (!c->remotes) return false;
    c->remotes[k] = *what;
    if (k == c->n_remotes) c->n_remotes++;
    return true;
}

void dqi_rconn_take_note(dqi_rconn *c, const uint8_t *bytes, uint32_t len) {
    note n;
    if (len != sizeof n) return;
    memcpy(&n, bytes, sizeof n);
    dq_remote what = {.addr = be64toh(n.addr),
                      .bytes = be64toh(n.bytes),
                      .key = ntohl(n.key),
                      .access = ntohl(n.access),
                      .slots = ntohl(n.slots),
                      .slot_bytes = ntohl(n.slot_bytes)};
    memcpy(what.name, n.name, sizeof n.name - 1);
    uint32_t k = find(c, what.name);
    if (ntohl(n.kind) == NOTE_LEND) put(c, &what);
    if (ntohl(n.kind) == NOTE_REVOKE && k < c->n_remotes) c->remotes[k] = c->remotes[--c->n_remotes];
}

// ---- lent to the peer -------------------------------------------------------------------------------------

static dqi_rconn *open_conn(dqi_rdma *r, uint32_t conn, dq_diag *diag) {
    dqi_rconn *c = dqi_rconn_find(r, conn);
    if (c && dqi_rconn_state(c) == DQI_CONN_OPEN) return c;
    dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: connection %u is not open", r->iface->conf.name,
             conn);
    return NULL;
}

int dqi_rdma_lend(dq_iface *i, uint32_t conn, const dq_loan *loan, dq_lease *out, dq_diag *diag) {
    dqi_rdma *r = i->engine;
    dq_region *g = loan->region;
    dqi_rconn *c = open_conn(r, conn, diag);
    if (!c) return DQ_INVALID_PARAMETER;
    if (strlen(loan->name) >= sizeof((note *)0)->name)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: the name \"%s\" is longer than %zu bytes",
                        i->conf.name, loan->name, sizeof((note *)0)->name - 1);
    int access = dqi_rdma_rights(r->device, loan->access);
    dqi_rdma_lease *l = calloc(1, sizeof *l);
    void *at = g->base + g->offset;
    if (!l) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    int err = dqi_verbs_register(r->device->pd, g, access, i->conf.name, &l->mr, diag);
    if (err != DQ_OK) {
        free(l);
        return err;
    }
    *out = (dq_lease){.region = g,
                      .engine = l,
                      .what = {.addr = (uintptr_t)at,
                               .bytes = dqi_region_bytes(g),
                               .key = l->mr->rkey,
                               .access = loan->access,
                               .slots = loan->slots,
                               .slot_bytes = loan->slot_bytes}};
    memcpy(out->what.name, loan->name, sizeof loan->name);
    l->conn = conn;
    pthread_mutex_lock(&r->conns.lock);
    l->next = r->leases;
    r->leases = l;
    pthread_mutex_unlock(&r->conns.lock);
    if (!c->ours) return DQ_OK; // other peers are informed by the script
    err = send_note(c, NOTE_LEND, &out->what);
    if (err == DQ_OK) return DQ_OK;
    dqi_rdma_revoke(i, out);
    return dqi_fail(diag, err, "interface %s: cannot announce the lease to the peer of connection %u: %s",
                    i->conf.name, conn, dq_err_name(err));
}

int dqi_rdma_revoke(dq_iface *i, dq_lease *lease) {
    dqi_rdma *r = i->engine;
    dqi_rdma_lease *l = lease->engine;
    lease->engine = NULL;
    if (!r || !l) return DQ_OK;
    pthread_mutex_lock(&r->conns.lock);
    dqi_rdma_lease **at = &r->leases;
    while (*at && *at != l)
        at = &(*at)->next;
    bool live = *at != NULL;
    if (live) *at = l->next;
    pthread_mutex_unlock(&r->conns.lock);
    if (!live) return DQ_OK;
    int err = vb.dereg_mr(l->mr); // invalidates its key
    dqi_rconn *c = dqi_rconn_find(r, l->conn);
    if (c && c->ours && dqi_rconn_state(c) == DQI_CONN_OPEN) send_note(c, NOTE_REVOKE, &lease->what);
    free(l);
    return err == 0 ? DQ_OK : DQ_ESYS - (err > 0 ? err : errno);
}

void dqi_rdma_revoke_all(dqi_rdma *r) {
    while (r->leases) {
        dqi_rdma_lease *l = r->leases;
        r->leases = l->next;
        vb.dereg_mr(l->mr);
        free(l);
    }
}

// ---- lent by the peer -------------------------------------------------------------------------------------

bool dqi_rdma_lent(dq_iface *i, uint32_t conn, uint32_t k, dq_remote *out) {
    dqi_rconn *c = dqi_rconn_find(i->engine, conn);
    if (!c) return false;
    dqi_rconn_lock(c);
    bool there = k < c->n_remotes;
    if (there) *out = c->remotes[k];
    dqi_rconn_unlock(c);
    return there;
}

int dqi_rdma_declare(dq_iface *i, uint32_t conn, const dq_remote *remote, dq_diag *diag) {
    dqi_rdma *r = i->engine;
    dqi_rconn *c = dqi_rconn_find(r, conn);
    if (!c)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: there is no connection %u", i->conf.name,
                        conn);
    dqi_rconn_lock(c);
    bool ok = put(c, remote);
    dqi_rconn_unlock(c);
    return ok ? DQ_OK
              : dqi_fail(diag, DQ_NO_SPACE_AVAILABLE,
                         "interface %s: connection %u already has %d remote names", i->conf.name, conn,
                         DQI_RDMA_REMOTES);
}
