// launch_test.c: launches of users' kernels on a GPU, on the library that stands in for the driver, linked
// in. The kernels are functions of this file. Launches on the host: runtime/kernel.
#include "../../gpu/fake/fake_cuda.c"
#include "../../gpu/fake/fake_error.c"
#include "../../gpu/fake/fake_handles.c"
#include "../../gpu/fake/fake_list.c"
#include "../../gpu/fake/fake_time.c"
#include "../../gpu/fake/fake_user.c"

#include "dqtest.h"

#include "compute/arguments.h"
#include "compute/launch.h"
#include "core/burst.h"
#include "core/clock.h"
#include "cuda/memory.h"

#include <dlfcn.h>
#include <sys/wait.h>

#define WAIT INT64_C(20000000000) // longer is a hang

static void must(int err, const dq_diag *d, const char *what) {
    if (err == DQ_OK) return;
    fprintf(stderr, "%s: %s: %s: %s\n", dq_case, what, dq_err_name(err), d->text);
    exit(1);
}

// ---- kernels ----------------------------------------------------------------------------------------------

// add(uint64_t *to, uint64_t n)
static const char *add_up(void *const *args, const uint32_t *grid, const uint32_t *block) {
    uint64_t *to = *(uint64_t *const *)args[0];
    *to += *(const uint64_t *)args[1] * grid[0] * block[0];
    return NULL;
}

// sum(const uint64_t *words, uint32_t n, uint64_t *to)
static const char *sum_words(void *const *args, const uint32_t *grid, const uint32_t *block) {
    (void)grid, (void)block;
    const uint64_t *words = *(const uint64_t *const *)args[0];
    for (uint32_t k = 0; k < *(const uint32_t *)args[1]; k++)
        **(uint64_t *const *)args[2] += words[k];
    return NULL;
}

// bytes(const daqiri_burst *b, uint64_t *to)
static const char *sum_bytes(void *const *args, const uint32_t *grid, const uint32_t *block) {
    (void)grid, (void)block;
    const dqi_kernel_burst *b = *(const dqi_kernel_burst *const *)args[0];
    const dqi_kernel_packet *p = (const dqi_kernel_packet *)(uintptr_t)b->at;
    for (uint32_t k = 0; k < b->packets * b->segments; k++)
        for (uint32_t i = 0; i < p[k].bytes; i++)
            **(uint64_t *const *)args[1] += ((const uint8_t *)(uintptr_t)p[k].data)[i];
    return NULL;
}

static const dqi_host_kernel add_kernel = {.types = "p8i8", .run = add_up},
                             words_kernel = {.types = "p8i4p8", .run = sum_words},
                             bytes_kernel = {.types = "p8p8", .run = sum_bytes};

// A kernel as dq_kernel_from_ptx leaves it.
static dq_kernel *kernel(const dqi_host_kernel *run) {
    dq_diag d = {{0}};
    dq_kernel *k = calloc(1, sizeof *k);
    atomic_init(&k->refs, 1);
    strcpy(k->what, "kernel test");
    if (!(k->gpu = dqi_gpu_open(0, "test", &d))) must(DQ_NOT_SUPPORTED, &d, "GPU");
    static struct cu_function_s functions[16];
    static int n;
    functions[n] = (struct cu_function_s){.user = run, .loaded = true};
    k->fn = &functions[n++];
    k->most_threads = 1024;
    return k;
}

static dq_launcher *launcher(dq_kernel *k, uint32_t grid, uint32_t block) {
    dq_diag d = {{0}};
    dq_launcher *l;
    const dq_grid g = {{grid, 1, 1}, {block, 1, 1}};
    must(dq_launcher_new("test", k, &g, NULL, &l, &d), &d, "launcher");
    dq_kernel_free(k);
    return l;
}

static dq_array *array(uint64_t words) {
    dq_diag d = {{0}};
    dq_array *a;
    must(dq_array_new("array", DQ_KIND_DEVICE, 0, 8 * words, &a, &d), &d, "array");
    return a;
}

static uint64_t word(dq_array *a) {
    dq_diag d = {{0}};
    uint64_t v = 0;
    must(dq_array_read(a, 0, &v, sizeof v, &d), &d, "read");
    return v;
}

static bool idle(dq_launcher *l) {
    uint32_t ended;
    for (int64_t from = dqi_mono_ns(); dq_launcher_look(l, &ended) > 0; rest(20))
        if (dqi_mono_ns() - from > WAIT) return false;
    return true;
}

// ---- cases ------------------------------------------------------------------------------------------------

// More launches than there is room for: each runs once, in order, and its operation ends.
static void many(void) {
    dq_diag d = {{0}};
    dq_launcher *l = launcher(kernel(&add_kernel), 3, 2);
    dq_array *a = array(1);
    uint64_t want = 0;
    dq_op *last = NULL;
    for (uint64_t k = 1; k <= 300; k++) {
        const dq_kernel_arg args[] = {{.kind = DQ_ARG_ARRAY, .array = a},
                                      {.kind = DQ_ARG_NUMBER, .value = k}};
        int err;
        uint32_t ended;
        while ((err = dq_launch(l, args, 2, &last, &d)) == DQ_NOT_READY)
            dq_launcher_look(l, &ended);
        must(err, &d, "launch");
        want += 6 * k;
        if (k < 300) dq_op_free(last);
    }
    DQ_CHECK(idle(l));
    DQ_EQ(dqi_launcher_ended(l), 300);
    dq_op_state st;
    dq_op_read(last, &st);
    DQ_CHECK(st.done && st.completed == 1 && st.failed == 0);
    DQ_EQ(word(a), want);
    DQ_EQ(atomic_load(&a->refs), 1);
    dq_op_free(last);
    dq_array_free(a);
    dq_launcher_free(l);
}

