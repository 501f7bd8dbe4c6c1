// resident_test.c: what is loaded, freed and launched beside a persistent kernel, on the library that stands
// in for the driver, linked in. That library waits for the end of kernels where the driver does.
#include "../../gpu/fake/fake_cuda.c"
#include "../../gpu/fake/fake_error.c"
#include "../../gpu/fake/fake_handles.c"
#include "../../gpu/fake/fake_list.c"
#include "../../gpu/fake/fake_time.c"
#include "../../gpu/fake/fake_user.c"

#include "dqtest.h"

#include "core/clock.h"
#include "cuda/pinned.h"
#include "cuda/resident.h"

#include <dlfcn.h>

static _Atomic bool stop, started;

static const char *spin(void *const *args, const uint32_t *grid, const uint32_t *block) {
    (void)args, (void)grid, (void)block;
    atomic_store(&started, true);
    while (!atomic_load(&stop))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return NULL;
}
static const dqi_host_kernel spin_kernel = {.types = "", .run = spin};

static struct cu_function_s function(int local) {
    return (struct cu_function_s){.user = &reserve, .loaded = true, .local = local};
}

static void launch_in(cu_stream s, cu_function fn) {
    DQ_EQ(cuLaunchKernel(fn, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), CU_SUCCESS);
}

// Returns the GPU with a persistent kernel that runs in a stream of its own.
static dqi_gpu *begin(dqi_resident *r) {
    static struct cu_function_s spinner = {.user = &spin_kernel, .loaded = true};
    dq_diag d = {{0}};
    dqi_gpu *g = dqi_gpu_open(0, "test", &d);
    if (!g || dqi_gpu_enter(g) != CU_SUCCESS) {
        fprintf(stderr, "%s\n", d.text);
        exit(1);
    }
    atomic_store(&stop, false);
    atomic_store(&started, false);
    *r = (dqi_resident){.what = "kernel first"};
    DQ_EQ(cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING), CU_SUCCESS);
    dqi_resident_begin(g, r);
    launch_in(r->stream, &spinner);
    dqi_resident_launched(r);
    while (!atomic_load(&started))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return g;
}

static void end(dqi_gpu *g, dqi_resident *r) {
    atomic_store(&stop, true);
    DQ_CHECK(dqi_resident_end(g, r));
    DQ_CHECK(!g->residents);
    cuStreamDestroy_v2(r->stream);
}

// ---- cases ------------------------------------------------------------------------------------------------

#define PTX ".version 7.5\n.visible .entry daqiri_reserve(\n"

// A module is refused beside a persistent kernel, which the error names, and loaded after its end.
static void refused_and_loaded(void) {
    dqi_resident r;
    dq_diag d = {{0}};
    cu_module m;
    dqi_gpu *g = begin(&r);
    DQ_EQ(dqi_gpu_load(g, PTX, "kernel second", &m, &d), DQ_RESOURCE_IN_USE);
    DQ_CHECK(strstr(d.text, "kernel second: ") && strstr(d.text, "kernel first"));
    end(g, &r);
    DQ_EQ(dqi_gpu_load(g, PTX, "kernel second", &m, &d), DQ_OK);
    DQ_EQ(cuModuleUnload(m), CU_SUCCESS);
}

// A kernel that has ended by itself holds nothing up.
static void ended_by_itself(void) {
    dqi_resident r;
    dq_diag d = {{0}};
    cu_module m;
    dqi_gpu *g = begin(&r);
    atomic_store(&stop, true);
    DQ_EQ(cuStreamSynchronize(r.stream), CU_SUCCESS);
    DQ_EQ(dqi_gpu_load(g, PTX, "kernel second", &m, &d), DQ_OK);
    DQ_EQ(cuModuleUnload(m), CU_SUCCESS);
    end(g, &r);
}

