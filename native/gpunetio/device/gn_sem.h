// gn_sem.h: semaphores pass items from a producer to a consumer, in order: kernel to kernel, kernel to CPU,
// CPU to kernel.
//
// The producer is one thread. Consumers are any number of threads of one side, which take and release items
// in order.
#ifndef GN_SEM_H
#define GN_SEM_H

#include "gpunetio/device/gn_side.h"

typedef struct gn_sem {
    gn_side s;
    gn_sem_producer *producer;
    gn_sem_consumer *consumer;
    gn_sem_item *items;
    gn_u32 log2;
} gn_sem;

GN_FN int gn_sem_open_row(gn_sem *m, const gn_side *s, const gn_sem_row *r) {
    m->s = *s;
    m->producer = (gn_sem_producer *)gn_at(s->context, r->producer);
    m->consumer = (gn_sem_consumer *)gn_at(s->context, r->consumer);
    m->items = (gn_sem_item *)gn_at(s->context, r->items);
    m->log2 = r->log2;
    return GN_OK;
}

GN_FN int gn_sem_open(gn_sem *m, const gn_side *s, gn_u32 semaphore) {
    const gn_sem none = {{0, 0, 0, 0}, 0, 0, 0, 0};
    *m = none;
    const gn_context *p = (const gn_context *)s->context;
    if (semaphore >= p->n_sems) return GN_INVALID;
    return gn_sem_open_row(m, s, (const gn_sem_row *)gn_at(p, p->sems) + semaphore);
}

// Pushes an item, with release of all preceding writes. *ticket (if not 0): that of the item. GN_FAILED: the
// consumer takes no more.
GN_FN int gn_sem_push(const gn_sem *m, gn_u64 first, gn_u64 count, gn_u64 limit, gn_u64 *ticket) {
    gn_u64 ready = gn_peek(&m->producer->ready);
    if (ready & GN_SEM_END) return GN_ENDED;
    gn_timer t = gn_timer_start(&m->s, limit);
    for (;;) {
        gn_u64 done = gn_load(&m->consumer->done);
        if (done & GN_SEM_END) return GN_FAILED;
        if (ready - done < 1ull << m->log2) break;
        int err = gn_go_on(&m->s, &t, 0, 0);
        if (err != GN_OK) return err;
    }
    gn_sem_item *i = &m->items[gn_index(ready, m->log2)];
    gn_poke(&i->first, first);
    gn_poke(&i->count, count);
    gn_store(&m->producer->ready, ready + 1);
    if (ticket) *ticket = ready;
    return GN_OK;
}

// Marks the end of the producer's items.
GN_FN void gn_sem_exit(const gn_sem *m) {
    gn_store(&m->producer->ready, gn_peek(&m->producer->ready) | GN_SEM_END);
}

// Takes the next item. GN_ENDED: no more items. GN_FAILED: a consumer failed.
GN_FN int gn_sem_take(const gn_sem *m, gn_u64 limit, gn_u64 *ticket, gn_sem_item *item) {
    gn_timer t = gn_timer_start(&m->s, limit);
    *ticket = item->first = item->count = 0;
    for (;;) {
        gn_u64 hold = gn_peek(&m->consumer->hold);
        gn_u64 ready = gn_load(&m->producer->ready);
        if (gn_peek(&m->consumer->done) & GN_SEM_END) return GN_FAILED;
        if (hold < (ready & ~GN_SEM_END)) {
            const gn_sem_item *i = &m->items[gn_index(hold, m->log2)];
            item->first = gn_peek(&i->first); // of another item if a consumer was faster: then the swap fails
            item->count = gn_peek(&i->count);
            if (!gn_swap(&m->consumer->hold, hold, hold + 1)) continue;
            *ticket = hold;
            return GN_OK;
        }
        if (ready & GN_SEM_END) return GN_ENDED;
        int err = gn_go_on(&m->s, &t, 0, 0);
        if (err != GN_OK) return err;
    }
}

// Releases an item, after all earlier ones. GN_FAILED: a consumer failed.
GN_FN int gn_sem_done(const gn_sem *m, gn_u64 ticket, gn_u64 limit) {
    gn_timer t = gn_timer_start(&m->s, limit);
    for (;;) {
        gn_u64 done = gn_load(&m->consumer->done);
        if (done & GN_SEM_END) return GN_FAILED;
        if (done > ticket) return GN_INVALID;
        if (done == ticket && gn_swap_shown(&m->consumer->done, done, done + 1)) return GN_OK;
        int err = done == ticket ? GN_OK : gn_go_on(&m->s, &t, 0, 0);
        if (err != GN_OK) return err;
    }
}

// Reports a consumer's failure to the producer and the other consumers.
GN_FN void gn_sem_fail(const gn_sem *m) {
    for (;;) {
        gn_u64 done = gn_load(&m->consumer->done);
        if (done & GN_SEM_END || gn_swap_shown(&m->consumer->done, done, done | GN_SEM_END)) return;
    }
}

// Returns a state (gn_sem_status) that item `ticket` had at some time during the call.
GN_FN int gn_sem_status_of(const gn_sem *m, gn_u64 ticket) {
    gn_u64 done = gn_load(&m->consumer->done), hold = gn_load(&m->consumer->hold);
    gn_u64 ready = gn_load(&m->producer->ready), since = gn_load(&m->consumer->done);
    return gn_sem_state(ticket, since & GN_SEM_END ? since : done, hold, ready); // failed meanwhile
}

// Returns the ticket from done to done + size - 1 with this index.
GN_FN gn_u64 gn_sem_ticket(const gn_sem *m, gn_u32 index) {
    gn_u64 done = gn_load(&m->consumer->done) & ~GN_SEM_END;
    return done + gn_index(index - done, m->log2);
}

#endif
