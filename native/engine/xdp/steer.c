// steer.c: translates rules into the maps of the eBPF program that divides frames between session and kernel.
//
// The program only needs to know whether some rule matches. Changes are incremental (steer_sets.h): rules
// that stay never disappear from the maps, and each added or removed rule costs one system call.
#include "engine/xdp/steer.h"
#include "core/err.h"
#include "engine/xdp/steer_sets.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct dq_steer {
    dq_steer_maps maps;
    steer_conf conf;
    bool isolated;
    steer_sets sets;
    uint32_t n_cpus; // CPUs with counters in the counts map
};

// ---- maps -------------------------------------------------------------------------------------------------

static int map_op(int cmd, int fd, const void *key, const void *value) {
    union bpf_attr a;
    memset(&a, 0, sizeof a);
    a.map_fd = (uint32_t)fd;
    a.key = (uint64_t)(uintptr_t)key;
    a.value = (uint64_t)(uintptr_t)value;
    return syscall(SYS_bpf, cmd, &a, sizeof a) == 0 ? 0 : -errno;
}

static int map_put(int fd, const void *key, const void *value) {
    return map_op(BPF_MAP_UPDATE_ELEM, fd, key, value);
}

static int put_conf(dq_steer *s) {
    uint32_t zero = 0;
    return map_put(s->maps.conf, &zero, &s->conf);
}

// ---- changes ----------------------------------------------------------------------------------------------

static int put_groups(dq_steer *s) {
    int err = 0;
    for (uint32_t g = 0; err == 0 && g < STEER_GROUPS; g++) {
        if (!(s->sets.new_groups >> g & 1)) continue;
        err = map_put(s->maps.groups, &g, &s->sets.groups[g]);
        if (err == 0) s->sets.new_groups &= ~(1ull << g);
    }
    return err;
}

static int put_singles(dq_steer *s) {
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < STEER_SINGLES; i++) {
        if (!s->sets.new_singles[i]) continue;
        err = map_put(s->maps.singles, &i, &s->sets.singles[i]);
        s->sets.new_singles[i] = err != 0;
    }
    return err;
}

// Removes entries that no rule uses from the map, or adds the missing ones.
static int put_entries(dq_steer *s, bool needed) {
    const uint8_t one = 1;
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < s->sets.n_touched; i++) {
        steer_held *h = s->sets.touched[i];
        if (needed != (h->rules > 0) || needed == h->in_map) continue;
        err = needed ? map_put(s->maps.entries, &h->entry, &one)
                     : map_op(BPF_MAP_DELETE_ELEM, s->maps.entries, &h->entry, NULL);
        if (err == 0) h->in_map = needed;
    }
    return err;
}

// Updates the maps to match the sets.
static int put_sets(dq_steer *s) {
    int err = put_entries(s, false);
    if (err == 0) err = put_groups(s);
    if (err == 0) err = put_entries(s, true);
    if (err == 0) err = put_singles(s);
    s->conf.all = !s->isolated || s->sets.all > 0;
    s->conf.n_groups = dqi_steer_groups_end(&s->sets);
    s->conf.n_singles = dqi_steer_singles_end(&s->sets);
    return err == 0 ? put_conf(s) : err;
}

static void remove_rules(dq_steer *s, const dq_rule *rules, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        dqi_steer_remove(&s->sets, &rules[i]);
}

// Adds n rules, or none on error.
static int add_rules(dq_steer *s, const dq_rule *rules, uint32_t n, dq_diag *diag) {
    for (uint32_t i = 0; i < n; i++) {
        int err = dqi_steer_add(&s->sets, &rules[i], diag);
        if (err == DQ_OK) continue;
        remove_rules(s, rules, i);
        return err;
    }
    return DQ_OK;
}

int dq_steer_change(dq_steer *s, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
                    dq_diag *diag) {
    if (!s->isolated) return DQ_OK; // all frames are redirected, whatever the rules are
    if (!dqi_steer_begin(&s->sets, 2 * (n_gone + n_add)))
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "flows: no memory for %u", n_add);
    remove_rules(s, gone, n_gone);
    int err = add_rules(s, add, n_add, diag);
    int put = err == DQ_OK ? put_sets(s) : 0;
    if (put != 0) {
        err = dqi_fail(diag, DQ_ESYS + put, "flows: the kernel's maps: %s", strerror(-put));
        remove_rules(s, add, n_add);
    }
    if (err != DQ_OK) { // roll back
        add_rules(s, gone, n_gone, NULL);
        put_sets(s);
    }
    dqi_steer_end(&s->sets);
    return err;
}

void dq_steer_isolate(dq_steer *s, bool isolated) {
    s->isolated = isolated;
    s->conf.all = !isolated;
    put_conf(s);
}

void dq_steer_drop_all(dq_steer *s, bool drop) {
    s->conf.drop_all = drop;
    put_conf(s);
}

void dq_steer_run(dq_steer *s, bool run) {
    s->conf.active = run;
    put_conf(s);
}

// ---- counters and sockets ---------------------------------------------------------------------------------

// Returns the number of possible CPUs, parsed from a list such as "0-1" or "0,2-5".
static uint32_t possible_cpus(void) {
    char text[256] = "";
    FILE *f = fopen("/sys/devices/system/cpu/possible", "r");
    uint32_t n = 0;
    if (f && fgets(text, sizeof text, f))
        for (char *save, *part = strtok_r(text, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
            unsigned lo = 0, hi = 0;
            if (sscanf(part, "%u-%u", &lo, &hi) < 2) hi = lo;
            n += hi - lo + 1;
        }
    if (f) fclose(f);
    return n;
}

int dq_steer_new(const dq_steer_maps *maps, dq_steer **out, dq_diag *diag) {
    dq_steer *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "flows: no memory");
    s->maps = *maps;
    s->n_cpus = possible_cpus();
    *out = s;
    return DQ_OK;
}

void dq_steer_free(dq_steer *s) {
    if (!s) return;
    dqi_steer_sets_free(&s->sets);
    free(s);
}

void dq_steer_read(const dq_steer *s, dq_steer_counts *out) {
    uint32_t zero = 0;
    *out = (dq_steer_counts){0};
    struct steer_counts *each = calloc(s->n_cpus, sizeof *each);
    if (each && map_op(BPF_MAP_LOOKUP_ELEM, s->maps.counts, &zero, each) == 0)
        for (uint32_t i = 0; i < s->n_cpus; i++) {
            out->ours += each[i].ours;
            out->passed += each[i].passed;
            out->dropped += each[i].dropped;
            out->dropped_bytes += each[i].dropped_bytes;
        }
    free(each);
}

int dq_steer_socket(dq_steer *s, uint32_t queue, int fd) {
    uint32_t value = (uint32_t)fd;
    int err = queue < STEER_QUEUES ? map_put(s->maps.sockets, &queue, &value) : -E2BIG;
    return err == 0 ? DQ_OK : DQ_ESYS + err;
}

int dq_rules_want(const dq_rule *rules, uint32_t n, const uint8_t *frame, uint32_t len, dq_diag *diag) {
    dqi_flow_table *t;
    int err = dqi_flow_table_build(rules, n, &t, diag);
    if (err != DQ_OK) return err;
    uint64_t off = 0;
    uint32_t flow;
    uint16_t queue;
    dqi_flow_table_classify(t, frame, &off, &len, 1, &flow, &queue);
    dqi_flow_table_free(t);
    return queue != DQI_NO_QUEUE;
}
