// cbpf.h: verifier and interpreter of classic BPF, the target language of libpcap's filter compiler.
//
// The machine is that of bpf(4): accumulator, index register, 16 words of scratch memory, forward jumps only.
// The extensions of the Linux kernel (loads at negative offsets) are not supported.
#ifndef DQI_CBPF_H
#define DQI_CBPF_H

#include "core/dq_core.h"
#include "program/dq_program.h"

#define DQI_CBPF_MAX_INSNS 4096

// Rejects a program that is not safe to run: unknown opcode, jump out of range, scratch index above 15,
// division by constant 0, shift by 32 or more, no RET at the end. Returns DQ_INVALID_PARAMETER, with the
// instruction and the reason in diag (may be NULL). Any thread.
int dqi_cbpf_check(const dq_cbpf_insn *insns, uint32_t n, dq_diag *diag);

// Runs a checked program of n instructions over the caplen bytes at pkt of a packet of wirelen bytes. Returns
// the program's result: bytes to keep, 0 for a packet that does not match; 0 also after a load past caplen or
// a division by zero. Never blocks. Any thread.
uint32_t dqi_cbpf_run(const dq_cbpf_insn *insns, uint32_t n, const uint8_t *pkt, uint32_t wirelen,
                      uint32_t caplen);

#endif
