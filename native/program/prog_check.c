// prog_check.c: checks that a packet program is well formed; prototype in expr.h.
//
// Walks the program once with the types of the stack entries: numbers or conditions. It also checks that code
// up to a jump's target does not change the stack below the jump's condition, so that lanes that jump and
// those that don't can share a stack.
#include "core/err.h"
#include "packet/lane_ops.h"
#include "program/expr.h"

#include <string.h>

#define OP_ROW(op, ...)  [op] = 1,
#define OP_PAIR(op, ...) [op] = 2,

// Number of operands of each operator.
static const uint8_t numbers[DQ_OP_COUNT] = {DQI_UNARY_OPS(OP_ROW) DQI_BINARY_OPS(OP_PAIR, OP_PAIR)
                                                 DQI_COMPARE_OPS(OP_PAIR, , )};

typedef struct walk {
    const dq_insn *insns;
    uint32_t n, pc;
    uint32_t depth;
    uint32_t floor; // entries below must not be popped before a jump's target
    uint32_t open;  // pending jump targets
    bool cond[DQ_PROG_MAX_STACK + 1];
    uint8_t want[DQ_PROG_MAX_INSNS]; // stack depth at jump targets; 0: not a target
    dq_diag *diag;
} walk;

static bool is_comparison(uint8_t op) { return op >= DQ_OP_EQ && op <= DQ_OP_GE_U; }
static bool is_jump(uint8_t op) { return op == DQ_OP_JZ || op == DQ_OP_JNZ; }

static int bad(const walk *w, const char *what) {
    return dqi_fail(w->diag, DQ_INVALID_PARAMETER, "packet program: instruction %u: %s", w->pc, what);
}

static int pop(walk *w, bool cond) {
    if (w->depth == 0) return bad(w, "the stack is empty");
    if (w->depth <= w->floor) return bad(w, "it takes what a jump over it keeps");
    if (w->cond[--w->depth] != cond) return bad(w, cond ? "it takes a condition" : "it takes a number");
    return DQ_OK;
}

static int push(walk *w, bool cond) {
    if (w->depth == DQ_PROG_MAX_STACK) return bad(w, "the stack is too deep");
    w->cond[w->depth++] = cond;
    return DQ_OK;
}

static int check_load(walk *w, const dq_insn *i) {
    dq_field f = dqi_insn_field(i);
    dq_diag why = {{0}};
    if (i->imm >> 24 != 0) return bad(w, "unknown bits in a load");
    return dqi_field_check(&f, &why) == DQ_OK ? push(w, false) : bad(w, why.text);
}

// Checks a LOAD_AT: its operand is added to the bit offset of an ordinary LOAD.
static int check_load_at(walk *w, const dq_insn *i) {
    if (i->a == DQ_BASE_META || i->c > INT32_MAX) return bad(w, "only a field at an offset can be moved");
    int err = pop(w, false);
    return err != DQ_OK ? err : check_load(w, i);
}

static int check_find(walk *w, const dq_insn *i) {
    if (i->a < 1 || i->a > 8 || i->b < 1 || i->b >= i->a * 8 || i->c % 8 != 0 || i->c > INT32_MAX)
        return bad(w, "a list has items of 1 to 8 bytes with a value, on a byte boundary");
    int err = pop(w, false);
    if (err == DQ_OK) err = pop(w, false);
    return err != DQ_OK ? err : push(w, false);
}

static int check_keep(walk *w) {
    int err = pop(w, true);
    if (err == DQ_OK) err = pop(w, false);
    return err != DQ_OK ? err : push(w, false);
}

static int check_jump(walk *w, const dq_insn *i) {
    if (i->c <= w->pc || i->c >= w->n) return bad(w, "the jump is not forward, or past the end");
    if (w->want[i->c] != 0 && w->want[i->c] != w->depth) return bad(w, "the stack differs between two ways");
    if (w->open == DQ_PROG_MAX_STACK) return bad(w, "too many jumps over it");
    w->want[i->c] = (uint8_t)w->depth;
    return pop(w, true);
}

static void find_floor(walk *w) {
    w->floor = w->open = 0;
    for (uint32_t pc = w->pc + 1; pc < w->n; pc++) {
        if (w->want[pc] > w->floor + 1) w->floor = w->want[pc] - 1u;
        w->open += w->want[pc] != 0;
    }
}

// Ends the jumps to this instruction; the floor of pending jumps remains.
static int arrive(walk *w) {
    if (w->want[w->pc] == 0) return DQ_OK;
    if (w->want[w->pc] != w->depth || !w->cond[w->depth - 1])
        return bad(w, "the stack differs between two ways");
    w->want[w->pc] = 0;
    find_floor(w); // this instruction may pop what they protected
    return DQ_OK;
}

static int step(walk *w) {
    const dq_insn *i = &w->insns[w->pc];
    if (i->op == DQ_OP_INVALID || i->op >= DQ_OP_COUNT) return bad(w, "unknown opcode");
    int err = arrive(w);
    if (err != DQ_OK) return err;
    if ((i->op == DQ_OP_RET) != (w->pc == w->n - 1)) {
        if (w->depth == 0 && i->op == DQ_OP_RET) return bad(w, "the stack is empty");
        return bad(w, "RET must be the last instruction, and only that");
    }
    if (i->op == DQ_OP_RET) return w->depth == 0 ? bad(w, "the stack is empty") : DQ_OK;
    if (i->op == DQ_OP_PICK)
        return i->c < w->depth ? push(w, w->cond[i->c]) : bad(w, "the stack holds nothing there");
    if (i->op == DQ_OP_PUSH) return push(w, false);
    if (i->op == DQ_OP_LOAD) return check_load(w, i);
    if (i->op == DQ_OP_LOAD_AT) return check_load_at(w, i);
    if (i->op == DQ_OP_FIND) return check_find(w, i);
    if (i->op == DQ_OP_KEEP || i->op == DQ_OP_ZERO) return check_keep(w);
    if (is_jump(i->op)) return check_jump(w, i);
    if (i->op == DQ_OP_NOT) return (err = pop(w, true)) != DQ_OK ? err : push(w, true);
    for (uint32_t k = 0; k < numbers[i->op] && err == DQ_OK; k++)
        err = pop(w, false);
    return err != DQ_OK ? err : push(w, is_comparison(i->op));
}

int dqi_prog_check(const dq_insn *insns, uint32_t n, bool *condition, dq_diag *diag) {
    if (n == 0 || n > DQ_PROG_MAX_INSNS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "packet program: %u instructions are outside 1..%u", n,
                        DQ_PROG_MAX_INSNS);
    walk w = {.insns = insns, .n = n, .diag = diag};
    for (; w.pc < n; w.pc++) {
        uint32_t open = w.open;
        int err = step(&w);
        if (err != DQ_OK) return err;
        if (open != 0 || is_jump(insns[w.pc].op)) find_floor(&w);
    }
    if (condition) *condition = w.cond[w.depth - 1];
    return DQ_OK;
}
