// remarks.c: most packets of an interface share one remark, stored in their link. Others (comments, flags,
// drop counts) are looked up by hash; at most MOST different ones are stored, further ones count as lost.
#include "engine/replay/remarks.h"

#include <stdlib.h>
#include <string.h>

#define MOST 65536

struct dqi_remarks_block {
    struct dqi_remarks_block *next;
    _Alignas(16) uint8_t bytes[];
};

static void *keep(dqi_remarks *r, size_t bytes) {
    struct dqi_remarks_block *b = calloc(1, sizeof *b + bytes);
    if (!b) return NULL;
    b->next = r->blocks;
    r->blocks = b;
    return b->bytes;
}

// ---- links ------------------------------------------------------------------------------------------------

static dqi_origin_link *new_link(dqi_remarks *r, const dqi_capture_link *l) {
    dqi_origin_link *link = keep(r, sizeof *link);
    if (!link) return NULL;
    memcpy(link->name, l->name, sizeof link->name);
    memcpy(link->about, l->about, sizeof link->about);
    link->fcs = l->fcs;
    link->plain.link = link;
    return link;
}

// Returns the link of p's interface; NULL if it has no metadata, or no memory is free.
static const dqi_origin_link *link_of(dqi_remarks *r, const dqi_capture *c, const dqi_capture_packet *p) {
    const dqi_capture_link *l = &c->links[p->interface];
    if (!l->name[0] && !l->about[0] && l->fcs < 0 && c->n_links == 1) return NULL;
    if (r->section != c->section) r->n_links = 0;
    r->section = c->section;
    if (p->interface >= r->links_cap) {
        uint32_t cap = 2 * (p->interface + 1);
        dqi_origin_link **more = realloc(r->links, cap * sizeof *more);
        if (!more) return NULL;
        r->links = more;
        r->links_cap = cap;
    }
    for (; r->n_links <= p->interface; r->n_links++)
        r->links[r->n_links] = NULL;
    if (!r->links[p->interface]) r->links[p->interface] = new_link(r, l);
    return r->links[p->interface];
}

// ---- remarks ----------------------------------------------------------------------------------------------

static uint64_t hash(const dqi_remark *m) {
    const uint8_t *p = (const uint8_t *)m;
    uint64_t h = 14695981039346656037u; // FNV-1a
    for (size_t i = 0; i < sizeof *m; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h ^ h >> 32;
}

static bool grow(dqi_remarks *r) {
    uint32_t cap = r->cap ? 2 * r->cap : 64;
    dqi_remark **table = calloc(cap, sizeof *table);
    if (!table) return false;
    for (uint32_t i = 0; i < r->cap; i++) {
        if (!r->table[i]) continue;
        uint32_t at = (uint32_t)hash(r->table[i]) & (cap - 1);
        while (table[at])
            at = (at + 1) & (cap - 1);
        table[at] = r->table[i];
    }
    free(r->table);
    r->table = table;
    r->cap = cap;
    return true;
}

// Returns the stored remark equal to m; NULL if it cannot be stored.
static const dqi_remark *kept(dqi_remarks *r, const dqi_remark *m) {
    if (2 * r->n >= r->cap && !grow(r)) return NULL;
    uint32_t at = (uint32_t)hash(m) & (r->cap - 1);
    for (; r->table[at]; at = (at + 1) & (r->cap - 1))
        if (memcmp(r->table[at], m, sizeof *m) == 0) return r->table[at];
    if (r->n == MOST || !(r->table[at] = keep(r, sizeof *m))) return NULL;
    memcpy(r->table[at], m, sizeof *m);
    r->n++;
    return r->table[at];
}

const dqi_remark *dqi_remarks_of(dqi_remarks *r, const dqi_capture *c, const dqi_capture_packet *p) {
    const dqi_origin_link *link = link_of(r, c, p);
    if (p->comment_len == 0 && !p->has_flags && p->dropped == 0) return link ? &link->plain : NULL;
    dqi_remark m;
    memset(&m, 0, sizeof m); // padding is hashed too
    m.link = link;
    m.dropped = p->dropped;
    m.flags = p->flags;
    m.has_flags = p->has_flags;
    size_t n = p->comment_len < sizeof m.comment ? p->comment_len : sizeof m.comment - 1;
    if (n > 0) memcpy(m.comment, p->comment, n);
    const dqi_remark *found = kept(r, &m);
    r->lost += !found || p->comment_len > n;
    return found ? found : link ? &link->plain : NULL;
}

void dqi_remarks_again(dqi_remarks *r) { r->section = 0; }

void dqi_remarks_free(dqi_remarks *r) {
    for (struct dqi_remarks_block *b = r->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(r->links);
    free(r->table);
    *r = (dqi_remarks){0};
}
