// flow.c: a card that keeps to rules of rte_flow, which come one by one or by templates.
#include "nic.h"

#include <pthread.h>
#include <rte_flow.h>
#include <rte_ip.h>
#include <stdlib.h>
#include <string.h>

#define RULES  256
#define ITEMS  12
#define WORDS  40 // bytes of the longest item
#define NARROW 2  // rules of a table

typedef struct item {
    enum rte_flow_item_type type;
    bool ranged;
    uint8_t value[WORDS], last[WORDS], mask[WORDS];
} item;

typedef struct rule {
    bool used, active;
    uint16_t port;
    uint32_t n, mark;
    enum rte_flow_action_type takes_off; // RTE_FLOW_ACTION_TYPE_END: nothing
    item items[ITEMS];
    struct template *table;
} rule;

// A template of either kind, or a table.
typedef struct template {
    struct rte_flow_item items[ITEMS];
    uint8_t masks[ITEMS][WORDS];
    enum rte_flow_action_type actions[ITEMS];
    uint32_t n_rules;
    const struct template *pattern, *act;
}
template;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rule rules[RULES];
static bool isolated[NIC_PORTS];
static struct rte_flow_op_result results[RULES];
static uint32_t n_results, n_pushed;
static rule *waiting[RULES]; // that results[k] makes active; NULL: none

static int refuse(struct rte_flow_error *e, const char *why) {
    rte_flow_error_set(e, ENOTSUP, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, NULL, why);
    return -ENOTSUP;
}

// ---- a rule -----------------------------------------------------------------------------------------------

// Bytes of an item's header in a frame; 0: it is none that the card knows.
static uint32_t length_of(enum rte_flow_item_type type) {
    switch (type) {
    case RTE_FLOW_ITEM_TYPE_ETH:
        return 14;
    case RTE_FLOW_ITEM_TYPE_VLAN:
        return 4;
    case RTE_FLOW_ITEM_TYPE_IPV4:
        return 20;
    case RTE_FLOW_ITEM_TYPE_IPV6:
        return 40;
    case RTE_FLOW_ITEM_TYPE_UDP:
    case RTE_FLOW_ITEM_TYPE_VXLAN:
    case RTE_FLOW_ITEM_TYPE_NVGRE:
        return 8;
    case RTE_FLOW_ITEM_TYPE_TCP:
        return 20;
    default:
        return 0;
    }
}

static bool has(const rule *r, enum rte_flow_item_type type) {
    for (uint32_t k = 0; k < r->n; k++)
        if (r->items[k].type == type) return true;
    return false;
}

static bool is_tunnel(enum rte_flow_item_type type) {
    return type == RTE_FLOW_ITEM_TYPE_VXLAN || type == RTE_FLOW_ITEM_TYPE_NVGRE;
}

// The header that a rule must have for its action to take it off.
static bool takes_off(rule *r, enum rte_flow_action_type type) {
    r->takes_off = type;
    if (type == RTE_FLOW_ACTION_TYPE_OF_POP_VLAN)
        return r->n > 1 && r->items[1].type == RTE_FLOW_ITEM_TYPE_VLAN;
    if (type == RTE_FLOW_ACTION_TYPE_VXLAN_DECAP) return has(r, RTE_FLOW_ITEM_TYPE_VXLAN);
    return type == RTE_FLOW_ACTION_TYPE_NVGRE_DECAP && has(r, RTE_FLOW_ITEM_TYPE_NVGRE);
}

// Takes a rule down, whose masks are the pattern's own or a template's; false: the card can't keep to it.
static bool take(rule *r, const struct rte_flow_item *pattern, const template *t,
                 const struct rte_flow_action *actions) {
    bool queue = false;
    for (; pattern[r->n].type != RTE_FLOW_ITEM_TYPE_END; r->n++) {
        const struct rte_flow_item *from = &pattern[r->n];
        item *to = &r->items[r->n];
        uint32_t len = length_of(from->type);
        const void *mask = t ? t->masks[r->n] : from->mask;
        if (len == 0 || r->n + 1 == ITEMS || (t && t->items[r->n].type != from->type)) return false;
        to->type = from->type;
        if (from->spec) memcpy(to->value, from->spec, len);
        if (from->spec && mask) memcpy(to->mask, mask, len);
        to->ranged = from->last != NULL;
        if (from->last) memcpy(to->last, from->last, len);
    }
    for (; actions->type != RTE_FLOW_ACTION_TYPE_END; actions++) {
        if (actions->type == RTE_FLOW_ACTION_TYPE_MARK)
            r->mark = ((const struct rte_flow_action_mark *)actions->conf)->id;
        else if (actions->type == RTE_FLOW_ACTION_TYPE_QUEUE)
            queue = ((const struct rte_flow_action_queue *)actions->conf)->index == 0; // there is one
        else if (!nic_has("transforms") || !takes_off(r, actions->type))
            return false;
    }
    return queue;
}

