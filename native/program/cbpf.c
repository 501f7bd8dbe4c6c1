// cbpf.c: verifier and interpreter of classic BPF.
//
// Opcodes consist of three fields: class, size or operation, and mode or source, numbered as in bpf(4). The
// verifier accepts only listed opcodes, so the interpreter's decoding by fields covers all of them.
#include "program/cbpf.h"
#include "core/err.h"
#include "packet/packet.h"

enum { CLASS_LD, CLASS_LDX, CLASS_ST, CLASS_STX, CLASS_ALU, CLASS_JMP, CLASS_RET, CLASS_MISC };
enum { SIZE_W = 0x00, SIZE_H = 0x08, SIZE_B = 0x10 };
enum { MODE_IMM = 0x00, MODE_ABS = 0x20, MODE_IND = 0x40, MODE_MEM = 0x60, MODE_LEN = 0x80, MODE_MSH = 0xa0 };
enum {
    ADD = 0x00,
    SUB = 0x10,
    MUL = 0x20,
    DIV = 0x30,
    OR = 0x40,
    AND = 0x50,
    LSH = 0x60,
    RSH = 0x70,
    NEG = 0x80
};
enum { MOD = 0x90, XOR = 0xa0 };
enum { JA = 0x00, JEQ = 0x10, JGT = 0x20, JGE = 0x30, JSET = 0x40 };
enum { SRC_X = 0x08, RET_A = 0x10, TXA = 0x80 };
enum { N_MEM = 16 };

static uint16_t class_of(uint16_t code) { return code & 0x07; }
static uint16_t size_of(uint16_t code) { return code & 0x18; }
static uint16_t mode_of(uint16_t code) { return code & 0xe0; }
static uint16_t op_of(uint16_t code) { return code & 0xf0; }

// ---- check ------------------------------------------------------------------------------------------------

static bool known_load(uint16_t code) {
    uint16_t size = size_of(code), mode = mode_of(code);
    if (class_of(code) == CLASS_LDX && mode == MODE_MSH) return size == SIZE_B;
    if (mode == MODE_IMM || mode == MODE_MEM || mode == MODE_LEN) return size == SIZE_W;
    return class_of(code) == CLASS_LD && (mode == MODE_ABS || mode == MODE_IND) && size <= SIZE_B;
}

static bool known(uint16_t code) {
    if (code > 0xff) return false;
    switch (class_of(code)) {
    case CLASS_LD:
    case CLASS_LDX:
        return known_load(code);
    case CLASS_ST:
    case CLASS_STX:
        return code == class_of(code);
    case CLASS_ALU:
        return op_of(code) <= XOR && (op_of(code) != NEG || !(code & SRC_X));
    case CLASS_JMP:
        return op_of(code) <= JSET && (op_of(code) != JA || !(code & SRC_X));
    case CLASS_RET:
        return code == CLASS_RET || code == (CLASS_RET | RET_A);
    default: // CLASS_MISC
        return code == CLASS_MISC || code == (CLASS_MISC | TXA);
    }
}

static const char *jump_fault(const dq_cbpf_insn *i, uint32_t left) {
    bool out = op_of(i->code) == JA ? i->k >= left : i->jt >= left || i->jf >= left;
    return out ? "jump past the end" : NULL;
}

static const char *alu_fault(const dq_cbpf_insn *i) {
    uint16_t op = op_of(i->code);
    if (i->code & SRC_X) return NULL;
    if ((op == DIV || op == MOD) && i->k == 0) return "division by 0";
    if ((op == LSH || op == RSH) && i->k > 31) return "shift by more than 31";
    return NULL;
}

#define KERNEL_ONLY 0xfffff000u // from here on loads access packet metadata of the Linux kernel (SKF_AD_OFF)

// Rejects loads of metadata that is not in the packet: direction, interface, a tag stripped by the device.
static const char *kernel_fault(const dq_cbpf_insn *i) {
    if (class_of(i->code) != CLASS_LD || mode_of(i->code) != MODE_ABS || i->k < KERNEL_ONLY) return NULL;
    switch (i->k - KERNEL_ONLY) {
    case 4:
        return "inbound, outbound and the like ask for a packet's direction, which only the kernel knows; "
               "hint: what "
               "an interface receives is inbound";
    case 8:
        return "ifindex asks for the kernel's interface; hint: name the interface to receive from";
    default:
        return "it asks for what the kernel knows of a packet, and not for its bytes";
    }
}

// Returns the error in an instruction that is followed by `left` instructions, or NULL.
static const char *fault(const dq_cbpf_insn *i, uint32_t left) {
    if (!known(i->code)) return "unknown opcode";
    uint16_t cls = class_of(i->code);
    bool mem = cls == CLASS_ST || cls == CLASS_STX || (cls <= CLASS_LDX && mode_of(i->code) == MODE_MEM);
    if (mem && i->k >= N_MEM) return "scratch memory index above 15";
    if (cls == CLASS_JMP) return jump_fault(i, left);
    if (cls == CLASS_ALU) return alu_fault(i);
    return kernel_fault(i);
}

