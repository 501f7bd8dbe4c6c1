// async.c: template rules. The device creates a table for each shape of rules, then adds and removes rules
// asynchronously and reports the results later.
#include "rule.h"

#include <stdlib.h>
#include <time.h>

#define TABLES      16
#define TABLE_RULES 4096
#define UNDER_WAY   64         // pending operations
#define PAUSE_NS    10000      // interval between polls for results
#define PATIENCE_NS 1000000000 // timeout for results

typedef struct table {
    words shape; // any rule of the table
    struct rte_flow_pattern_template *pattern;
    struct rte_flow_actions_template *actions;
    struct rte_flow_template_table *table;
} table;

struct async_rules {
    table tables[TABLES];
    uint32_t n, under_way;
    const char *why; // first failure since the last wait; NULL
};

// ---- tables -----------------------------------------------------------------------------------------------

#define SAME(a, b, part) (memcmp(&(a)->part, &(b)->part, sizeof(a)->part) == 0)

static bool same_masks(const headers *a, const headers *b) {
    return SAME(a, b, eth_mask) && SAME(a, b, vlan_mask) && SAME(a, b, ip4_mask) && SAME(a, b, ip6_mask) &&
           SAME(a, b, udp_mask) && SAME(a, b, tcp_mask);
}

static bool same_shape(const words *a, const words *b) {
    for (uint32_t k = 0; k < a->n; k++)
        if (a->items[k].type != b->items[k].type || !a->items[k].last != !b->items[k].last) return false;
    for (uint32_t k = 0; a->actions[k].type != RTE_FLOW_ACTION_TYPE_END; k++)
        if (a->actions[k].type != b->actions[k].type) return false;
    return a->n == b->n && same_masks(&a->outer, &b->outer) && same_masks(&a->inner, &b->inner);
}

static void drop_table(const dpdk_port *d, table *t) {
    struct rte_flow_error e;
    if (t->table) rte_flow_template_table_destroy(d->id, t->table, &e);
    if (t->actions) rte_flow_actions_template_destroy(d->id, t->actions, &e);
    if (t->pattern) rte_flow_pattern_template_destroy(d->id, t->pattern, &e);
    *t = (table){0};
}

// The template has the masks; each rule supplies the values, including those of its actions.
static bool make_table(const dpdk_port *d, table *t, const words *w, struct rte_flow_error *e) {
    const struct rte_flow_pattern_template_attr by = {.ingress = 1};
    const struct rte_flow_actions_template_attr to = {.ingress = 1};
    const struct rte_flow_template_table_attr holds = {.flow_attr = {.ingress = 1, .priority = w->kind},
                                                       .nb_flows = TABLE_RULES};
    struct rte_flow_action masks[RTE_DIM(w->actions)];
    for (size_t k = 0; k < RTE_DIM(masks); k++)
        masks[k] = (struct rte_flow_action){.type = w->actions[k].type};
    t->shape = *w;
    t->pattern = rte_flow_pattern_template_create(d->id, &by, w->items, e);
    if (t->pattern) t->actions = rte_flow_actions_template_create(d->id, &to, w->actions, masks, e);
    if (t->actions)
        t->table = rte_flow_template_table_create(d->id, &holds, &t->pattern, 1, &t->actions, 1, e);
    return t->table != NULL;
}

static table *table_for(const dpdk_port *d, const words *w, const char **why) {
    struct async_rules *a = d->async;
    struct rte_flow_error e = {0};
    for (uint32_t k = 0; k < a->n; k++)
        if (same_shape(&a->tables[k].shape, w)) return &a->tables[k];
    *why = "rules have too many shapes";
    if (a->n == TABLES) return NULL;
    if (make_table(d, &a->tables[a->n], w, &e)) return &a->tables[a->n++];
    *why = e.message ? e.message : "the device refuses a template";
    drop_table(d, &a->tables[a->n]);
    return NULL;
}

// ---- operations -------------------------------------------------------------------------------------------

// Collects the results of completed operations.
static void read_results(const dpdk_port *d) {
    struct async_rules *a = d->async;
    struct rte_flow_op_result results[UNDER_WAY];
    struct rte_flow_error e = {0};
    int n = rte_flow_pull(d->id, 0, results, UNDER_WAY, &e);
    for (int k = 0; k < n; k++) {
        if (results[k].status == RTE_FLOW_OP_SUCCESS) continue;
        struct rte_flow **made = results[k].user_data;
        if (made) *made = NULL;
        if (!a->why) a->why = made ? "the device has not taken a rule" : "the device has not released a rule";
    }
    if (n > 0) a->under_way -= (uint32_t)n;
}

const char *async_wait(const dpdk_port *d) {
    struct async_rules *a = d->async;
    if (!a) return NULL;
    struct rte_flow_error e;
    if (a->under_way > 0) rte_flow_push(d->id, 0, &e);
    for (int64_t t = 0; a->under_way > 0 && t < PATIENCE_NS; t += PAUSE_NS) {
        read_results(d);
        if (a->under_way > 0) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    const char *why = a->under_way > 0 ? "the device does not say what became of its rules" : a->why;
    a->why = NULL;
    return why;
}

static void make_room(const dpdk_port *d) {
    if (d->async->under_way < UNDER_WAY) return;
    const char *why = async_wait(d);
    d->async->why = why;
}

bool async_create(const dpdk_port *d, const words *w, struct rte_flow **flow, const char **why) {
    const struct rte_flow_op_attr later = {.postpone = 1};
    struct rte_flow_error e = {0};
    table *t = table_for(d, w, why);
    if (!t) return false;
    make_room(d);
    *flow = rte_flow_async_create(d->id, 0, &later, t->table, w->items, 0, w->actions, 0, flow, &e);
    if (*flow)
        d->async->under_way++;
    else
        *why = e.message ? e.message : "the device refuses a rule";
    return *flow != NULL;
}

void async_destroy(const dpdk_port *d, struct rte_flow *flow) {
    const struct rte_flow_op_attr later = {.postpone = 1};
    struct rte_flow_error e;
    make_room(d);
    if (rte_flow_async_destroy(d->id, 0, &later, flow, NULL, &e) == 0)
        d->async->under_way++;
    else
        d->async->why = "the device does not release a rule";
}

// ---- open and close ---------------------------------------------------------------------------------------

void async_open(dpdk_port *d) {
    struct rte_flow_port_info port = {0};
    struct rte_flow_queue_info queue = {0};
    const struct rte_flow_port_attr none = {0};
    const struct rte_flow_queue_attr one = {.size = UNDER_WAY}, *list[] = {&one};
    struct rte_flow_error e;
    if (rte_flow_info_get(d->id, &port, &queue, &e) != 0 || port.max_nb_queues == 0 ||
        queue.max_size < UNDER_WAY)
        return;
    if (rte_flow_configure(d->id, &none, 1, list, &e) == 0) d->async = calloc(1, sizeof *d->async);
}

void async_close(dpdk_port *d) {
    for (uint32_t k = 0; d->async && k < d->async->n; k++)
        drop_table(d, &d->async->tables[k]);
    free(d->async);
    d->async = NULL;
}
