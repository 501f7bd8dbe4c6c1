// cbpf_test.c: classic BPF: the check, each instruction, and, where libpcap is there, its filters on
// described frames.
#include "frames.h"

#include "program/cbpf.h"

// Opcodes as bpf(4) spells them, written out here so that the interpreter's own numbering is tested.
enum {
    LD_W_ABS = 0x20,
    LD_H_ABS = 0x28,
    LD_B_ABS = 0x30,
    LD_W_IND = 0x40,
    LD_H_IND = 0x48,
    LD_B_IND = 0x50,
    LD_IMM = 0x00,
    LD_MEM = 0x60,
    LD_LEN = 0x80,
    LDX_IMM = 0x01,
    LDX_MEM = 0x61,
    LDX_LEN = 0x81,
    LDX_MSH = 0xb1,
    ST = 0x02,
    STX = 0x03,
    ADD_K = 0x04,
    SUB_K = 0x14,
    MUL_K = 0x24,
    DIV_K = 0x34,
    OR_K = 0x44,
    AND_K = 0x54,
    LSH_K = 0x64,
    RSH_K = 0x74,
    NEG = 0x84,
    MOD_K = 0x94,
    XOR_K = 0xa4,
    ALU_X = 0x08,
    JA = 0x05,
    JEQ_K = 0x15,
    JGT_K = 0x25,
    JGE_K = 0x35,
    JSET_K = 0x45,
    JEQ_X = 0x1d,
    RET_K = 0x06,
    RET_A = 0x16,
    TAX = 0x07,
    TXA = 0x87,
};

static uint32_t run(const dq_cbpf_insn *insns, uint32_t n, const uint8_t *p, uint32_t wirelen,
                    uint32_t caplen) {
    dq_diag diag = {{0}};
    if (dqi_cbpf_check(insns, n, &diag) == DQ_OK) return dqi_cbpf_run(insns, n, p, wirelen, caplen);
    dq_failed(__FILE__, __LINE__, diag.text);
    return 0;
}

typedef struct alu {
    const char *name;
    uint16_t code;
    uint32_t a, v, want;
} alu;

