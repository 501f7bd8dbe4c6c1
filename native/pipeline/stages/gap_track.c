#include "pipeline/stages/gap_track.h"

#include <string.h>

uint32_t dqi_gap_ring(uint32_t window) {
    uint32_t ring = 64;
    while (ring < window)
        ring *= 2;
    return ring;
}

// Returns how far number n is ahead of m, modulo their range; negative: behind.
static int64_t ahead(const dqi_gap_rule *rule, uint64_t n, uint64_t m) {
    const uint32_t unused = 64 - rule->bits;
    return (int64_t)((n - m) << unused) >> unused;
}

// ---- bitmap -----------------------------------------------------------------------------------------------

static bool seen(const dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t position) {
    const uint64_t k = position & (rule->ring - 1);
    return g->seen[k / 64] >> (k % 64) & 1;
}

static void mark(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t position) {
    const uint64_t k = position & (rule->ring - 1);
    g->seen[k / 64] |= UINT64_C(1) << (k % 64);
}

static void unmark(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t position) {
    const uint64_t k = position & (rule->ring - 1);
    g->seen[k / 64] &= ~(UINT64_C(1) << (k % 64));
}

static void clear(dqi_gap_stream *g, const dqi_gap_rule *rule) { memset(g->seen, 0, rule->ring / 8); }

// ---- window -----------------------------------------------------------------------------------------------

// Starts at a number.
static void begin(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t number) {
    g->top = number;
    g->span = 1;
    mark(g, rule, number);
    dqi_add(&g->c.expected, 1);
    dqi_add(&g->c.unique, 1);
}

// Counts the unmarked positions of the window as missing, and clears it.
static void settle(dqi_gap_stream *g, const dqi_gap_rule *rule) {
    const uint64_t n = g->span < rule->window ? g->span : rule->window;
    uint64_t missing = 0;
    for (uint64_t k = 0; k < n; k++)
        missing += !seen(g, rule, g->top - k);
    dqi_add(&g->c.missing, missing);
    clear(g, rule);
    g->span = 0;
}

// Makes the number `by` above the highest the highest. Numbers that leave the window are counted.
static void advance(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t by) {
    const uint64_t steps = by < rule->window ? by : rule->window;
    uint64_t missing = by - steps;
    for (uint64_t k = 1; k <= steps; k++) {
        const uint64_t enters = g->top + k;
        if (g->span + k > rule->window) missing += !seen(g, rule, enters - rule->window);
        if (by < rule->window) unmark(g, rule, enters);
    }
    if (by >= rule->window) clear(g, rule);
    g->top += by;
    g->span += by;
    mark(g, rule, g->top);
    dqi_add(&g->c.expected, by);
    dqi_add(&g->c.unique, 1);
    if (missing > 0) dqi_add(&g->c.missing, missing);
}

// Accounts the number `by` below the highest, which is within the window.
static void fill(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t by) {
    if (seen(g, rule, g->top - by)) {
        dqi_add(&g->c.duplicate, 1);
        return;
    }
    mark(g, rule, g->top - by);
    if (by >= g->span) dqi_add(&g->c.expected, 1);
    dqi_add(&g->c.unique, 1);
    dqi_add(&g->c.reordered, 1);
}

// Accounts a number within the window, above or below the highest; false: it is further away.
static bool near(dqi_gap_stream *g, const dqi_gap_rule *rule, int64_t by) {
    if (by > 0 && by <= rule->window)
        advance(g, rule, (uint64_t)by);
    else if (by <= 0 && by > -(int64_t)rule->window)
        fill(g, rule, (uint64_t)-by);
    else
        return false;
    return true;
}

// ---- trial ------------------------------------------------------------------------------------------------

static void reject(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t number) {
    const int64_t by = ahead(rule, number, g->top);
    dqi_add(by < 0 && (uint64_t)-by <= rule->jump ? &g->c.late : &g->c.outliers, 1);
}

static void reject_trial(dqi_gap_stream *g, const dqi_gap_rule *rule) {
    for (uint32_t k = 0; k < g->on_trial; k++)
        reject(g, rule, g->trial[k]);
    g->on_trial = 0;
}

// Continues with the numbers on trial: behind a loss, or after a restart.
static void believe_trial(dqi_gap_stream *g, const dqi_gap_rule *rule) {
    const int64_t by = ahead(rule, g->trial[0], g->top);
    g->on_trial = 0;
    if (by > 0 && (uint64_t)by <= rule->jump) {
        advance(g, rule, (uint64_t)by);
    } else {
        settle(g, rule);
        dqi_add(&g->c.restarts, 1);
        begin(g, rule, g->trial[0]);
    }
    for (uint32_t k = 1; k < DQI_GAP_TRIAL; k++)
        if (!near(g, rule, ahead(rule, g->trial[k], g->top))) reject(g, rule, g->trial[k]);
}

static void try(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t number) {
    if (g->on_trial > 0) {
        const int64_t by = ahead(rule, number, g->trial[g->on_trial - 1]);
        if (by == 0 || by > rule->window || by < -(int64_t)rule->window) reject_trial(g, rule);
    }
    g->trial[g->on_trial++] = number;
    if (g->on_trial == DQI_GAP_TRIAL) believe_trial(g, rule);
}

// ---- stream -----------------------------------------------------------------------------------------------

void dqi_gap_take(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t number) {
    if (g->span == 0)
        begin(g, rule, number);
    else if (near(g, rule, ahead(rule, number, g->top)))
        reject_trial(g, rule);
    else
        try(g, rule, number);
}

void dqi_gap_close(dqi_gap_stream *g, const dqi_gap_rule *rule) {
    if (g->span == 0) return;
    reject_trial(g, rule);
    settle(g, rule);
}