static rule *take_rule(uint16_t port, const struct rte_flow_item *pattern, const template *t,
                       const struct rte_flow_action *actions, struct rte_flow_error *e) {
    for (uint32_t k = 0; k < RULES; k++) {
        if (rules[k].used) continue;
        rules[k] = (rule){.used = true, .port = port};
        if (take(&rules[k], pattern, t, actions)) return &rules[k];
        rules[k].used = false;
        break;
    }
    refuse(e, "the card can't keep to this rule");
    return NULL;
}

// ---- frames -----------------------------------------------------------------------------------------------

static uint16_t be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static bool item_fits(const item *i, const uint8_t *p) {
    uint32_t len = length_of(i->type), from = 0;
    if (i->ranged) // of ports, which come first
        for (from = 4, len = 8; from > 0; from -= 2) {
            const uint32_t at = from - 2;
            uint16_t v = be16(p + at), lo = be16(i->value + at), hi = be16(i->last + at);
            if (be16(i->mask + at) && (hi ? v < lo || v > hi : v != lo)) return false;
        }
    for (uint32_t k = i->ranged ? 4 : 0; k < len; k++)
        if ((p[k] ^ i->value[k]) & i->mask[k]) return false;
    return true;
}

// Whether a header of this type follows; next: the type that the header before it names.
static bool follows(enum rte_flow_item_type type, uint32_t next) {
    static const uint32_t names[][2] = {
        {RTE_FLOW_ITEM_TYPE_VLAN, 0x8100}, {RTE_FLOW_ITEM_TYPE_IPV4, 0x0800},
        {RTE_FLOW_ITEM_TYPE_IPV6, 0x86dd}, {RTE_FLOW_ITEM_TYPE_UDP, 17},
        {RTE_FLOW_ITEM_TYPE_TCP, 6},       {RTE_FLOW_ITEM_TYPE_VXLAN, 4789},
        {RTE_FLOW_ITEM_TYPE_NVGRE, 47},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k][0] == type) return names[k][1] == next;
    return type == RTE_FLOW_ITEM_TYPE_ETH;
}

static bool fits(const rule *r, const uint8_t *p, uint32_t len) {
    uint32_t at = 0, next = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        const item *i = &r->items[k];
        uint32_t n = length_of(i->type);
        if (at + n > len || !follows(i->type, next) || !item_fits(i, p + at)) return false;
        if (i->type == RTE_FLOW_ITEM_TYPE_ETH) next = be16(p + at + 12);
        if (i->type == RTE_FLOW_ITEM_TYPE_VLAN) next = be16(p + at + 2);
        if (i->type == RTE_FLOW_ITEM_TYPE_IPV4) next = p[at + 9];
        if (i->type == RTE_FLOW_ITEM_TYPE_IPV6) next = p[at + 6];
        if (i->type == RTE_FLOW_ITEM_TYPE_UDP) next = be16(p + at + 2);
        at += n;
    }
    return true;
}

static void check_outer(struct rte_mbuf *m, const uint8_t *ip) {
    const struct rte_ipv4_hdr *h = (const struct rte_ipv4_hdr *)ip;
    if (ip[0] != 0x45) return;
    if (rte_raw_cksum(h, sizeof *h) != 0xffff) m->ol_flags |= RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD;
    const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(h + 1);
    if (h->next_proto_id == 17 && udp->dgram_cksum != 0)
        m->ol_flags |= rte_ipv4_udptcp_cksum_verify(h, udp) == 0 ? RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD
                                                                 : RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD;
}

// Takes a tag, or a tunnel and what its packet was padded with, off a frame that fits the rule.
static void take_off(const rule *r, struct rte_mbuf *m, bool sums) {
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
    uint32_t outer = 0, l3 = 14;
    if (r->takes_off == RTE_FLOW_ACTION_TYPE_OF_POP_VLAN) {
        memmove(p + 4, p, 12);
        rte_pktmbuf_adj(m, 4);
    } else {
        for (uint32_t k = 0; outer == 0 || !is_tunnel(r->items[k - 1].type); k++)
            outer += length_of(r->items[k].type);
        if (r->items[1].type == RTE_FLOW_ITEM_TYPE_VLAN) l3 += 4;
        if (sums) check_outer(m, p + l3);
        uint32_t end = l3 + (p[l3] >> 4 == 4 ? be16(p + l3 + 2) : 40 + be16(p + l3 + 4));
        if (end < m->data_len) rte_pktmbuf_trim(m, (uint16_t)(m->data_len - end));
        rte_pktmbuf_adj(m, (uint16_t)outer);
    }
    nic_write_down("took off", 0);
}

