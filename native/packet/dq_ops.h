// dq_ops.h: the instructions of packet programs, and classic BPF instructions.
//
// runtime/expr holds the same numbers as Go constants, and a test compares the two.
#ifndef DQ_OPS_H
#define DQ_OPS_H

#include <stdint.h>

// Opcodes of packet programs: a stack machine on 64-bit numbers and on conditions. Binary operators pop b,
// then a, and push a∘b. An operand that the packet lacks, or a division by zero, spoils what is computed from
// it: a comparison with it is false, a number is absent. Arithmetic wraps at 2^64.
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
    DQ_OP_JZ, // the condition on top is false: go to instruction c and keep it; else pop and go on. What lies
              // beneath is not touched before c.
    DQ_OP_JNZ,     // the same where it is true
    DQ_OP_RET,     // the last instruction: what is on top is the result; a number holds where it is not 0
    DQ_OP_LOAD_AT, // a LOAD by bits whose bit_offset grows by the number that it pops, below 2^31
    DQ_OP_FIND, // pops how many items a list has, then a number of bits as LOAD_AT does; pushes the value of
                // the first that begins with imm. a: bytes of an item, b: bits of its value, which is at its
                // end, c: bit offset of the list in the innermost payload, all on byte boundaries
    DQ_OP_KEEP, // pops a condition: the number beneath is absent where it is false
    DQ_OP_ZERO, // pops a condition: the number beneath is 0, and there, where it is false
    DQ_OP_PICK, // pushes a copy of what is c-th on the stack, from the bottom and 0 on
    DQ_OP_ONES, // unary: how many bits are set
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

// A classic BPF instruction, laid out as in <linux/filter.h> and <pcap/bpf.h>.
typedef struct dq_cbpf_insn {
    uint16_t code;
    uint8_t jt;
    uint8_t jf;
    uint32_t k;
} dq_cbpf_insn;

#endif
