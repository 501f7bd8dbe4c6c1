// expr.c: packet programs: the check, the interpreter, and the short way for the commonest programs.
//
// Most conditions are comparisons of a field with a number, joined by `and`. Such a program is recognised
// when it is made and kept as a list of terms: no stack, and no parse where the frame is plain (packet.h) and
// all fields lie at fixed places in it. A property test holds the terms to the interpreter.
#include "expr.h"
#include "dqi.h"
#include "field.h"

#include <stdlib.h>

enum { MAX_TERMS = 8, PLAIN_L3 = 14, PLAIN_L4 = 34 };

// LOAD, then chain_len pairs of PUSH and a binary operator, then PUSH k and a comparison.
typedef struct term {
    dq_field field;
    uint32_t plain_bit; // where the field lies in a plain frame, from its start
    uint32_t chain_len;
    const dq_insn *chain;
    uint64_t k;
    uint8_t op;
} term;

struct dqi_prog {
    bool parse;       // some field needs the packet's headers
    bool plain_ok;    // all terms lie at fixed places in plain frames
    uint32_t n_terms; // 0: interpret
    uint32_t n;
    term terms[MAX_TERMS];
    dq_insn insns[];
};

static bool is_binary(uint8_t op) { return op >= DQ_OP_ADD && op <= DQ_OP_SAR; }
static bool is_comparison(uint8_t op) { return op >= DQ_OP_EQ && op <= DQ_OP_GE_U; }
static bool is_jump(uint8_t op) { return op == DQ_OP_JZ || op == DQ_OP_JNZ; }

static dq_field field_of(const dq_insn *i) {
    return (dq_field){.base = i->a,
                      .meta = (uint8_t)i->imm,
                      .flags = (uint8_t)(i->imm >> 8),
                      .need = (uint8_t)(i->imm >> 16),
                      .bit_width = i->b,
                      .bit_offset = i->c};
}

// ---- check ------------------------------------------------------------------------------------------------

static int bad(dq_diag *diag, uint32_t pc, const char *what) {
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "packet program: instruction %u: %s", pc, what);
}

// Values that the instruction takes from the stack.
static uint32_t pops(uint8_t op) {
    if (op == DQ_OP_PUSH || op == DQ_OP_LOAD) return 0;
    return is_binary(op) || is_comparison(op) ? 2 : 1;
}

static int check_load(const dq_insn *i, uint32_t pc, dq_diag *diag) {
    dq_field f = field_of(i);
    dq_diag why = {{0}};
    if (i->imm >> 24 != 0) return bad(diag, pc, "unknown bits in a load");
    return dqi_field_check(&f, &why) == DQ_OK ? DQ_OK : bad(diag, pc, why.text);
}

static int check_jump(const dq_insn *insns, uint32_t n, uint32_t pc, uint8_t depth, uint8_t *want,
                      dq_diag *diag) {
    uint32_t to = insns[pc].c;
    if (to <= pc || to >= n) return bad(diag, pc, "the jump is not forward, or past the end");
    if (want[to] != 0 && want[to] != depth) return bad(diag, pc, "the stack differs between two ways");
    want[to] = depth;
    return DQ_OK;
}