bool nic_steer(uint16_t port, struct rte_mbuf *m, bool sums) {
    bool wanted = false;
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < RULES && !wanted; k++) {
        const rule *r = &rules[k];
        if (!r->active || r->port != port || !fits(r, rte_pktmbuf_mtod(m, uint8_t *), m->data_len)) continue;
        wanted = true;
        if (r->mark == 0) continue;
        m->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
        m->hash.fdir.hi = r->mark;
        nic_write_down("marked", r->mark);
        if (r->takes_off != RTE_FLOW_ACTION_TYPE_END) take_off(r, m, sums);
    }
    pthread_mutex_unlock(&lock);
    return wanted || !isolated[port];
}

// ---- rules, one by one ------------------------------------------------------------------------------------

int rte_flow_isolate(uint16_t port, int set, struct rte_flow_error *e) {
    if (!nic_has("flows")) return NIC_NEXT(rte_flow_isolate)(port, set, e);
    isolated[port] = set;
    return 0;
}

int rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr, const struct rte_flow_item pattern[],
                      const struct rte_flow_action actions[], struct rte_flow_error *e) {
    if (!nic_has("flows")) return NIC_NEXT(rte_flow_validate)(port, attr, pattern, actions, e);
    return attr->priority == 0 ? 0 : refuse(e, "the card has one priority");
}

struct rte_flow *rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
                                 const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
                                 struct rte_flow_error *e) {
    if (!nic_has("flows")) return NIC_NEXT(rte_flow_create)(port, attr, pattern, actions, e);
    pthread_mutex_lock(&lock);
    rule *r = take_rule(port, pattern, NULL, actions, e);
    if (r) r->active = true;
    pthread_mutex_unlock(&lock);
    if (r) nic_write_down("created", 0);
    return (struct rte_flow *)r;
}

int rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *e) {
    if (!nic_has("flows")) return NIC_NEXT(rte_flow_destroy)(port, flow, e);
    pthread_mutex_lock(&lock);
    *(rule *)flow = (rule){0};
    pthread_mutex_unlock(&lock);
    nic_write_down("destroyed", 0);
    return 0;
}

// ---- rules by templates -----------------------------------------------------------------------------------

int rte_flow_info_get(uint16_t port, struct rte_flow_port_info *info, struct rte_flow_queue_info *queue,
                      struct rte_flow_error *e) {
    if (!nic_has("templates")) return NIC_NEXT(rte_flow_info_get)(port, info, queue, e);
    *info = (struct rte_flow_port_info){.max_nb_queues = 1};
    *queue = (struct rte_flow_queue_info){.max_size = RULES};
    return 0;
}

int rte_flow_configure(uint16_t port, const struct rte_flow_port_attr *attr, uint16_t n,
                       const struct rte_flow_queue_attr *queues[], struct rte_flow_error *e) {
    if (!nic_has("templates")) return NIC_NEXT(rte_flow_configure)(port, attr, n, queues, e);
    return n == 1 && queues[0]->size <= RULES ? 0 : refuse(e, "one queue");
}

struct rte_flow_pattern_template *
rte_flow_pattern_template_create(uint16_t port, const struct rte_flow_pattern_template_attr *attr,
                                 const struct rte_flow_item pattern[], struct rte_flow_error *e) {
    (void)port, (void)attr, (void)e;
    template *t = calloc(1, sizeof *t);
    for (uint32_t k = 0; pattern[k].type != RTE_FLOW_ITEM_TYPE_END; k++) {
        if (k + 1 == ITEMS) nic_die("a pattern that is too long");
        t->items[k].type = pattern[k].type;
        if (pattern[k].mask) memcpy(t->masks[k], pattern[k].mask, length_of(pattern[k].type));
    }
    return (struct rte_flow_pattern_template *)t;
}

struct rte_flow_actions_template *
rte_flow_actions_template_create(uint16_t port, const struct rte_flow_actions_template_attr *attr,
                                 const struct rte_flow_action actions[], const struct rte_flow_action masks[],
                                 struct rte_flow_error *e) {
    (void)port, (void)attr, (void)e;
    template *t = calloc(1, sizeof *t);
    for (uint32_t k = 0; actions[k].type != RTE_FLOW_ACTION_TYPE_END; k++) {
        if (k + 1 == ITEMS || masks[k].type != actions[k].type) nic_die("masks that are not the actions'");
        t->actions[k] = actions[k].type;
    }
    return (struct rte_flow_actions_template *)t;
}

