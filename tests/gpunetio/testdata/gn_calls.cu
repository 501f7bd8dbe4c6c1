// gn_calls.cu: a kernel that calls all of gn.h, for TestGnDevice.
#include "gn.h"

#define KERNEL extern "C" __attribute__((global))
#define SHARED __attribute__((shared))

KERNEL void low_level(void *context, gn_u64 *said) {
    gn_side s;
    gn_tx q;
    gn_u64 first;
    if (gn_open(&s, context) != GN_OK || gn_tx_open(&q, &s, 0) != GN_OK) return;
    gn_slot slot = gn_fill_send(gn_place(0, 64), 1500, 0, 0);
    gn_fill_split(&slot, gn_place(1, 0), 100);
    if (gn_reserve(&q, 2, GN_LIMIT, &first) != GN_OK) return;
    gn_commit(&q, first, &slot);
    slot = gn_fill_fetch_add(gn_place(2, 8), 1, gn_place(0, 8));
    gn_commit(&q, first + 1, &slot);
    gn_publish(&q, first, 2);
    gn_u64 next = gn_next(&q);
    if (gn_room(&q, next, 1, 1000) == GN_OK) {
        slot = gn_fill_nop();
        gn_post(&q, next, &slot);
        gn_set_next(&q, next + 1);
    }
    *said = (gn_u64)gn_poll(&q, first);
}

KERNEL void high_level(void *context, int scope) {
    SHARED gn_u64 share[3];
    gn_side s;
    gn_tx q;
    gn_rx r;
    gn_u64 ticket, first, was;
    gn_u32 n;
    gn_packet p;
    if (gn_open(&s, context) != GN_OK || gn_tx_open(&q, &s, 0) != GN_OK || gn_rx_open(&r, &s, 0) != GN_OK) return;
    while (gn_recv(&r, scope, 32, GN_LIMIT, &first, &n, share) == GN_OK) {
        for (gn_u32 k = gn_thread(); k < n; k += 32)
            if (gn_rx_read(&r, first + k, &p) == GN_OK) gn_beat(&s);
        gn_release(&r, scope, first, n);
    }
    gn_send(&q, scope, gn_place(0, 0), 64, 0, 0, GN_LIMIT, &ticket);
    gn_put(&q, scope, gn_place(2, 0), gn_place(0, 0), 64, GN_LIMIT, &ticket);
    gn_put_inline(&q, scope, gn_place(2, 0), 42, 4, GN_LIMIT, &ticket);
    gn_put_signal(&q, scope, gn_place(2, 0), gn_place(0, 0), 64, gn_place(2, 64), 1, GN_LIMIT, &ticket);
    gn_get(&q, scope, gn_place(0, 0), gn_place(2, 0), 64, GN_LIMIT, &ticket);
    gn_signal(&q, scope, gn_place(2, 64), 1, GN_LIMIT, &ticket);
    gn_copy(&q, scope, gn_place(0, 0), gn_place(1, 0), 64, GN_LIMIT, &ticket);
    gn_file(&q, scope, 0, gn_place(0, 0), 64, GN_LIMIT, &ticket);
    gn_fetch_add(&q, gn_place(2, 64), 1, gn_place(0, 8), GN_LIMIT, &was);
    gn_wait(&q, ticket, GN_LIMIT);
    gn_wait_signal(&s, gn_place(1, 0), was, GN_LIMIT);
    gn_flush(&q, GN_LIMIT);
}

KERNEL void semaphores(void *context) {
    gn_side s;
    gn_sem in, out;
    gn_sem_item item;
    gn_u64 ticket;
    if (gn_open(&s, context) != GN_OK || gn_sem_open(&in, &s, 0) != GN_OK || gn_sem_open(&out, &s, 1) != GN_OK) return;
    while (gn_sem_take(&in, GN_LIMIT, &ticket, &item) == GN_OK) {
        if (gn_sem_push(&out, item.first, item.count, GN_LIMIT, 0) != GN_OK) gn_sem_fail(&in);
        gn_sem_done(&in, ticket, GN_LIMIT);
    }
    if (gn_sem_status_of(&in, gn_sem_ticket(&in, 0)) == GN_SEM_EXIT) gn_sem_exit(&out);
}

KERNEL void relay(void *context) {
    gn_side s;
    if (gn_open(&s, context) != GN_OK) return;
    while (gn_relay(&s) == GN_OK) {}
}
