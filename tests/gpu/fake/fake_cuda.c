// fake_cuda.c: a library that stands in for libcuda (DAQIRI_CUDA=…/libfake_cuda.so): GPUs whose memory the
// CPU can't touch at its addresses, and whose streams are threads that run the host build of the shipped
// kernels, and users' kernels (fake_user.c).
//
// It keeps to the driver's rules where the engine may break them: memory that was not registered or mapped is
// an illegal address for a kernel, a kernel has to be in the PTX that was loaded, and after an error of a
// kernel every call fails so. DAQIRI_FAKE_CUDA sets what goes wrong, as "key=value,…":
//   gpus=1        how many there are
//   mib=4096      memory of each; more is CUDA_ERROR_OUT_OF_MEMORY
//   delay_us=0    a launch lasts up to so long, by chance
//   seed=1        of chance
//   fail=N        the N-th launch comes back with an error
//   trap=N        the N-th launch starts, and its kernel traps
//   hang=N        the N-th launch never ends
//   version=12040 the driver's
//   dmabuf=1      memory can be had as a DMA-BUF
//   gpudirect=1   devices can access pointers to it
//   major=8       of the GPUs' compute capability
//   reach=1       a GPU can access the memory of another one, once it is allowed to
//   counts=FILE   numbers of 64 bits that the process keeps there: launches of kernels, moves and bytes that
//   they read; and what it has at the moment: pieces of memory, registered or on GPUs, their bytes, streams
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANGES 4096
#define MAX_GPUS   16
#define BAD_PTX    218

static struct {
    uint64_t gpus, mib, delay_us, seed, fail, trap, hang, version, peer, integrated, major, dmabuf, gpudirect,
        reach;
} conf = {
    .gpus = 1, .mib = 4096, .seed = 1, .version = 12040, .peer = 1, .major = 8, .gpudirect = 1, .reach = 1};

_Atomic int fake_broken;
static pthread_rwlock_t working = PTHREAD_RWLOCK_INITIALIZER; // read: a stream reads or writes memory
static _Atomic uint64_t launches;

void fake_break(int err) {
    pthread_rwlock_wrlock(&working);
    atomic_store(&fake_broken, err);
    pthread_rwlock_unlock(&working);
}

// What kernels did, of this process, or of all that have the file.
static struct counts {
    _Atomic uint64_t lists, moves, bytes, ranges, range_bytes, streams;
} own_counts, *counts = &own_counts;

static void share_counts(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *p = fd >= 0 && ftruncate(fd, sizeof *counts) == 0
                  ? mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                  : MAP_FAILED;
    if (p == MAP_FAILED) abort();
    close(fd);
    counts = p;
}

static void configure(void) {
    const char *text = getenv("DAQIRI_FAKE_CUDA");
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    const struct {
        const char *name;
        uint64_t *to;
    } keys[] = {{"gpus", &conf.gpus},           {"mib", &conf.mib},
                {"delay_us", &conf.delay_us},   {"seed", &conf.seed},
                {"fail", &conf.fail},           {"trap", &conf.trap},
                {"hang", &conf.hang},           {"version", &conf.version},
                {"peer", &conf.peer},           {"integrated", &conf.integrated},
                {"major", &conf.major},         {"dmabuf", &conf.dmabuf},
                {"gpudirect", &conf.gpudirect}, {"reach", &conf.reach}};
    for (char *one; (one = strsep(&rest, ",")) != NULL;) {
        char *value = strchr(one, '=');
        if (!value) continue;
        *value++ = 0;
        if (strcmp(one, "counts") == 0) share_counts(value);
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            if (strcmp(keys[i].name, one) == 0) *keys[i].to = strtoull(value, NULL, 10);
    }
}

struct cu_context_s {
    int device;
};

static struct cu_context_s contexts[MAX_GPUS];
static _Thread_local cu_context current;

// ---- memory -----------------------------------------------------------------------------------------------

// What a kernel may reach: at `at`, where the host finds it at `alias`; memory of a GPU only by the GPUs that
// were given access, a bit each.
typedef struct range {
    uint64_t at, bytes;
    uint8_t *alias;
    bool device, mapped;
    uint64_t handle;
    uint32_t who;
} range;

static _Thread_local int working_on = -1; // the GPU that a stream's thread works for

typedef struct allocation {
    int fd;
    uint64_t bytes;
    bool others; // another process made it
    int gpu;
} allocation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range ranges[MAX_RANGES];
static allocation allocations[MAX_RANGES];
static uint64_t used;