int dqi_prog_check(const dq_insn *insns, uint32_t n, dq_diag *diag) {
    uint8_t want[DQ_PROG_MAX_INSNS] = {0}; // stack depth that jumps bring along; 0: nobody jumps there
    uint8_t depth = 0;
    if (n == 0 || n > DQ_PROG_MAX_INSNS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "packet program: %u instructions are outside 1..%u", n,
                        DQ_PROG_MAX_INSNS);
    for (uint32_t pc = 0; pc < n; pc++) {
        const dq_insn *i = &insns[pc];
        int err = DQ_OK;
        if (i->op == DQ_OP_INVALID || i->op >= DQ_OP_COUNT) return bad(diag, pc, "unknown opcode");
        if (want[pc] != 0 && want[pc] != depth) return bad(diag, pc, "the stack differs between two ways");
        if (depth < pops(i->op)) return bad(diag, pc, "the stack is empty");
        if ((i->op == DQ_OP_RET) != (pc == n - 1))
            return bad(diag, pc, "RET must be the last instruction, and only that");
        if (i->op == DQ_OP_LOAD) err = check_load(i, pc, diag);
        if (is_jump(i->op)) err = check_jump(insns, n, pc, depth, want, diag);
        if (err != DQ_OK) return err;
        if (is_jump(i->op))
            depth--;
        else if (i->op != DQ_OP_RET)
            depth = (uint8_t)(depth - pops(i->op) + 1);
        if (depth > DQ_PROG_MAX_STACK) return bad(diag, pc, "the stack is too deep");
    }
    return depth == 1 ? DQ_OK : bad(diag, n - 1, "the stack must hold one value");
}

// ---- operators --------------------------------------------------------------------------------------------

static uint64_t floor_div(int64_t a, int64_t b) {
    if (b == -1) return 0 - (uint64_t)a; // INT64_MIN / -1 overflows
    int64_t q = a / b;
    return (uint64_t)(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);
}

static uint64_t floor_mod(int64_t a, int64_t b) {
    if (b == -1) return 0;
    int64_t r = a % b;
    return (uint64_t)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}

// Without relying on how the compiler shifts negative numbers.
static uint64_t shift_arithmetic(uint64_t a, uint64_t count) {
    uint32_t n = count > 63 ? 63 : (uint32_t)count;
    return a >> 63 ? ~(~a >> n) : a >> n;
}

static inline uint64_t binary(uint8_t op, uint64_t a, uint64_t b, bool *spoilt) {
    bool divides = op >= DQ_OP_DIV_S && op <= DQ_OP_MOD_U;
    if (divides && b == 0) {
        *spoilt = true;
        return 0;
    }
    switch (op) {
    case DQ_OP_ADD:
        return a + b;
    case DQ_OP_SUB:
        return a - b;
    case DQ_OP_MUL:
        return a * b;
    case DQ_OP_DIV_S:
        return floor_div((int64_t)a, (int64_t)b);
    case DQ_OP_DIV_U:
        return a / b;
    case DQ_OP_MOD_S:
        return floor_mod((int64_t)a, (int64_t)b);
    case DQ_OP_MOD_U:
        return a % b;
    case DQ_OP_AND:
        return a & b;
    case DQ_OP_OR:
        return a | b;
    case DQ_OP_XOR:
        return a ^ b;
    case DQ_OP_SHL:
        return b > 63 ? 0 : a << b;
    case DQ_OP_SHR:
        return b > 63 ? 0 : a >> b;
    default: // DQ_OP_SAR
        return shift_arithmetic(a, b);
    }
}

static inline bool compare(uint8_t op, uint64_t a, uint64_t b) {
    switch (op) {
    case DQ_OP_EQ:
        return a == b;
    case DQ_OP_NE:
        return a != b;
    case DQ_OP_LT_S:
        return (int64_t)a < (int64_t)b;
    case DQ_OP_LE_S:
        return (int64_t)a <= (int64_t)b;
    case DQ_OP_GT_S:
        return (int64_t)a > (int64_t)b;
    case DQ_OP_GE_S:
        return (int64_t)a >= (int64_t)b;
    case DQ_OP_LT_U:
        return a < b;
    case DQ_OP_LE_U:
        return a <= b;
    case DQ_OP_GT_U:
        return a > b;
    default: // DQ_OP_GE_U
        return a >= b;
    }
}

static inline uint64_t unary(uint8_t op, uint64_t a) {
    if (op == DQ_OP_NEG) return 0 - a;
    return op == DQ_OP_INV ? ~a : a == 0;
}

// ---- interpreter ------------------------------------------------------------------------------------------

