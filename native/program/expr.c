// expr.c: packet programs: construction, and evaluation of 64 packets at a time.
//
// Each instruction is one loop over lanes (lanes.h). A number on the stack is a column and a bitmap of the
// lanes that have it; a condition is a bitmap. A jump splits the lanes: those that jump wait at its target
// with the condition's value, the others continue, and code that no lane executes is skipped.
#include "program/expr.h"
#include "core/err.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TERMS = 8 };

struct dq_prog {
    dqi_look look; // header information that its fields need
    bool condition;
    uint32_t n_terms; // if not 0, plain frames match if all of these hold
    dqi_term terms[MAX_TERMS];
    uint32_t n;
    dq_insn insns[];
};

// Computes the range of numbers for which the comparison with c holds; false: not a range below 2^62.
static bool find_range(uint8_t op, uint64_t c, dqi_term *t) {
    const uint64_t end = 1ull << 62;
    t->from = 0;
    t->to = end;
    if (c >= end) return false;
    switch (op) {
    case DQ_OP_EQ:
        t->from = c;
        t->to = c + 1;
        return true;
    case DQ_OP_LT_S:
    case DQ_OP_LT_U:
        t->to = c;
        return true;
    case DQ_OP_LE_S:
    case DQ_OP_LE_U:
        t->to = c + 1;
        return true;
    case DQ_OP_GT_S:
    case DQ_OP_GT_U:
        t->from = c + 1;
        return true;
    case DQ_OP_GE_S:
    case DQ_OP_GE_U:
        t->from = c;
        return true;
    default:
        return false;
    }
}

// Matches `field compared with a constant` where the field has a fixed offset in plain frames.
static bool find_term(const dq_insn *i, dqi_term *t) {
    if (i[0].op != DQ_OP_LOAD || i[1].op != DQ_OP_PUSH) return false;
    dq_field f = dqi_insn_field(&i[0]);
    uint32_t bit, width;
    if (f.flags != 0 || !dqi_plain_field(&f, &bit, &width, &t->who) || width > 62) return false;
    t->at = bit / 8 < DQI_PLAIN_LEN - 8 ? bit / 8 : DQI_PLAIN_LEN - 8;
    t->left = bit - t->at * 8;
    t->right = 64 - width;
    return find_range(i[2].op, i[1].imm, t);
}

// Finds the terms of programs that are one comparison, or several joined by `and`: every jump then leads to
// the next JZ, or to the end.
static void find_terms(dq_prog *prog) {
    uint32_t n = 0;
    for (uint32_t pc = 0; pc + 3 < prog->n && n < MAX_TERMS; pc += 4) {
        const dq_insn *i = &prog->insns[pc];
        if (!find_term(i, &prog->terms[n++])) return;
        if (i[3].op == DQ_OP_RET) prog->n_terms = n;
        if (i[3].op != DQ_OP_JZ || (i[3].c % 4 != 3)) return;
    }
}

// Returns the header information that a program's fields need. A field that needs no headers but may lie
// beyond them needs the packet's length, which DQI_LOOK_HEADERS does not provide.
static dqi_look find_look(const dq_insn *insns, uint32_t n) {
    dqi_look look = DQI_LOOK_RAW;
    bool beyond = false;
    for (uint32_t i = 0; i < n; i++) {
        bool moved = insns[i].op == DQ_OP_LOAD_AT;
        if (insns[i].op == DQ_OP_FIND) look = DQI_LOOK_EXTENTS;
        if (insns[i].op != DQ_OP_LOAD && !moved) continue;
        dq_field f = dqi_insn_field(&insns[i]);
        dqi_look own = dqi_look_for(&f);
        if (moved && own == DQI_LOOK_HEADERS) own = DQI_LOOK_EXTENTS;
        uint32_t bit, width;
        dqi_who who;
        if (own > look) look = own;
        beyond |= f.base == DQ_BASE_START && (moved || !dqi_plain_field(&f, &bit, &width, &who));
    }
    return look == DQI_LOOK_HEADERS && beyond ? DQI_LOOK_EXTENTS : look;
}

int dq_prog_new(const dq_insn *insns, uint32_t n, dq_prog **out, dq_diag *diag) {
    bool condition;
    int err = dqi_prog_check(insns, n, &condition, diag);
    if (err != DQ_OK) return err;
    dq_prog *prog = calloc(1, sizeof *prog + n * sizeof *insns);
    if (prog == NULL) return dqi_fail(diag, DQ_GENERIC_FAILURE, "packet program: no memory");
    prog->condition = condition;
    prog->n = n;
    memcpy(prog->insns, insns, n * sizeof *insns);
    prog->look = find_look(insns, n);
    if (prog->look == DQI_LOOK_HEADERS) find_terms(prog);
    *out = prog;
    return DQ_OK;
}

