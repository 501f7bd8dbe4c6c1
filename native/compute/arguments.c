// arguments.c: converts launch arguments: to a value, or to the address of memory accessible to the kernel.
// Data in the CPU's own memory (bitmaps, columns, tables of packets) are copied to the launch's pinned
// scratch memory.
#include "compute/arguments.h"
#include "core/burst.h"
#include "core/err.h"

#include <string.h>

#define UNIT 16 // alignment of copied data in bytes

static const dq_burst *burst_of(const dq_kernel_arg *a, const dq_burst *b) { return a->b ? a->b : b; }

static bool of_aggregate(int32_t kind) {
    return kind == DQ_ARG_PRESENT || kind == DQ_ARG_EXTRA || kind == DQ_ARG_BATCH_ID;
}

static bool of_packets(int32_t kind) { return kind == DQ_ARG_DATA || kind == DQ_ARG_BURST; }

// ---- checks -----------------------------------------------------------------------------------------------

static int fault(dq_diag *diag, const char *what, uint32_t k, const char *text) {
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: argument %u: %s", what, k + 1, text);
}

static int check_segment(dqi_gpu *gpu, const char *what, uint32_t k, const dq_burst *b, uint32_t s,
                         dq_diag *diag) {
    const dq_region *r = dqi_off_region(b->session, b->off[s][0]);
    if (!r || r->cpu || (gpu && r->gpu == gpu)) return DQ_OK;
    if (!r->gpu)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: argument %u: region %s is out of its reach", what, k + 1,
                        r->conf.name);
    if (!gpu)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "%s: argument %u: region %s lies on GPU %d, and the kernel runs on the host; hint: a region of "
            "kind host_pinned, or s:copy to one",
            what, k + 1, r->conf.name, r->conf.gpu);
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "%s: argument %u: region %s lies on GPU %d, and the kernel runs on GPU %d; hint: s:copy",
                    what, k + 1, r->conf.name, r->conf.gpu, gpu->info.number);
}

static int check_array(dqi_gpu *gpu, const char *what, uint32_t k, const dq_array *a, dq_diag *diag) {
    if (!gpu && !a->cpu) return fault(diag, what, k, "an array of a GPU, and the kernel runs on the host");
    if (gpu && !a->gpu)
        return fault(
            diag, what, k,
            "an array of kind host, which a GPU doesn't reach: hint: kind = \"host_pinned\" or \"device\"");
    if (gpu && !a->cpu && a->gpu != gpu) return fault(diag, what, k, "an array of another GPU");
    return DQ_OK;
}

static int check_burst(dqi_gpu *gpu, const char *what, uint32_t k, int32_t kind, const dq_burst *b,
                       dq_diag *diag) {
    if (of_aggregate(kind) && !b->aggregate)
        return fault(diag, what, k, "the burst is none that a reorder stage made");
    if (kind == DQ_ARG_EXTRA && !b->aggregate->extra)
        return fault(diag, what, k, "the reorder stage keeps no extra number");
    if (kind == DQ_ARG_DATA && b->n != 1)
        return fault(diag, what, k, "the burst is none of one packet: hint: \"burst\" passes any");
    int err = DQ_OK;
    for (uint32_t s = 0; of_packets(kind) && b->n > 0 && s < b->nseg && err == DQ_OK; s++)
        err = check_segment(gpu, what, k, b, s, diag);
    return err;
}

int dqi_arguments_check(dqi_gpu *gpu, const char *what, const dq_kernel_arg *args, uint32_t n,
                        const dq_burst *b, dq_diag *diag) {
    if (n > DQ_MAX_KERNEL_ARGS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: %u arguments, and there may be %d", what, n,
                        DQ_MAX_KERNEL_ARGS);
    int err = DQ_OK;
    for (uint32_t k = 0; k < n && err == DQ_OK; k++) {
        const dq_burst *of = burst_of(&args[k], b);
        if (args[k].kind == DQ_ARG_ARRAY)
            err = check_array(gpu, what, k, args[k].array, diag);
        else if (args[k].kind > DQ_ARG_WORDS)
            err = of ? check_burst(gpu, what, k, args[k].kind, of, diag)
                     : fault(diag, what, k, "it needs a burst");
    }
    return err;
}

// ---- values -----------------------------------------------------------------------------------------------

static uint64_t bitmap_bytes(const dq_aggregate *a) { return (a->cells + 63) / 64 * sizeof(uint64_t); }

// Returns the bytes of the data of an argument that must be copied.
static uint64_t own_bytes(const dq_kernel_arg *a, const dq_burst *b) {
    switch (a->kind) {
    case DQ_ARG_WORDS:
        return a->n_words * sizeof *a->words;
    case DQ_ARG_PRESENT:
        return b->aggregate->on_gpu ? 0 : bitmap_bytes(b->aggregate);
    case DQ_ARG_EXTRA:
        return b->aggregate->on_gpu ? 0 : b->aggregate->slots * sizeof(uint64_t);
    case DQ_ARG_BURST:
        return sizeof(dqi_kernel_burst) + (uint64_t)b->n * b->nseg * sizeof(dqi_kernel_packet);
    default:
        return 0;
    }
}

uint64_t dqi_arguments_bytes(const dq_kernel_arg *args, uint32_t n, const dq_burst *b) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += dqi_round_up(own_bytes(&args[k], burst_of(&args[k], b)), UNIT);
    return sum;
}

static void fill_burst(const dq_burst *b, uint8_t *to) {
    dqi_kernel_burst *head = (dqi_kernel_burst *)(void *)to;
    dqi_kernel_packet *p = (dqi_kernel_packet *)(void *)(head + 1);
    *head = (dqi_kernel_burst){.packets = b->n, .segments = b->nseg, .at = (uintptr_t)p};
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t s = 0; s < b->nseg; s++)
            *p++ = (dqi_kernel_packet){(uintptr_t)dqi_device_bytes(b, s, i), b->len[s][i], b->flow[i]};
}

static void fill(const dq_kernel_arg *a, const dq_burst *b, uint8_t *to, uint64_t bytes) {
    const void *from = a->kind == DQ_ARG_WORDS     ? a->words
                       : a->kind == DQ_ARG_PRESENT ? b->aggregate->present
                       : a->kind == DQ_ARG_EXTRA   ? b->aggregate->extra
                                                   : NULL;
    if (from)
        memcpy(to, from, bytes);
    else
        fill_burst(b, to);
}

static uint64_t value_of(const dq_kernel_arg *a, const dq_burst *b) {
    switch (a->kind) {
    case DQ_ARG_ARRAY:
        return a->array->device;
    case DQ_ARG_DATA:
        return (uintptr_t)dqi_device_bytes(b, 0, 0);
    case DQ_ARG_PRESENT:
        return b->aggregate->on_gpu;
    case DQ_ARG_EXTRA:
        return b->aggregate->on_gpu + bitmap_bytes(b->aggregate);
    case DQ_ARG_BATCH_ID:
        return b->aggregate->batch_id;
    case DQ_ARG_PACKETS:
        return b->n;
    default:
        return a->value;
    }
}

void dqi_arguments_fill(const dq_kernel_arg *args, uint32_t n, const dq_burst *b, uint8_t *scratch,
                        uint64_t *values) {
    for (uint32_t k = 0; k < n; k++) {
        const dq_burst *of = burst_of(&args[k], b);
        uint64_t bytes = own_bytes(&args[k], of);
        values[k] = bytes > 0 ? (uintptr_t)scratch : value_of(&args[k], of);
        if (bytes > 0) fill(&args[k], of, scratch, bytes);
        scratch += dqi_round_up(bytes, UNIT);
    }
}