static bool interpret(const dqi_prog *prog, const uint8_t *p, const dqi_pkt *pkt) {
    uint64_t stack[DQ_PROG_MAX_STACK + 1], *top = stack; // *top is the topmost value
    bool spoilt = false;                                 // the comparison under way has a missing operand
    for (uint32_t pc = 0;; pc++) {
        const dq_insn *i = &prog->insns[pc];
        if (i->op == DQ_OP_PUSH) {
            *++top = i->imm;
        } else if (i->op == DQ_OP_LOAD) {
            dq_field f = field_of(i);
            *++top = 0;
            if (!dqi_field_get(p, pkt->len, pkt, &f, top)) spoilt = true;
        } else if (is_binary(i->op)) {
            top--;
            top[0] = binary(i->op, top[0], top[1], &spoilt);
        } else if (is_comparison(i->op)) {
            top--;
            top[0] = !spoilt && compare(i->op, top[0], top[1]);
            spoilt = false;
        } else if (is_jump(i->op)) {
            if ((*top == 0) == (i->op == DQ_OP_JZ))
                pc = i->c - 1;
            else
                top--;
        } else if (i->op == DQ_OP_RET) {
            return *top != 0 && !spoilt;
        } else {
            *top = unary(i->op, *top);
        }
    }
}

// ---- terms ------------------------------------------------------------------------------------------------

// The field's place in a plain frame, or DQI_NONE. Only what every plain frame holds: fixed headers, 8 bytes
// of L4.
static uint32_t plain_bit(const dq_field *f) {
    bool whole_bits = f->flags == 0 && f->bit_offset <= 4096;
    uint32_t end = f->bit_offset + f->bit_width;
    if (!whole_bits) return DQI_NONE;
    if (f->base == DQ_BASE_START && end <= 34 * 8) return f->bit_offset;
    if (f->base == DQ_BASE_L3 && end <= 20 * 8) return PLAIN_L3 * 8 + f->bit_offset;
    if (f->base == DQ_BASE_L4 && end <= 8 * 8) return PLAIN_L4 * 8 + f->bit_offset;
    return DQI_NONE;
}

// Recognises a term at insns[*pc] and moves *pc behind it.
static bool take_term(const dqi_prog *prog, uint32_t *pc, term *t) {
    const dq_insn *i = &prog->insns[*pc], *end = &prog->insns[prog->n];
    if (i->op != DQ_OP_LOAD) return false;
    *t = (term){.field = field_of(i), .chain = ++i};
    t->plain_bit = plain_bit(&t->field);
    for (; end - i > 2 && i[0].op == DQ_OP_PUSH && is_binary(i[1].op); i += 2)
        t->chain_len++;
    if (end - i <= 2 || i[0].op != DQ_OP_PUSH || !is_comparison(i[1].op)) return false;
    t->k = i[0].imm;
    t->op = i[1].op;
    *pc = (uint32_t)(i + 2 - prog->insns);
    return true;
}

// A false value that arrives at this instruction stays until RET, whatever chain of JZ it passes.
static bool ends_false(const dqi_prog *prog, uint32_t pc) {
    while (prog->insns[pc].op == DQ_OP_JZ)
        pc = prog->insns[pc].c;
    return prog->insns[pc].op == DQ_OP_RET;
}

// term (JZ term)* RET, with JZ between in any number as `and` chains leave them.
static void find_terms(dqi_prog *prog) {
    uint32_t pc = 0, n = 0;
    bool plain = true;
    for (;;) {
        if (n == MAX_TERMS || !take_term(prog, &pc, &prog->terms[n])) return;
        if (prog->terms[n++].plain_bit == DQI_NONE) plain = false;
        if (prog->insns[pc].op == DQ_OP_RET) break;
        if (prog->insns[pc].op != DQ_OP_JZ || !ends_false(prog, pc)) return;
        pc++;
    }
    prog->n_terms = n;
    prog->plain_ok = plain;
}