// One that is about to be launched counts as running.
static void about_to_launch(void) {
    dqi_resident r = {.what = "kernel first"};
    dq_diag d = {{0}};
    cu_module m;
    dqi_gpu *g = dqi_gpu_open(0, "test", &d);
    DQ_EQ(dqi_gpu_enter(g), CU_SUCCESS);
    DQ_EQ(cuStreamCreate(&r.stream, CU_STREAM_NON_BLOCKING), CU_SUCCESS);
    dqi_resident_begin(g, &r);
    DQ_EQ(dqi_gpu_load(g, PTX, "kernel second", &m, &d), DQ_RESOURCE_IN_USE);
    dqi_resident_launched(&r);
    end(g, &r);
}

static _Atomic int freed;
static void count_free(dqi_gpu *g, void *at, size_t bytes) {
    (void)g;
    DQ_EQ(bytes, 7);
    atomic_fetch_add(&freed, (int)(uintptr_t)at);
}

// What is freed beside a persistent kernel is freed after its end, once.
static void freed_afterwards(void) {
    dqi_resident r, other;
    dq_diag d = {{0}};
    size_t bytes = 4096;
    uint8_t *pages;
    cu_ptr at;
    dqi_gpu *g = begin(&r);
    dqi_gpu *same = begin(&other);
    DQ_CHECK(same == g);
    DQ_EQ(dqi_pinned_new(g, &bytes, &pages, "test", &d), DQ_OK);
    DQ_EQ(cuMemAlloc_v2(&at, 4096), CU_SUCCESS);
    atomic_store(&freed, 0);
    dqi_gpu_free(g, count_free, (void *)1, 7);
    dqi_gpu_free(g, count_free, (void *)10, 7);
    dqi_pinned_free(g, pages, bytes);
    dqi_gpu_free_memory(g, at);
    DQ_EQ(atomic_load(&freed), 0);
    pages[4095] = 1; // still mapped
    DQ_CHECK(fake_reach((uintptr_t)pages, 1));
    atomic_store(&stop, true);
    DQ_CHECK(dqi_resident_end(g, &r));
    end(g, &other);
    DQ_EQ(atomic_load(&freed), 11);
    DQ_CHECK(!fake_reach((uintptr_t)pages, 1));
    DQ_EQ(cuMemFree_v2(at), INVALID);
    dqi_gpu_free(g, count_free, (void *)100, 7);
    DQ_EQ(atomic_load(&freed), 111);
    dqi_gpu_free(NULL, count_free, (void *)1000, 7);
    DQ_EQ(atomic_load(&freed), 1111);
}

// A kernel with local memory that was reserved is launched beside a persistent one.
static void local_memory(void) {
    dqi_resident r;
    dq_diag d = {{0}};
    cu_module m;
    cu_function fn;
    cu_stream s;
    dqi_gpu *g = dqi_gpu_open(0, "test", &d);
    DQ_EQ(dqi_gpu_load(g, PTX ".local .align 8 .b8 a[640]", "kernel second", &m, &d), DQ_OK);
    DQ_EQ(dqi_gpu_function(g, m, "daqiri_reserve", &fn), CU_SUCCESS);
    DQ_EQ(g->local_bytes, 640);
    DQ_CHECK(begin(&r) == g);
    DQ_EQ(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CU_SUCCESS);
    struct cu_function_s small = function(640);
    launch_in(s, &small); // it would wait for good
    DQ_EQ(cuStreamSynchronize(s), CU_SUCCESS);
    DQ_CHECK(!atomic_load(&stop));
    end(g, &r);
    cuStreamDestroy_v2(s);
    DQ_EQ(cuModuleUnload(m), CU_SUCCESS);
}

int main(int argc, char **argv) {
    if (!dlsym(RTLD_DEFAULT, "cuInit")) DQ_SKIP("a static program: the driver's calls are looked up by name");
    dq_begin(argc, argv);
    DQ_RUN(refused_and_loaded);
    DQ_RUN(ended_by_itself);
    DQ_RUN(about_to_launch);
    DQ_RUN(freed_afterwards);
    DQ_RUN(local_memory);
    return dq_done();
}