static range *add(range r) {
    for (int i = 0; i < MAX_RANGES; i++)
        if (ranges[i].bytes == 0) {
            ranges[i] = r;
            atomic_fetch_add(&counts->ranges, 1);
            atomic_fetch_add(&counts->range_bytes, r.bytes);
            return &ranges[i];
        }
    abort();
}

static void forget(range *r) {
    atomic_fetch_sub(&counts->ranges, 1);
    atomic_fetch_sub(&counts->range_bytes, r->bytes);
    *r = (range){0};
}

static range *find(uint64_t at) {
    for (int i = 0; i < MAX_RANGES; i++)
        if (ranges[i].bytes > 0 && at - ranges[i].at < ranges[i].bytes) return &ranges[i];
    return NULL;
}

void *fake_reach(uint64_t at, uint64_t n) {
    pthread_mutex_lock(&lock);
    const range *r = find(at);
    bool may = r && r->alias && at - r->at + n <= r->bytes;
    if (may && r->device && working_on >= 0) may = r->who >> working_on & 1;
    uint8_t *p = may ? r->alias + (at - r->at) : NULL;
    pthread_mutex_unlock(&lock);
    return p;
}

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

int cuMemGetAllocationGranularity(size_t *bytes, const cu_allocation_prop *prop, int option) {
    (void)option;
    *bytes = 2u << 20;
    return OK_OR_BROKEN(prop->type == CU_ALLOCATION_PINNED ? CU_SUCCESS : INVALID);
}

static uint64_t free_allocation(void) {
    uint64_t k = 0;
    while (allocations[k].bytes != 0)
        k++;
    return k;
}

int cuMemCreate(uint64_t *handle, size_t bytes, const cu_allocation_prop *prop, unsigned long long flags) {
    (void)flags;
    if (bytes == 0 || bytes % (2u << 20) != 0 || prop->location.id < 0 || prop->location.id >= (int)conf.gpus)
        return INVALID;
    pthread_mutex_lock(&lock);
    int err = used + bytes > conf.mib << 20 ? CU_ERROR_OUT_OF_MEMORY : CU_SUCCESS;
    if (err == CU_SUCCESS) {
        uint64_t k = free_allocation();
        allocations[k] = (allocation){memfd_create("fake-gpu", MFD_CLOEXEC), bytes, false, prop->location.id};
        if (ftruncate(allocations[k].fd, (off_t)bytes) != 0) abort();
        used += bytes;
        *handle = k + 1;
    }
    pthread_mutex_unlock(&lock);
    return OK_OR_BROKEN(err);
}

int cuMemRelease(uint64_t handle) {
    pthread_mutex_lock(&lock);
    allocation *a = &allocations[handle - 1];
    if (!a->others) used -= a->bytes;
    close(a->fd);
    *a = (allocation){0};
    pthread_mutex_unlock(&lock);
    return CU_SUCCESS;
}

int cuMemAddressReserve(cu_ptr *at, size_t bytes, size_t align, cu_ptr wish, unsigned long long flags) {
    (void)align, (void)wish, (void)flags;
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return CU_ERROR_OUT_OF_MEMORY;
    *at = (uintptr_t)p;
    return CU_SUCCESS;
}

int cuMemAddressFree(cu_ptr at, size_t bytes) {
    return munmap((void *)(uintptr_t)at, bytes) == 0 ? CU_SUCCESS : INVALID;
}

int cuMemMap(cu_ptr at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    void *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, allocations[handle - 1].fd, (off_t)offset);
    if (p != MAP_FAILED && !allocations[handle - 1].others)
        memset(p, 0xa5, bytes); // nothing may count on zeros
    add((range){at, bytes, NULL, true, true, handle, 0})->alias = p;
    pthread_mutex_unlock(&lock);
    return p == MAP_FAILED ? CU_ERROR_OUT_OF_MEMORY : CU_SUCCESS;
}

int cuMemSetAccess(cu_ptr at, size_t bytes, const cu_access_desc *who, size_t n) {
    pthread_mutex_lock(&lock);
    range *r = find(at);
    bool may = n == 1 && who->flags == CU_ACCESS_READ_WRITE && who->location.id >= 0 &&
               who->location.id < MAX_GPUS && r && r->at == at && r->bytes == bytes;
    if (may) r->who |= 1u << who->location.id;
    pthread_mutex_unlock(&lock);
    return may ? CU_SUCCESS : INVALID;
}

