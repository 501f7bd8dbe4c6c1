// The sets that the eBPF program's maps are filled from: places that rules share, limits, what a change
// leaves.
#include "dqtest.h"
#include "engine/xdp/steer_sets.h"

#include <string.h>

static dq_rule port(uint16_t lo, uint16_t hi) {
    return (dq_rule){.match = {.set = DQ_MATCH_UDP_DST, .udp_dst = {lo, hi}}, .flow_id = lo, .n_queues = 1};
}

// A rule of a group of its own: k of 66 prefixes.
static dq_rule prefix(uint32_t k) {
    dq_rule r = {.flow_id = k, .n_queues = 1};
    r.match.set = k < 33 ? DQ_MATCH_IPV6_DST : DQ_MATCH_IPV6_SRC;
    r.match.ipv6_dst_prefix = r.match.ipv6_src_prefix = (uint8_t)(k % 33 + 1);
    return r;
}

// What a driver does when the maps have become what the sets are.
static void settle(steer_sets *t) {
    for (uint32_t i = 0; i < t->n_touched; i++)
        t->touched[i]->in_map = t->touched[i]->rules > 0;
    t->new_groups = 0;
    memset(t->new_singles, 0, sizeof t->new_singles);
    dqi_steer_end(t);
}

static void shared_places(void) {
    steer_sets t = {0};
    dq_rule r = port(7, 7), span = port(7, 9), any = {.n_queues = 1};
    DQ_CHECK(dqi_steer_begin(&t, 8));
    for (int k = 0; k < 2; k++) {
        DQ_EQ(dqi_steer_add(&t, &r, NULL), DQ_OK);
        DQ_EQ(dqi_steer_add(&t, &span, NULL), DQ_OK);
        DQ_EQ(dqi_steer_add(&t, &any, NULL), DQ_OK);
    }
    DQ_EQ(t.n_touched, 1);
    settle(&t);
    DQ_EQ(t.n_entries, 1);
    DQ_EQ(dqi_steer_groups_end(&t), 1);
    DQ_EQ(dqi_steer_singles_end(&t), 1);
    for (uint32_t left = 2; left-- > 0;) {
        DQ_CHECK(dqi_steer_begin(&t, 8));
        dqi_steer_remove(&t, &r);
        dqi_steer_remove(&t, &span);
        dqi_steer_remove(&t, &any);
        settle(&t);
        DQ_EQ(t.all, left);
        DQ_EQ(t.n_nodes, left);
        DQ_EQ(t.n_entries, left);
        DQ_EQ(dqi_steer_groups_end(&t), left);
        DQ_EQ(dqi_steer_singles_end(&t), left);
    }
    dqi_steer_sets_free(&t);
}

// A group's place that a change has emptied is taken again when there is no other, and is reported again.
static void full_of_groups(void) {
    steer_sets t = {0};
    dq_diag d = {{0}};
    DQ_CHECK(dqi_steer_begin(&t, 2 * STEER_GROUPS));
    for (uint32_t k = 0; k < STEER_GROUPS; k++) {
        dq_rule r = prefix(k);
        DQ_EQ(dqi_steer_add(&t, &r, &d), DQ_OK);
    }
    dq_rule first = prefix(0), more = prefix(STEER_GROUPS);
    DQ_EQ(dqi_steer_add(&t, &more, &d), DQ_NO_SPACE_AVAILABLE);
    DQ_CHECK(strstr(d.text, "flow 64: ") && strstr(d.text, "at most 64 different sets"));
    settle(&t);
    DQ_CHECK(dqi_steer_begin(&t, 4));
    dqi_steer_remove(&t, &first);
    DQ_EQ(dqi_steer_add(&t, &more, &d), DQ_OK);
    DQ_EQ(t.new_groups, 1);
    settle(&t);
    DQ_EQ(t.n_entries, STEER_GROUPS);
    dqi_steer_sets_free(&t);
}

// Thousands of rules that come and go in another order leave nothing.
static void many(void) {
    enum { MANY = 5000, STEP = 7 };
    steer_sets t = {0};
    DQ_CHECK(dqi_steer_begin(&t, MANY));
    for (uint32_t k = 0; k < MANY; k++) {
        dq_rule r = port((uint16_t)k, (uint16_t)k);
        DQ_EQ(dqi_steer_add(&t, &r, NULL), DQ_OK);
    }
    settle(&t);
    DQ_EQ(t.n_entries, MANY);
    for (uint32_t k = 0; k < MANY; k++) {
        uint16_t p = (uint16_t)(k * STEP % MANY);
        dq_rule r = port(p, p);
        DQ_CHECK(dqi_steer_begin(&t, 2));
        dqi_steer_remove(&t, &r);
        DQ_EQ(t.n_touched, 1);
        settle(&t);
        DQ_EQ(t.n_nodes, MANY - k - 1);
    }
    dqi_steer_sets_free(&t);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(shared_places);
    DQ_RUN(full_of_groups);
    DQ_RUN(many);
    return dq_done();
}