void dq_prog_free(dq_prog *prog) { free(prog); }

// ---- the machine ------------------------------------------------------------------------------------------

typedef struct slot {
    dqi_col col;   // value of a number
    uint64_t bits; // a number: lanes that have it; a condition: lanes where it is true
} slot;

// Lanes that wait at a jump's target.
typedef struct join {
    uint32_t at;
    slot *top; // stack slot of the condition
    uint64_t lanes, bits;
} join;

typedef struct machine {
    const dqi_level *k;
    dqi_lanes *l;
    uint64_t active; // lanes that execute the next instruction
    slot *top;
    uint32_t n_joins;
    join joins[DQ_PROG_MAX_STACK];
    slot stack[DQ_PROG_MAX_STACK + 1];
} machine;

static void arrive(machine *m, uint32_t pc) {
    for (uint32_t i = 0; i < m->n_joins; i++) {
        const join *j = &m->joins[i];
        if (j->at != pc) continue;
        m->top->bits = (m->top->bits & m->active) | j->bits;
        m->active |= j->lanes;
        m->joins[i] = m->joins[--m->n_joins];
        return;
    }
}

// Skips code that no lane executes: returns the next target.
static uint32_t skip(machine *m) {
    const join *next = &m->joins[0];
    for (uint32_t i = 1; i < m->n_joins; i++)
        if (m->joins[i].at < next->at) next = &m->joins[i];
    m->top = next->top;
    return next->at;
}

// Executes a jump; returns the next instruction.
static uint32_t jump(machine *m, const dq_insn *i, uint32_t pc) {
    uint64_t holds = m->top->bits & m->active;
    uint64_t lanes = i->op == DQ_OP_JZ ? m->active & ~holds : holds;
    join *j = m->joins, *end = j + m->n_joins;
    while (j < end && j->at != i->c)
        j++;
    if (j == end) {
        *j = (join){.at = i->c, .top = m->top};
        m->n_joins++;
    }
    j->lanes |= lanes;
    j->bits |= lanes & holds;
    m->active &= ~lanes;
    m->top--;
    return m->active == 0 ? skip(m) : pc + 1;
}

// Marks lanes with a divisor of 0 as absent.
static void divisors(slot *b) {
    for (uint32_t i = 0; i < DQI_LANES; i++) {
        if (b->col.v[i] != 0) continue;
        b->bits &= ~(1ull << i);
        b->col.v[i] = 1;
    }
}

static void operate(machine *m, uint8_t op) {
    slot *b = m->top, *a = b - 1;
    if (m->k->unary[op]) {
        m->k->unary[op](&b->col);
        return;
    }
    m->top = a;
    if (m->k->compare[op]) {
        a->bits &= b->bits & m->k->compare[op](&a->col, &b->col);
        return;
    }
    if (op >= DQ_OP_DIV_S && op <= DQ_OP_MOD_U) divisors(b);
    m->k->binary[op](&a->col, &b->col);
    a->bits &= b->bits;
}

static void zero(slot *s, const dqi_level *k, uint64_t holds) {
    if (holds == UINT64_MAX) return;
    k->keep(&s->col, holds);
    s->bits |= ~holds;
}

static void load_at(machine *m, const dq_insn *i) {
    slot *s = m->top;
    dq_field f = dqi_insn_field(i);
    s->bits = dqi_lanes_load_at(m->l, m->k, &f, s->bits & m->active, &s->col, &s->col);
}

static void find(machine *m, const dq_insn *i) {
    slot *count = m->top--, *s = m->top;
    dqi_item_key key = dqi_insn_key(i);
    s->bits =
        dqi_lanes_find(m->l, &key, i->c, s->bits & count->bits & m->active, &s->col, &count->col, &s->col);
}

// Runs a checked program; its result is on top of the stack.
static void run(machine *m, const dq_prog *prog) {
    m->active = m->l->all;
    m->top = m->stack - 1;
    m->n_joins = 0;
    for (uint32_t pc = 0;;) {
        const dq_insn *i = &prog->insns[pc];
        dq_field f;
        if (m->n_joins > 0) arrive(m, pc);
        switch (i->op) {
        case DQ_OP_PUSH:
            (++m->top)->bits = m->l->all;
            m->k->fill(&m->top->col, i->imm);
            break;
        case DQ_OP_LOAD:
            f = dqi_insn_field(i);
            m->top++;
            m->top->bits = dqi_lanes_load(m->l, m->k, &f, &m->top->col);
            break;
        case DQ_OP_LOAD_AT:
            load_at(m, i);
            break;
        case DQ_OP_FIND:
            find(m, i);
            break;
        case DQ_OP_PICK:
            *++m->top = m->stack[i->c];
            break;
        case DQ_OP_KEEP:
            m->top--;
            m->top->bits &= m->top[1].bits;
            break;
        case DQ_OP_ZERO:
            m->top--;
            zero(m->top, m->k, m->top[1].bits);
            break;
        case DQ_OP_NOT:
            m->top->bits = ~m->top->bits;
            break;
        case DQ_OP_JZ:
        case DQ_OP_JNZ:
            pc = jump(m, i, pc);
            continue;
        case DQ_OP_RET:
            m->top->bits &= m->l->all;
            return;
        default:
            operate(m, i->op);
        }
        pc++;
    }
}