int cuMemUnmap(cu_ptr at, size_t bytes) {
    pthread_mutex_lock(&lock);
    range *r = find(at);
    int err = r && r->at == at && r->bytes == bytes ? CU_SUCCESS : INVALID;
    if (err == CU_SUCCESS) {
        munmap(r->alias, bytes);
        forget(r);
    }
    pthread_mutex_unlock(&lock);
    return err;
}

fake_memory fake_memory_at(uint64_t at) {
    pthread_mutex_lock(&lock);
    const range *r = find(at);
    fake_memory m = {.fd = -1, .gpudirect = conf.gpudirect != 0, .dmabuf = conf.dmabuf != 0};
    if (r && r->device) {
        m.at = r->at;
        m.bytes = r->bytes;
        m.fd = allocations[r->handle - 1].fd;
        m.gpu = allocations[r->handle - 1].gpu;
    }
    pthread_mutex_unlock(&lock);
    return m;
}

int *fake_place(uint64_t handle, int **fd) {
    *fd = &allocations[handle - 1].fd;
    return &allocations[handle - 1].gpu;
}

int cuMemImportFromShareableHandle(uint64_t *handle, void *os_handle, int type) {
    int fd = (int)(uintptr_t)os_handle;
    struct stat file;
    if (type != CU_HANDLE_DESCRIPTOR || fstat(fd, &file) != 0) return INVALID;
    pthread_mutex_lock(&lock);
    uint64_t k = free_allocation();
    allocations[k] = (allocation){fcntl(fd, F_DUPFD_CLOEXEC, 0), (uint64_t)file.st_size, true, 0};
    *handle = k + 1;
    pthread_mutex_unlock(&lock);
    return OK_OR_BROKEN(CU_SUCCESS);
}

int cuMemAlloc_v2(cu_ptr *at, size_t bytes) {
    bytes = round_up(bytes, 2u << 20);
    cu_allocation_prop prop = {.type = CU_ALLOCATION_PINNED};
    uint64_t handle = 0;
    int err = cuMemCreate(&handle, bytes, &prop, 0);
    if (err == CU_SUCCESS) err = cuMemAddressReserve(at, bytes, 0, 0, 0);
    if (err == CU_SUCCESS) err = cuMemMap(*at, bytes, 0, handle, 0);
    const cu_access_desc own = {.location = {CU_LOCATION_DEVICE, current ? current->device : 0},
                                .flags = CU_ACCESS_READ_WRITE};
    return err == CU_SUCCESS ? cuMemSetAccess(*at, bytes, &own, 1) : err;
}

int cuMemFree_v2(cu_ptr at) {
    fake_wait_users();
    pthread_mutex_lock(&lock);
    const range *r = find(at);
    range was = r ? *r : (range){0};
    pthread_mutex_unlock(&lock);
    if (was.at != at || !was.device) return INVALID;
    cuMemUnmap(at, was.bytes);
    cuMemAddressFree(at, was.bytes);
    return cuMemRelease(was.handle);
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    pthread_mutex_lock(&lock);
    *total = conf.mib << 20;
    *free = *total - used;
    pthread_mutex_unlock(&lock);
    return OK_OR_BROKEN(CU_SUCCESS);
}

int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags) {
    if (bytes == 0 || !(flags & CU_REGISTER_MAPPED)) return INVALID;
    pthread_mutex_lock(&lock);
    bool twice = find((uintptr_t)at) != NULL;
    if (!twice) add((range){(uintptr_t)at, bytes, at, false, false, 0, 0});
    pthread_mutex_unlock(&lock);
    return OK_OR_BROKEN(twice ? 712 : CU_SUCCESS); // CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
}

int cuMemHostUnregister(void *at) {
    fake_wait_users();
    pthread_mutex_lock(&lock);
    range *r = find((uintptr_t)at);
    int err = r && r->at == (uintptr_t)at && !r->device ? CU_SUCCESS : 713;
    if (err == CU_SUCCESS) forget(r);
    pthread_mutex_unlock(&lock);
    return err;
}

int cuMemHostGetDevicePointer_v2(cu_ptr *out, void *at, unsigned flags) {
    *out = (uintptr_t)at;
    return OK_OR_BROKEN(flags == 0 && fake_reach((uintptr_t)at, 1) ? CU_SUCCESS : INVALID);
}