int dqi_cbpf_check(const dq_cbpf_insn *insns, uint32_t n, dq_diag *diag) {
    if (n == 0 || n > DQI_CBPF_MAX_INSNS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "bpf program: %u instructions are outside 1..%u", n,
                        DQI_CBPF_MAX_INSNS);
    for (uint32_t pc = 0; pc < n; pc++) {
        const char *what = fault(&insns[pc], n - 1 - pc);
        if (what != NULL)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "bpf program: instruction %u (code 0x%02x): %s", pc,
                            insns[pc].code, what);
    }
    if (class_of(insns[n - 1].code) != CLASS_RET)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "bpf program: the last instruction is not a return");
    return DQ_OK;
}

// ---- interpreter ------------------------------------------------------------------------------------------

typedef struct machine {
    const uint8_t *pkt;
    uint32_t wirelen, caplen;
    uint32_t a, x;
    uint32_t mem[N_MEM]; // 0 until written
} machine;

// Loads 4, 2 or 1 bytes, big-endian; false past the end.
static bool load_packet(machine *m, uint64_t off, uint16_t size) {
    uint32_t bytes = size == SIZE_W ? 4 : size == SIZE_H ? 2 : 1;
    if (off + bytes > m->caplen) return false;
    const uint8_t *p = m->pkt + off;
    m->a = bytes == 4 ? dqi_be32(p) : bytes == 2 ? dqi_be16(p) : *p;
    return true;
}

static bool run_ld(machine *m, const dq_cbpf_insn *i) {
    switch (mode_of(i->code)) {
    case MODE_ABS:
        return load_packet(m, i->k, size_of(i->code));
    case MODE_IND:
        return load_packet(m, (uint64_t)m->x + i->k, size_of(i->code));
    case MODE_MEM:
        m->a = m->mem[i->k];
        return true;
    case MODE_LEN:
        m->a = m->wirelen;
        return true;
    default: // MODE_IMM
        m->a = i->k;
        return true;
    }
}

static bool run_ldx(machine *m, const dq_cbpf_insn *i) {
    switch (mode_of(i->code)) {
    case MODE_MSH: // length of an IPv4 header
        if (i->k >= m->caplen) return false;
        m->x = (uint32_t)(m->pkt[i->k] & 15) * 4;
        return true;
    case MODE_MEM:
        m->x = m->mem[i->k];
        return true;
    case MODE_LEN:
        m->x = m->wirelen;
        return true;
    default: // MODE_IMM
        m->x = i->k;
        return true;
    }
}

static bool run_alu(machine *m, const dq_cbpf_insn *i) {
    uint32_t v = i->code & SRC_X ? m->x : i->k;
    switch (op_of(i->code)) {
    case ADD:
        m->a += v;
        return true;
    case SUB:
        m->a -= v;
        return true;
    case MUL:
        m->a *= v;
        return true;
    case DIV:
        if (v != 0) m->a /= v;
        return v != 0;
    case MOD:
        if (v != 0) m->a %= v;
        return v != 0;
    case OR:
        m->a |= v;
        return true;
    case AND:
        m->a &= v;
        return true;
    case XOR:
        m->a ^= v;
        return true;
    case LSH:
        m->a = v < 32 ? m->a << v : 0;
        return true;
    case RSH:
        m->a = v < 32 ? m->a >> v : 0;
        return true;
    default: // NEG
        m->a = 0 - m->a;
        return true;
    }
}

// Returns the number of instructions to skip.
static uint32_t run_jmp(const machine *m, const dq_cbpf_insn *i) {
    uint32_t v = i->code & SRC_X ? m->x : i->k;
    bool yes;
    switch (op_of(i->code)) {
    case JEQ:
        yes = m->a == v;
        break;
    case JGT:
        yes = m->a > v;
        break;
    case JGE:
        yes = m->a >= v;
        break;
    case JSET:
        yes = (m->a & v) != 0;
        break;
    default: // JA
        return i->k;
    }
    return yes ? i->jt : i->jf;
}

uint32_t dqi_cbpf_run(const dq_cbpf_insn *insns, uint32_t n, const uint8_t *pkt, uint32_t wirelen,
                      uint32_t caplen) {
    machine m = {.pkt = pkt, .wirelen = wirelen, .caplen = caplen};
    for (uint64_t pc = 0; pc < n; pc++) {
        const dq_cbpf_insn *i = &insns[pc];
        bool ok = true;
        switch (class_of(i->code)) {
        case CLASS_LD:
            ok = run_ld(&m, i);
            break;
        case CLASS_LDX:
            ok = run_ldx(&m, i);
            break;
        case CLASS_ST:
            m.mem[i->k] = m.a;
            break;
        case CLASS_STX:
            m.mem[i->k] = m.x;
            break;
        case CLASS_ALU:
            ok = run_alu(&m, i);
            break;
        case CLASS_JMP:
            pc += run_jmp(&m, i);
            break;
        case CLASS_RET:
            return i->code & RET_A ? m.a : i->k;
        default: // CLASS_MISC
            *(i->code & TXA ? &m.a : &m.x) = i->code & TXA ? m.x : m.a;
        }
        if (!ok) return 0;
    }
    return 0;
}