struct rte_flow_template_table *
rte_flow_template_table_create(uint16_t port, const struct rte_flow_template_table_attr *attr,
                               struct rte_flow_pattern_template *patterns[], uint8_t n_patterns,
                               struct rte_flow_actions_template *actions[], uint8_t n_actions,
                               struct rte_flow_error *e) {
    (void)port, (void)attr, (void)e;
    template *t = calloc(1, sizeof *t);
    if (n_patterns != 1 || n_actions != 1) nic_die("a table of several templates");
    t->pattern = (const template *)patterns[0];
    t->act = (const template *)actions[0];
    nic_write_down("table", 0);
    return (struct rte_flow_template_table *)t;
}

int rte_flow_template_table_destroy(uint16_t port, struct rte_flow_template_table *t,
                                    struct rte_flow_error *e) {
    (void)port;
    if (((template *)t)->n_rules > 0) return refuse(e, "there are rules in the table");
    nic_write_down("table gone", 0);
    free(t);
    return 0;
}

int rte_flow_pattern_template_destroy(uint16_t port, struct rte_flow_pattern_template *t,
                                      struct rte_flow_error *e) {
    (void)port, (void)e;
    free(t);
    return 0;
}

int rte_flow_actions_template_destroy(uint16_t port, struct rte_flow_actions_template *t,
                                      struct rte_flow_error *e) {
    (void)port, (void)e;
    free(t);
    return 0;
}

// A result that comes with the next push. The caller has the lock.
static void answer(bool good, rule *r, void *user_data) {
    if (n_results == RULES) nic_die("more operations than the queue takes");
    waiting[n_results] = good ? r : NULL;
    results[n_results++] = (struct rte_flow_op_result){
        .status = good ? RTE_FLOW_OP_SUCCESS : RTE_FLOW_OP_ERROR, .user_data = user_data};
}

struct rte_flow *rte_flow_async_create(uint16_t port, uint32_t queue, const struct rte_flow_op_attr *attr,
                                       struct rte_flow_template_table *table,
                                       const struct rte_flow_item pattern[], uint8_t pattern_index,
                                       const struct rte_flow_action actions[], uint8_t actions_index,
                                       void *user_data, struct rte_flow_error *e) {
    template *t = (template *)table;
    if (queue != 0 || pattern_index != 0 || actions_index != 0 || !attr->postpone)
        nic_die("not as it was made");
    for (uint32_t k = 0; actions[k].type != RTE_FLOW_ACTION_TYPE_END; k++)
        if (actions[k].type != t->act->actions[k]) nic_die("actions that are not the template's");
    pthread_mutex_lock(&lock);
    rule *r = take_rule(port, pattern, t->pattern, actions, e);
    bool good = r && !(nic_has("narrow") && t->n_rules == NARROW);
    if (r) answer(good, r, user_data);
    if (good) {
        t->n_rules++;
        r->table = t;
    } else if (r) {
        r->used = false; // the handle is worth nothing once the device has reported it
    }
    pthread_mutex_unlock(&lock);
    nic_write_down("enqueued", 0);
    return (struct rte_flow *)r;
}

int rte_flow_async_destroy(uint16_t port, uint32_t queue, const struct rte_flow_op_attr *attr,
                           struct rte_flow *flow, void *user_data, struct rte_flow_error *e) {
    (void)port, (void)queue, (void)attr, (void)e;
    rule *r = (rule *)flow;
    pthread_mutex_lock(&lock);
    if (!r->used || !r->table) nic_die("a rule that is not there is destroyed");
    r->table->n_rules--;
    *r = (rule){0};
    answer(true, NULL, user_data);
    pthread_mutex_unlock(&lock);
    nic_write_down("destroyed", 0);
    return 0;
}

int rte_flow_push(uint16_t port, uint32_t queue, struct rte_flow_error *e) {
    (void)port, (void)queue, (void)e;
    pthread_mutex_lock(&lock);
    for (; n_pushed < n_results; n_pushed++)
        if (waiting[n_pushed]) waiting[n_pushed]->active = true;
    pthread_mutex_unlock(&lock);
    nic_write_down("pushed", 0);
    return 0;
}

// One at a time, so that who asks has to ask again.
int rte_flow_pull(uint16_t port, uint32_t queue, struct rte_flow_op_result res[], uint16_t n,
                  struct rte_flow_error *e) {
    (void)port, (void)queue, (void)e;
    pthread_mutex_lock(&lock);
    int reply = n_pushed > 0 && n > 0;
    if (reply) {
        res[0] = results[0];
        n_results--;
        n_pushed--;
        memmove(results, results + 1, n_results * sizeof *results);
        memmove(waiting, waiting + 1, n_results * sizeof *waiting);
    }
    pthread_mutex_unlock(&lock);
    return reply;
}
