// library_test.c: the programs that read the fields of the library's formats (made by tests/programs), over
// packets of the format, cut anywhere, and over random bytes. Each packet ends where what may be read ends.
#include "bed_frame.h"
#include "dqtest.h"

#include "program/burst_ops.h"
#include "program/expr.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   (void)0
#define ASAN_UNPOISON_MEMORY_REGION(p, n) (void)0
#endif

enum { N = 64, ROOM = 256, MOST = 240 };

typedef struct program {
    const char *name;
    const dq_insn *insns;
    size_t n;
    const uint64_t *want; // of each packet of the format
    const bool *has;
} program;

typedef struct format {
    const char *name, *layer;
    const program *programs;
    size_t n;
    const uint32_t *lens; // N packets from the header's start, in `bytes` one behind the other
    const uint8_t *bytes;
} format;

#include "library_programs.h"

#define FORMATS (sizeof formats / sizeof *formats)

static _Alignas(8) uint8_t bytes[N * ROOM];
static uint64_t off[N];
static uint32_t len[N];

static void open_all(void) { ASAN_UNPOISON_MEMORY_REGION(bytes, sizeof bytes); }

// What is behind each packet may not be read, nor what is in front of the first.
static dqi_packets close_all(void) {
    for (uint32_t i = 0; i < N; i++)
        ASAN_POISON_MEMORY_REGION(bytes + off[i] + len[i], ROOM - len[i]);
    return (dqi_packets){.base = bytes, .off = off, .len = len, .n = N};
}

static dq_prog *compile(const program *p) {
    dq_prog *prog = NULL;
    dq_diag diag = {{0}};
    if (dq_prog_new(p->insns, (uint32_t)p->n, &prog, &diag) != DQ_OK)
        dq_failed(__FILE__, __LINE__, diag.text);
    return prog;
}

static bool is_frame(const format *f) { return strcmp(f->layer, "frame") == 0; }

// Fields of payloads, also behind headers, and of frames are what runtime/format reads. Of network and
// transport headers random ones are none to a parser that checks both.
static void agree(const format *f, bool payload) {
    uint64_t out[N];
    uint8_t ok[N];
    const uint8_t *from = f->bytes;
    uint32_t head = payload || is_frame(f) ? 0 : BED_HEAD;
    open_all();
    for (uint32_t i = 0; i < N; from += f->lens[i++]) {
        off[i] = (uint64_t)i * ROOM;
        len[i] = head + f->lens[i];
        DQ_CHECK(len[i] <= MOST);
        if (head) bed_frame(bytes + off[i], len[i] < BED_MIN ? BED_MIN : len[i], 1000, 7, 0);
        if (head) memcpy(bytes + off[i] + 38, (uint8_t[]){0, (uint8_t)(8 + f->lens[i])}, 2);
        if (head) memcpy(bytes + off[i] + 16, (uint8_t[]){0, (uint8_t)(28 + f->lens[i])}, 2);
        memcpy(bytes + off[i] + head, from, f->lens[i]);
    }
    dqi_packets in = close_all();
    for (const program *p = f->programs; p < f->programs + f->n; p++) {
        dq_prog *prog = compile(p);
        const dqi_level *k;
        for (uint32_t l = 0; prog && (k = dqi_level_at(l)) != NULL; l++) {
            dqi_prog_eval(prog, k, &in, payload, out, ok);
            for (uint32_t i = 0; i < N; i++) {
                if (ok[i] == p->has[i] && out[i] == p->want[i]) continue;
                char text[200];
                snprintf(text, sizeof text,
                         "%s.%s of packet %u, %u bytes, level %s: %d %" PRIu64 ", want %d %" PRIu64, f->name,
                         p->name, i, len[i], k->name, ok[i], out[i], p->has[i], p->want[i]);
                dq_failed(__FILE__, __LINE__, text);
            }
        }
        dq_prog_free(prog);
    }
}

static void what_packets_say(void) {
    for (const format *f = formats; f < formats + FORMATS; f++) {
        bool payload = strcmp(f->layer, "payload") == 0;
        if (payload || is_frame(f)) agree(f, false);
        if (payload) agree(f, true);
    }
}

// Random bytes, some of them behind headers that are right, and of the format's first bytes.
static dqi_packets make(uint64_t *seed, const format *f, bool payload) {
    open_all();
    for (uint32_t i = 0; i < N; i++) {
        uint8_t *p = bytes + (uint64_t)i * ROOM;
        uint32_t head = payload || i % 3 == 0 ? 0 : i % 3 == 1 ? 14 : BED_HEAD;
        off[i] = (uint64_t)i * ROOM;
        len[i] = (uint32_t)dq_below(seed, MOST - BED_HEAD) + (i % 4 ? head : 0);
        bed_frame(p, MOST, 1000, 7, i);
        for (uint32_t k = head; k < MOST; k++)
            p[k] = (uint8_t)dq_rand(seed);
        if (head == 14) memcpy(p + 12, i % 2 ? "\x08\x06" : i % 4 ? "\x86\xdd" : "\x08\x00", 2);
        if (head == 14 && i % 5) p[14] = i % 4 ? 0x60 : 0x45 + (uint8_t)dq_below(seed, 11);
        if (head == BED_HEAD) memcpy(p + 16, (uint8_t[]){0, (uint8_t)(len[i] - 14)}, 2);
        if (head == BED_HEAD) memcpy(p + 38, (uint8_t[]){0, (uint8_t)(len[i] - 34)}, 2);
        if (head == BED_HEAD && i % 7 == 0) p[23] = dq_below(seed, 2) ? 6 : 1;
        if (i % 2) memcpy(p + head, f->bytes, f->lens[0] < 8 ? f->lens[0] : 8);
    }
    return close_all();
}

static void random_bytes(void) {
    uint64_t seed = 11, out[N], model[N];
    uint8_t ok[N], model_ok[N];
    for (const format *f = formats; f < formats + FORMATS; f++) {
        for (const program *p = f->programs; p < f->programs + f->n; p++) {
            dq_prog *prog = compile(p);
            for (uint32_t round = 0; prog && round < 20; round++) {
                bool payload = round % 2;
                dqi_packets in = make(&seed, f, payload);
                const dqi_level *k;
                for (uint32_t l = 0; (k = dqi_level_at(l)) != NULL; l++) {
                    dqi_prog_eval(prog, k, &in, payload, l ? out : model, l ? ok : model_ok);
                    DQ_CHECK(l == 0 ||
                             (memcmp(out, model, sizeof out) == 0 && memcmp(ok, model_ok, sizeof ok) == 0));
                }
            }
            dq_prog_free(prog);
        }
    }
    open_all();
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(what_packets_say);
    DQ_RUN(random_bytes);
    return dq_done();
}