// Words are copied, few and many; the launch's own memory is used again.
static void words(void) {
    dq_diag d = {{0}};
    dq_launcher *l = launcher(kernel(&words_kernel), 1, 1);
    dq_array *a = array(1);
    uint64_t list[2000], want = 0;
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t n = round % 3 == 0 ? 2000 : 5;
        for (uint32_t k = 0; k < n; k++)
            want += list[k] = round * 7 + k;
        const dq_kernel_arg args[] = {{.kind = DQ_ARG_WORDS, .words = list, .n_words = n},
                                      {.kind = DQ_ARG_NUMBER, .value = n},
                                      {.kind = DQ_ARG_ARRAY, .array = a}};
        must(dqi_launch(l, args, 3, NULL, NULL, &d), &d, "launch");
        memset(list, 0xff, sizeof list); // what the script does with them meanwhile
        if (round % 50 == 49) DQ_CHECK(idle(l));
    }
    DQ_CHECK(idle(l));
    DQ_EQ(word(a), want);
    dq_array_free(a);
    dq_launcher_free(l);
}

// A launch holds its bursts; their packets are found in each segment.
static void bursts(void) {
    dq_diag d = {{0}};
    dq_session *s;
    dq_session_conf c = {.rx_meta_buffers = 8, .tx_meta_buffers = 8};
    dq_region_conf rc = {
        .kind = DQ_KIND_HOST, .affinity = -1, .num_bufs = 64, .buf_size = 256, .name = "host"};
    dq_region *r;
    must(dq_session_new(&c, &s, &d), &d, "session");
    must(dq_region_add(s, &rc, &r, &d), &d, "region");
    must(dq_session_open(s, &d), &d, "open");
    dqi_burst_pool *pool = dqi_burst_pool_new(s, 8, 4, 2);
    dq_burst *b = dqi_burst_get(pool);
    DQ_EQ(dqi_burst_fill(b, (dq_region *const[]){r, r}, 2, 3), DQ_OK);
    uint64_t want = 0;
    b->n = b->n_bufs = 3;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t seg = 0; seg < 2; seg++) {
            b->len[seg][i] = 10 + i + seg;
            b->flow[i] = 0;
            memset(dqi_bytes(b, seg, i), (int)(i * 2 + seg + 1), 256);
            want += (uint64_t)b->len[seg][i] * (i * 2 + seg + 1);
        }
    dq_launcher *l = launcher(kernel(&bytes_kernel), 1, 1);
    dq_array *a = array(1);
    const dq_kernel_arg args[] = {{.kind = DQ_ARG_BURST, .b = b}, {.kind = DQ_ARG_ARRAY, .array = a}};
    dq_op *op;
    must(dq_launch(l, args, 2, &op, &d), &d, "launch");
    DQ_EQ(dq_launcher_holds(l, s), 1);
    dq_burst_unref(b);
    DQ_CHECK(idle(l));
    DQ_EQ(dq_launcher_holds(l, s), 0);
    DQ_EQ(word(a), want);
    DQ_EQ(dqi_region_level(r), 64);
    const dq_kernel_arg bad[] = {{.kind = DQ_ARG_PRESENT}, {.kind = DQ_ARG_ARRAY, .array = a}};
    DQ_EQ(dqi_launch(l, bad, 2, NULL, NULL, &d), DQ_INVALID_PARAMETER);
    DQ_EQ_STR(d.text, "kernel test: argument 1: it needs a burst");
    dq_op_free(op);
    dq_array_free(a);
    dq_launcher_free(l);
    dqi_burst_pool_free(pool);
    DQ_EQ(dq_session_close(s), 0);
}

// Of a GPU that is lost all launches end, as failed; nothing is launched any more.
static void lost(void) {
    if (fork() == 0) {
        dq_diag d = {{0}};
        dq_launcher *l = launcher(kernel(&add_kernel), 1, 1);
        dq_array *a = array(1);
        const dq_kernel_arg args[] = {{.kind = DQ_ARG_ARRAY, .array = a},
                                      {.kind = DQ_ARG_NUMBER, .value = 1}};
        conf.trap = atomic_load(&launches) + 2; // the second one
        dq_op *ops[3];
        for (int k = 0; k < 3; k++)
            if (dq_launch(l, args, 2, &ops[k], &d) != DQ_OK) ops[k] = NULL; // it may be known by then
        DQ_CHECK(idle(l));
        dq_op_state st;
        char words[256];
        dq_op_read(ops[0], &st);
        DQ_EQ(st.completed, 1);
        dq_op_read(ops[1], &st);
        DQ_EQ(st.failed, 1);
        dq_op_error(ops[1], words, sizeof words);
        DQ_EQ_STR(words, "GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure");
        DQ_EQ(dq_launch(l, args, 2, &ops[0], &d), DQ_GENERIC_FAILURE);
        DQ_EQ(atomic_load(&a->refs), 1);
        _exit(dq_failures > 0);
    }
    int status = 0;
    wait(&status);
    DQ_EQ(status, 0);
}

int main(int argc, char **argv) {
    if (!dlsym(RTLD_DEFAULT, "cuInit")) DQ_SKIP("a static program: the driver's calls are looked up by name");
    dq_begin(argc, argv);
    DQ_RUN(lost); // first: threads don't come with the fork
    DQ_RUN(many);
    DQ_RUN(words);
    DQ_RUN(bursts);
    return dq_done();
}