static inline bool test_term(const term *t, uint64_t v) {
    bool spoilt = false;
    for (uint32_t i = 0; i < t->chain_len; i++)
        v = binary(t->chain[2 * i + 1].op, v, t->chain[2 * i].imm, &spoilt);
    return !spoilt && compare(t->op, v, t->k);
}

static bool test_plain(const dqi_prog *prog, const uint8_t *p) {
    uint8_t has = DQ_HAS_ETH | DQ_HAS_IPV4;
    has |= p[23] == DQI_PROTO_UDP ? DQ_HAS_UDP : DQ_HAS_TCP;
    for (const term *t = prog->terms, *end = t + prog->n_terms; t < end; t++) {
        if (t->field.need != 0 && !(t->field.need & has)) return false;
        if (!test_term(t, dqi_bits_get(p, t->plain_bit, t->field.bit_width))) return false;
    }
    return true;
}

static bool test_terms(const dqi_prog *prog, const uint8_t *p, const dqi_pkt *pkt) {
    for (const term *t = prog->terms, *end = t + prog->n_terms; t < end; t++) {
        uint64_t v;
        if (!dqi_field_get(p, pkt->len, pkt, &t->field, &v) || !test_term(t, v)) return false;
    }
    return true;
}

// ---- programs ---------------------------------------------------------------------------------------------

int dqi_prog_new(const dq_insn *insns, uint32_t n, dqi_prog **out, dq_diag *diag) {
    int err = dqi_prog_check(insns, n, diag);
    if (err != DQ_OK) return err;
    dqi_prog *prog = calloc(1, sizeof *prog + n * sizeof *insns);
    if (prog == NULL) return dqi_fail(diag, DQ_GENERIC_FAILURE, "packet program: no memory");
    prog->n = n;
    memcpy(prog->insns, insns, n * sizeof *insns);
    for (uint32_t i = 0; i < n; i++) {
        dq_field f = field_of(&insns[i]);
        if (insns[i].op == DQ_OP_LOAD && !dqi_field_unparsed(&f)) prog->parse = true;
    }
    find_terms(prog);
    *out = prog;
    return DQ_OK;
}

void dqi_prog_free(dqi_prog *prog) { free(prog); }

// The columns of a batch; flow and ts may be NULL.
typedef struct batch {
    const uint8_t *base;
    const uint64_t *off;
    const uint32_t *len;
    const uint32_t *flow;
    const int64_t *ts;
} batch;

static bool test_packet(const dqi_prog *prog, const batch *b, uint32_t i, bool payload) {
    const uint8_t *p = b->base + b->off[i];
    if (prog->plain_ok && !payload && dqi_plain(p, b->len[i])) return test_plain(prog, p);
    dqi_pkt pkt;
    if (prog->parse && !payload)
        dqi_parse(p, b->len[i], &pkt);
    else
        dqi_parse_payload(b->len[i], &pkt);
    pkt.has_meta = (uint8_t)(DQI_HAS_INDEX | (b->flow ? DQI_HAS_FLOW_ID : 0) | (b->ts ? DQI_HAS_RX_TIME : 0));
    pkt.index = i;
    pkt.flow_id = b->flow ? b->flow[i] : 0;
    pkt.rx_time_ns = b->ts ? b->ts[i] : 0;
    return prog->n_terms != 0 ? test_terms(prog, p, &pkt) : interpret(prog, p, &pkt);
}

uint32_t dqi_prog_select(const dqi_prog *prog, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                         const uint32_t *flow, const int64_t *ts, uint32_t n, uint32_t *out) {
    batch b = {base, off, len, flow, ts};
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[found] = i;
        found += test_packet(prog, &b, i, false);
    }
    return found;
}

uint32_t dqi_prog_select_payload(const dqi_prog *prog, const uint8_t *base, const uint64_t *off,
                                 const uint32_t *len, const uint32_t *flow, const int64_t *ts, uint32_t n,
                                 uint32_t *out) {
    batch b = {base, off, len, flow, ts};
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[found] = i;
        found += test_packet(prog, &b, i, true);
    }
    return found;
}