// ---- devices and contexts ---------------------------------------------------------------------------------

int cuInit(unsigned flags) {
    configure();
    return flags == 0 ? CU_SUCCESS : INVALID;
}

int cuDriverGetVersion(int *version) {
    *version = (int)conf.version;
    return CU_SUCCESS;
}

int cuDeviceGetCount(int *n) {
    *n = (int)conf.gpus;
    return CU_SUCCESS;
}

int cuDeviceGet(cu_device *dev, int number) {
    *dev = number;
    return number >= 0 && number < (int)conf.gpus ? CU_SUCCESS : INVALID;
}

int cuDeviceGetName(char *name, int len, cu_device dev) {
    (void)dev;
    snprintf(name, (size_t)len, "Fake GPU");
    return CU_SUCCESS;
}

int cuDeviceGetPCIBusId(char *id, int len, cu_device dev) {
    snprintf(id, (size_t)len, "0000:%02X:00.0", 0x10 + dev);
    return CU_SUCCESS;
}

int cuDeviceCanAccessPeer(int *can, cu_device dev, cu_device peer) {
    *can = conf.reach != 0 && dev != peer;
    return CU_SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, cu_device dev) {
    (void)dev;
    *bytes = conf.mib << 20;
    return CU_SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, cu_device dev) {
    (void)dev;
    switch (attribute) {
    case CU_ATTR_MAJOR:
        *value = (int)conf.major;
        break;
    case CU_ATTR_MULTIPROCESSORS:
        *value = 4;
        break;
    case CU_ATTR_UNIFIED_ADDRESSING:
    case CU_ATTR_HOST_POINTERS:
    case CU_ATTR_VIRTUAL_MEMORY:
    case CU_ATTR_EXPORTS_DESCRIPTORS:
    case CU_ATTR_CAN_MAP_HOST_MEMORY:
    case CU_ATTR_WRITES_64_BITS:
        *value = 1;
        break;
    case CU_ATTR_INTEGRATED:
        *value = conf.integrated != 0;
        break;
    case CU_ATTR_GPUDIRECT_RDMA:
        *value = conf.peer != 0;
        break;
    case CU_ATTR_DMA_BUF:
        *value = conf.dmabuf != 0;
        break;
    default:
        *value = 0;
    }
    return CU_SUCCESS;
}

int cuDevicePrimaryCtxRetain(cu_context *ctx, cu_device dev) {
    contexts[dev].device = dev;
    *ctx = &contexts[dev];
    return OK_OR_BROKEN(CU_SUCCESS);
}

int cuCtxSetCurrent(cu_context ctx) {
    current = ctx;
    return OK_OR_BROKEN(CU_SUCCESS);
}