static void arithmetic(void) {
    static const alu cases[] = {
        {"add", ADD_K, 0xffffffff, 2, 1},
        {"sub", SUB_K, 1, 2, 0xffffffff},
        {"mul", MUL_K, 0x10000, 0x10001, 0x10000},
        {"div", DIV_K, 17, 5, 3},
        {"mod", MOD_K, 17, 5, 2},
        {"or", OR_K, 12, 10, 14},
        {"and", AND_K, 12, 10, 8},
        {"xor", XOR_K, 12, 10, 6},
        {"lsh", LSH_K, 3, 31, 0x80000000},
        {"rsh", RSH_K, 0x80000000, 31, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const alu *c = &cases[i];
        dq_case = c->name;
        dq_cbpf_insn k[] = {{LD_IMM, 0, 0, c->a}, {c->code, 0, 0, c->v}, {RET_A, 0, 0, 0}};
        DQ_EQ(run(k, 3, NULL, 0, 0), c->want);
        dq_cbpf_insn x[] = {{LD_IMM, 0, 0, c->a},
                            {LDX_IMM, 0, 0, c->v},
                            {(uint16_t)(c->code | ALU_X), 0, 0, 0},
                            {RET_A, 0, 0, 0}};
        DQ_EQ(run(x, 4, NULL, 0, 0), c->want);
    }
    dq_cbpf_insn neg[] = {{LD_IMM, 0, 0, 5}, {NEG, 0, 0, 0}, {RET_A, 0, 0, 0}};
    DQ_EQ(run(neg, 3, NULL, 0, 0), 0xfffffffb);
    dq_cbpf_insn zero[] = {{LD_IMM, 0, 0, 5}, {DIV_K | ALU_X, 0, 0, 0}, {RET_K, 0, 0, 1}};
    DQ_EQ(run(zero, 3, NULL, 0, 0), 0);
    zero[1].code = MOD_K | ALU_X;
    DQ_EQ(run(zero, 3, NULL, 0, 0), 0);
    dq_cbpf_insn far[] = {{LD_IMM, 0, 0, 5}, {LDX_IMM, 0, 0, 32}, {LSH_K | ALU_X, 0, 0, 0}, {RET_A, 0, 0, 0}};
    DQ_EQ(run(far, 4, NULL, 0, 0), 0);
}

static void loads_and_their_ends(void) {
    static const uint8_t bytes[] = {0x45, 0x11, 0x22, 0x33, 0x44, 0x55};
    uint8_t *p = dq_exact(bytes, sizeof bytes);
    static const struct {
        uint16_t code;
        uint32_t k, want, size;
    } cases[] = {{LD_W_ABS, 2, 0x22334455, 4}, {LD_H_ABS, 4, 0x4455, 2}, {LD_B_ABS, 5, 0x55, 1},
                 {LD_W_IND, 1, 0x22334455, 4}, {LD_H_IND, 3, 0x4455, 2}, {LD_B_IND, 4, 0x55, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dq_cbpf_insn prog[] = {{LDX_IMM, 0, 0, 1}, {cases[i].code, 0, 0, cases[i].k}, {RET_A, 0, 0, 0}};
        DQ_EQ(run(prog, 3, p, 99, 6), cases[i].want);
        prog[1].k++;
        prog[2] = (dq_cbpf_insn){RET_K, 0, 0, 1};
        DQ_EQ(run(prog, 3, p, 99, 6), 0);
        prog[1].k = cases[i].code & 0x40 ? 0xffffffff : 0xffffefff;
        DQ_EQ(run(prog, 3, p, 99, 6), 0);
    }
    dq_cbpf_insn msh[] = {{LDX_MSH, 0, 0, 0}, {TXA, 0, 0, 0}, {RET_A, 0, 0, 0}};
    DQ_EQ(run(msh, 3, p, 99, 6), 20);
    msh[0].k = 6;
    DQ_EQ(run(msh, 3, p, 99, 6), 0);
    dq_cbpf_insn len[] = {{LD_LEN, 0, 0, 0}, {LDX_LEN, 0, 0, 0}, {ADD_K | ALU_X, 0, 0, 0}, {RET_A, 0, 0, 0}};
    DQ_EQ(run(len, 4, p, 99, 6), 198);
    free(p);
}

static void memory_and_registers(void) {
    dq_cbpf_insn prog[] = {{LD_IMM, 0, 0, 7},        {ST, 0, 0, 15},     {TAX, 0, 0, 0},
                           {STX, 0, 0, 0},           {LD_MEM, 0, 0, 3},  {LDX_MEM, 0, 0, 15},
                           {ADD_K | ALU_X, 0, 0, 0}, {LDX_MEM, 0, 0, 0}, {ADD_K | ALU_X, 0, 0, 0},
                           {RET_A, 0, 0, 0}};
    DQ_EQ(run(prog, 10, NULL, 0, 0), 14); // a word never written is 0
}

static void jumps(void) {
    static const struct {
        uint16_t code;
        uint32_t a, k;
        bool yes;
    } cases[] = {{JEQ_K, 5, 5, true}, {JEQ_K, 5, 6, false}, {JGT_K, 6, 5, true},  {JGT_K, 5, 5, false},
                 {JGE_K, 5, 5, true}, {JGE_K, 4, 5, false}, {JSET_K, 6, 2, true}, {JSET_K, 6, 1, false},
                 {JEQ_X, 0, 9, true}, {JEQ_X, 9, 9, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dq_cbpf_insn prog[] = {{LD_IMM, 0, 0, cases[i].a},
                               {cases[i].code, 1, 0, cases[i].k},
                               {RET_K, 0, 0, 1},
                               {RET_K, 0, 0, 2}};
        DQ_EQ(run(prog, 4, NULL, 0, 0), cases[i].yes ? 2 : 1);
    }
    dq_cbpf_insn ja[] = {{JA, 0, 0, 1}, {RET_K, 0, 0, 1}, {RET_K, 0, 0, 2}};
    DQ_EQ(run(ja, 3, NULL, 0, 0), 2);
}

typedef struct refusal {
    const char *text;
    uint32_t n;
    dq_cbpf_insn insns[3];
} refusal;

static void refuses_bad_programs(void) {
    static const refusal cases[] = {
        {"bpf program: 0 instructions are outside 1..4096", 0, {{0, 0, 0, 0}}},
        {"bpf program: the last instruction is not a return", 1, {{LD_IMM, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x05): jump past the end", 2, {{JA, 0, 0, 1}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x05): jump past the end",
         2,
         {{JA, 0, 0, 0xffffffff}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x15): jump past the end",
         2,
         {{JEQ_K, 1, 0, 0}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x15): jump past the end",
         2,
         {{JEQ_K, 0, 1, 0}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x34): division by 0", 2, {{DIV_K, 0, 0, 0}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x94): division by 0", 2, {{MOD_K, 0, 0, 0}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x64): shift by more than 31",
         2,
         {{LSH_K, 0, 0, 32}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x02): scratch memory index above 15",
         2,
         {{ST, 0, 0, 16}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x60): scratch memory index above 15",
         2,
         {{LD_MEM, 0, 0, 16}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x61): scratch memory index above 15",
         2,
         {{LDX_MEM, 0, 0, 16}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x28): inbound, outbound and the like ask for a packet's "
         "direction, which only the "
         "kernel knows; hint: what an interface receives is inbound",
         2,
         {{LD_H_ABS, 0, 0, 0xfffff004}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x20): ifindex asks for the kernel's interface; hint: name the "
         "interface to "
         "receive from",
         2,
         {{LD_W_ABS, 0, 0, 0xfffff008}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x30): it asks for what the kernel knows of a packet, and not for "
         "its bytes",
         2,
         {{LD_B_ABS, 0, 0, 0xffffffff}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0xff): unknown opcode", 2, {{0xff, 0, 0, 0}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x21): unknown opcode", 2, {{0x21, 0, 0, 0}, {RET_K, 0, 0, 0}}},
        {"bpf program: instruction 0 (code 0x120): unknown opcode", 2, {{0x120, 0, 0, 0}, {RET_K, 0, 0, 0}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dq_diag diag = {{0}};
        DQ_EQ(dqi_cbpf_check(cases[i].insns, cases[i].n, &diag), DQ_INVALID_PARAMETER);
        DQ_EQ_STR(diag.text, cases[i].text);
    }
}

static void random_programs_are_safe(void) {
    static const uint16_t codes[] = {LD_W_ABS, LD_H_IND, LD_B_ABS,      LD_MEM,        LDX_MSH, LDX_MEM, ST,
                                     STX,      ADD_K,    DIV_K | ALU_X, LSH_K | ALU_X, JEQ_K,   JGT_K,   JA,
                                     TAX,      TXA,      RET_A,         RET_K,         LD_LEN,  MOD_K};
    uint64_t seed = 16;
    uint32_t accepted = 0;
    for (int i = 0; i < 100000; i++) {
        dq_cbpf_insn prog[10];
        uint32_t n = 1 + dq_below(&seed, 10), len = dq_below(&seed, 40);
        for (uint32_t j = 0; j < n; j++) {
            uint16_t code =
                dq_below(&seed, 30) ? codes[dq_below(&seed, sizeof codes / 2)] : (uint16_t)dq_rand(&seed);
            prog[j] = (dq_cbpf_insn){code, (uint8_t)dq_below(&seed, 4), (uint8_t)dq_below(&seed, 4),
                                     dq_below(&seed, 9) ? dq_below(&seed, 20) : (uint32_t)dq_rand(&seed)};
        }
        prog[n - 1].code = RET_A;
        if (dqi_cbpf_check(prog, n, NULL) != DQ_OK) continue;
        accepted++;
        uint8_t buf[40];
        fill_random(&seed, buf, sizeof buf);
        uint8_t *p = dq_exact(buf, len);
        dqi_cbpf_run(prog, n, p, len, len);
        free(p);
    }
    DQ_CHECK(accepted > 10000);
}

static void passes_on_libpcaps_words(void) {
    dq_cbpf_insn *prog = NULL;
    uint32_t n;
    dq_diag diag = {{0}};
    int err = dq_pcap_compile("udp prot 3", 1, &prog, &n, &diag);
    if (err == DQ_NOT_SUPPORTED) {
        DQ_CHECK(strstr(diag.text, "libpcap0.8") != NULL);
        dq_lack("libpcap", diag.text);
    }
    DQ_EQ(err, DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(diag.text, "filter 'udp prot 3': ") == diag.text);
    DQ_CHECK(strlen(diag.text) > strlen("filter 'udp prot 3': "));
    DQ_CHECK(prog == NULL);
}

static bool udp_to_2001(const frame *f) { return frame_ports(f) && f->proto == 17 && f->dport == 2001; }
static bool tcp_from_low(const frame *f) { return frame_ports(f) && f->proto == 6 && f->sport <= 1001; }
static bool from_net(const frame *f) { return f->ip == 4 && f->src[3] / 2 == 1; }
static bool ipv6(const frame *f) { return f->ip == 6; }
static bool not_ip(const frame *f) { return f->ip == 0; }
static bool tos_and_length(const frame *f) { return f->ip == 4 && f->len > 150 && f->tos & 4; }

// Frames without VLAN tags or IPv6 extensions, which pcap's language does not follow.
static void libpcaps_filters(void) {
    static const struct {
        const char *text;
        bool (*want)(const frame *f);
    } cases[] = {
        {"udp dst port 2001", udp_to_2001},  {"tcp and src portrange 0-1001", tcp_from_low},
        {"src net 10.10.10.2/31", from_net}, {"ip6", ipv6},
        {"not ip and not ip6", not_ip},      {"len > 150 and ip[1] & 4 != 0", tos_and_length},
    };
    uint64_t seed = 17;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        dq_cbpf_insn *prog = NULL;
        uint32_t n, hits = 0;
        dq_diag diag = {{0}};
        dq_case = cases[c].text;
        if (dq_pcap_compile(cases[c].text, 1, &prog, &n, &diag) != DQ_OK) {
            dq_failed(__FILE__, __LINE__, diag.text);
            continue;
        }
        for (int i = 0; i < 3000; i++) {
            frame f;
            uint8_t buf[FRAME_MAX];
            frame_random(&seed, true, &f);
            f.n_vlans = f.extensions = 0;
            f.more_fragments = false;
            f.frag_offset = f.ip == 4 ? f.frag_offset : 0;
            uint32_t len = frame_write(&f, buf);
            uint8_t *p = dq_exact(buf, len);
            DQ_EQ(dqi_cbpf_run(prog, n, p, len, len) != 0, cases[c].want(&f));
            hits += cases[c].want(&f);
            free(p);
        }
        DQ_CHECK(hits > 20);
        free(prog);
    }
}

// Packets without an Ethernet header: the same text, compiled for raw IP.
static void filters_on_raw_ip(void) {
    dq_cbpf_insn *prog = NULL;
    uint32_t n = 0;
    dq_diag diag = {{0}};
    DQ_EQ(dq_pcap_compile("udp dst port 2001", 101, &prog, &n, &diag), DQ_OK);
    DQ_EQ_STR(diag.text, "");
    frame f = {.ip = 4, .proto = 17, .dport = 2001, .payload_len = 3};
    uint8_t buf[FRAME_MAX];
    uint32_t len = frame_write(&f, buf) - 14;
    uint8_t *p = dq_exact(buf + 14, len);
    if (prog != NULL) DQ_CHECK(dqi_cbpf_run(prog, n, p, len, len) != 0);
    if (prog != NULL) DQ_EQ(dqi_cbpf_run(prog, n, buf, len, len), 0);
    free(prog);
    free(p);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(arithmetic);
    DQ_RUN(loads_and_their_ends);
    DQ_RUN(memory_and_registers);
    DQ_RUN(jumps);
    DQ_RUN(refuses_bad_programs);
    DQ_RUN(random_programs_are_safe);
    DQ_RUN(passes_on_libpcaps_words);
    DQ_RUN(libpcaps_filters);
    DQ_RUN(filters_on_raw_ip);
    return dq_done();
}
