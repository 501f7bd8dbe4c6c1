// dq_ops.h: instructions of packet programs and of classic BPF.
//
// runtime/expr has the same numbers as Go constants; a test compares the two.
#ifndef DQ_OPS_H
#define DQ_OPS_H

#include <stdint.h>

// Opcodes of packet programs: a stack machine on 64-bit numbers and conditions. Binary operators pop b, then
// a, and push the result of a op b. A missing operand or a division by zero makes the result absent: a
// comparison with it is false, a number has no value. Arithmetic wraps at 2^64.
enum dq_opcode {
    DQ_OP_INVALID = 0,
    DQ_OP_PUSH, // imm
    DQ_OP_LOAD, // a: base, b: bit_width, c: bit_offset, imm: meta | flags << 8 | need << 16
    DQ_OP_ADD,
    DQ_OP_SUB,
    DQ_OP_MUL,
    DQ_OP_DIV_S, // floor, signed
    DQ_OP_DIV_U,
    DQ_OP_MOD_S, // floor: the sign of the divisor
    DQ_OP_MOD_U,
    DQ_OP_AND, // bits
    DQ_OP_OR,  // bits
    DQ_OP_XOR, // bits
    DQ_OP_SHL, // a count outside 0..63 gives 0
    DQ_OP_SHR, // logical; a count outside 0..63 gives 0
    DQ_OP_SAR, // arithmetic: floor division by a power of two; a count above 63 acts as 63
    DQ_OP_NEG, // unary
    DQ_OP_INV, // unary, bits
    DQ_OP_EQ,  // comparisons take numbers and push a condition
    DQ_OP_NE,
    DQ_OP_LT_S,
    DQ_OP_LE_S,
    DQ_OP_GT_S,
    DQ_OP_GE_S,
    DQ_OP_LT_U,
    DQ_OP_LE_U,
    DQ_OP_GT_U,
    DQ_OP_GE_U,
    DQ_OP_NOT, // of a condition
    DQ_OP_JZ, // if the condition on top is false: jump to instruction c and keep it; else pop it. The code up
              // to c does not change the stack below.
    DQ_OP_JNZ,     // likewise, if it is true
    DQ_OP_RET,     // the last instruction: the top is the result; a number counts as true if it is not 0
    DQ_OP_LOAD_AT, // LOAD by bits, with the popped number, below 2^31, added to bit_offset
    DQ_OP_FIND, // pops a list's item count, then a number of bits as LOAD_AT; pushes the value of the first
                // item whose key is imm. a: bytes of an item, b: bits of the value at its end, c: bit offset
                // of the list in the innermost payload; all on byte boundaries
    DQ_OP_KEEP, // pops a condition; if false, the number below becomes absent
    DQ_OP_ZERO, // pops a condition; if false, the number below becomes a present 0
    DQ_OP_PICK, // pushes a copy of stack entry c, counted from the bottom and from 0
    DQ_OP_ONES, // unary: the number of set bits
    DQ_OP_COUNT
};

#define DQ_PROG_MAX_INSNS 1024
#define DQ_PROG_MAX_STACK 32

typedef struct dq_insn {
    uint8_t op; // enum dq_opcode
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t imm;
} dq_insn;

// A classic BPF instruction, with the layout of <linux/filter.h> and <pcap/bpf.h>.
typedef struct dq_cbpf_insn {
    uint16_t code;
    uint8_t jt;
    uint8_t jf;
    uint32_t k;
} dq_cbpf_insn;

#endif