void fake_expose(int more) {
    static int running;
    pthread_mutex_lock(&lock);
    running += more;
    for (int i = 0; i < MAX_RANGES; i++) {
        const range *r = &ranges[i];
        void *at = (void *)(uintptr_t)r->at;
        if (r->bytes == 0 || !r->device) continue;
        if (more > 0)
            mmap(at, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, allocations[r->handle - 1].fd,
                 0);
        else if (running == 0)
            mmap(at, r->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    pthread_mutex_unlock(&lock);
}

// ---- streams ----------------------------------------------------------------------------------------------

static uint64_t random_below(cu_stream s, uint64_t n) {
    s->chance = s->chance * 6364136223846793005u + 1442695040888963407u;
    return n ? (s->chance >> 33) % n : 0;
}

static void rest(uint64_t us) {
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    if (us > 0) nanosleep(&t, NULL);
}

static int run_list(const job *j) {
    dqk_list list;
    bool ok = fake_translate(&j->list, &list);
    atomic_fetch_add(&counts->lists, 1);
    atomic_fetch_add(&counts->moves, list.n);
    for (uint32_t i = 0; ok && i < list.n; i++)
        atomic_fetch_add(&counts->bytes, ((const dqk_move *)(uintptr_t)list.moves)[i].len);
    pthread_rwlock_rdlock(&working);
    if (ok && !atomic_load(&fake_broken)) j->run(&list);
    pthread_rwlock_unlock(&working);
    free((void *)(uintptr_t)list.moves);
    return ok ? CU_SUCCESS : ILLEGAL;
}

static void run(cu_stream s, const job *j) {
    rest(random_below(s, conf.delay_us + 1));
    while (conf.hang && j->number == conf.hang && !s->end)
        rest(1000);
    int err = conf.trap && j->number == conf.trap ? BAD_LAUNCH
              : j->run                            ? run_list(j)
                                                  : fake_run_user(&j->user);
    if (err != CU_SUCCESS) fake_break(err);
}

static void copy_or_fill(const job *j) {
    pthread_rwlock_rdlock(&working);
    if (atomic_load(&fake_broken))
        ;
    else if (j->from)
        memcpy(j->at, j->from, j->n);
    else
        memset(j->at, j->value, j->n);
    pthread_rwlock_unlock(&working);
}

static void *serve(void *arg) {
    cu_stream s = arg;
    working_on = s->device;
    pthread_mutex_lock(&s->lock);
    while (!s->end || s->first) {
        job *j = s->first;
        if (!j) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        if (j->stamp)
            *j->stamp = fake_now_ns();
        else if (atomic_load(&fake_broken))
            ;
        else if (j->run || j->user.kernel)
            run(s, j);
        else if (j->write)
            atomic_store_explicit(j->write, j->number, memory_order_release);
        else
            copy_or_fill(j);
        pthread_mutex_lock(&s->lock);
        s->first = j->next;
        if (!s->first) s->last = &s->first;
        s->done++;
        pthread_cond_broadcast(&s->changed);
        free(j);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int cuStreamCreate(cu_stream *out, unsigned flags) {
    static _Atomic uint64_t n;
    if (!current) return BAD_CONTEXT;
    if (flags != CU_STREAM_NON_BLOCKING) return INVALID;
    cu_stream s = calloc(1, sizeof *s);
    s->device = current->device;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->last = &s->first;
    s->chance = conf.seed * 1000003 + atomic_fetch_add(&n, 1);
    pthread_create(&s->thread, NULL, serve, s);
    atomic_fetch_add(&counts->streams, 1);
    *out = s;
    return OK_OR_BROKEN(CU_SUCCESS);
}

int cuStreamDestroy_v2(cu_stream s) {
    pthread_mutex_lock(&s->lock);
    s->end = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    atomic_fetch_sub(&counts->streams, 1);
    free(s);
    return CU_SUCCESS;
}

int fake_put(cu_stream s, job add) {
    if (!current) return BAD_CONTEXT;
    if (atomic_load(&fake_broken)) return atomic_load(&fake_broken);
    job *j = malloc(sizeof *j);
    *j = add;
    j->next = NULL;
    if (s->captures) {
        *s->captures = j;
        s->captures = &j->next;
        return CU_SUCCESS;
    }
    pthread_mutex_lock(&s->lock);
    *s->last = j;
    s->last = &j->next;
    s->added++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return CU_SUCCESS;
}

int cuLaunchKernel(cu_function fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared_bytes, cu_stream s, void **args, void **extra) {
    uint64_t number = atomic_fetch_add(&launches, 1) + 1;
    const uint32_t grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    job j = {.run = fn->run, .number = number};
    if ((uint64_t)gx * gy * gz == 0 || (uint64_t)bx * by * bz == 0 || (uint64_t)bx * by * bz > 1024 ||
        shared_bytes != 0 || extra)
        return INVALID;
    if (!fn->loaded) return INVALID; // the driver would wait for all that runs
    fake_keep_local(fn);
    if (fn->run && (gy != 1 || gz != 1 || bx != DQK_THREADS || by != 1 || bz != 1)) return INVALID;
    if (conf.fail && number == conf.fail) return BAD_LAUNCH;
    if (fn->run) j.list = *(const dqk_list *)args[0];
    if (!fn->run) fake_user_launch(&j.user, fn->user, grid, block, args);
    return fake_put(s, j);
}

int cuStreamWriteValue64_v2(cu_stream s, cu_ptr at, uint64_t value, unsigned flags) {
    void *p = fake_reach(at, sizeof value);
    return p && at % sizeof value == 0 && flags == 0 ? fake_put(s, (job){.write = p, .number = value})
                                                     : INVALID;
}

int cuStreamQuery(cu_stream s) {
    pthread_mutex_lock(&s->lock);
    bool busy = s->done < s->added;
    pthread_mutex_unlock(&s->lock);
    return OK_OR_BROKEN(busy ? CU_ERROR_NOT_READY : CU_SUCCESS);
}

int cuStreamSynchronize(cu_stream s) {
    pthread_mutex_lock(&s->lock);
    while (s->done < s->added)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return OK_OR_BROKEN(CU_SUCCESS);
}