// Returns the lanes where the program is true; a number is true if it is not 0.
static uint64_t holds(machine *m, const dq_prog *prog) {
    run(m, prog);
    if (prog->condition) return m->top->bits;
    m->k->fill(&m->top[1].col, 0);
    return m->top->bits & m->k->compare[DQ_OP_NE](&m->top->col, &m->top[1].col);
}

// ---- over bursts ------------------------------------------------------------------------------------------

#define EACH_CHUNK(in) for (uint32_t first = 0; first < (in)->n; first += DQI_LANES)

static uint32_t list_bits(uint64_t bits, uint32_t first, uint32_t *out) {
    uint32_t n = 0;
    for (; bits != 0; bits &= bits - 1)
        out[n++] = first + (uint32_t)__builtin_ctzll(bits);
    return n;
}

// Returns which of packets [first, first + DQI_LANES) match.
static uint64_t match(machine *m, const dq_prog *prog, const dqi_packets *in, uint32_t first, bool payload) {
    uint32_t n = in->n - first < DQI_LANES ? in->n - first : DQI_LANES;
    uint64_t all = UINT64_MAX >> (DQI_LANES - n), bits = 0, plain = 0;
    if (prog->n_terms != 0 && !payload) bits = m->k->match(in, first, n, prog->terms, prog->n_terms, &plain);
    if (plain == all) return bits;
    dqi_lanes_look(m->l, m->k, in, first, prog->look, payload);
    return bits | (holds(m, prog) & ~plain);
}

uint32_t dqi_prog_select(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload,
                         uint32_t *out) {
    dqi_lanes l;
    machine m;
    uint32_t n = 0;
    m.k = k;
    m.l = &l;
    EACH_CHUNK(in) n += list_bits(match(&m, prog, in, first, payload), first, out + n);
    return n;
}

uint32_t dqi_prog_count(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload) {
    dqi_lanes l;
    machine m;
    uint32_t n = 0;
    m.k = k;
    m.l = &l;
    EACH_CHUNK(in) n += (uint32_t)__builtin_popcountll(match(&m, prog, in, first, payload));
    return n;
}

uint32_t dqi_prog_eval(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload,
                       uint64_t *out, uint8_t *ok) {
    dqi_lanes l;
    machine m;
    uint32_t n = 0;
    m.k = k;
    m.l = &l;
    EACH_CHUNK(in) {
        dqi_lanes_look(&l, k, in, first, prog->look, payload);
        run(&m, prog);
        const slot *top = m.top;
        uint64_t bits = top->bits;
        bool whole = !prog->condition && bits == l.all;
        if (whole) memcpy(out + first, top->col.v, l.n * sizeof *out);
        if (whole && ok) memset(ok + first, 1, l.n);
        for (uint32_t i = 0; i < l.n && !whole; i++) {
            bool has = bits >> i & 1;
            out[first + i] = prog->condition ? has : has ? top->col.v[i] : 0;
            if (ok) ok[first + i] = prog->condition || has;
        }
        n += prog->condition ? l.n : (uint32_t)__builtin_popcountll(bits);
    }
    return n;
}

uint32_t dqi_prog_needs(const dq_prog *prog) {
    static const uint32_t begins[DQ_BASE_COUNT] = {[DQ_BASE_L3] = DQI_ETH_LEN,
                                                   [DQ_BASE_L4] = DQI_ETH_LEN + DQI_IPV4_LEN,
                                                   [DQ_BASE_PAYLOAD] = DQI_ETH_LEN};
    uint32_t most = 0;
    for (uint32_t k = 0; prog && k < prog->n; k++) {
        const dq_insn *i = &prog->insns[k];
        if ((i->op != DQ_OP_LOAD && i->op != DQ_OP_LOAD_AT) || i->a == DQ_BASE_META) continue;
        const dq_field f = dqi_insn_field(i);
        uint32_t end = begins[f.base] + (f.bit_offset + f.bit_width + 7) / 8;
        most = end > most ? end : most;
    }
    return most;
}
