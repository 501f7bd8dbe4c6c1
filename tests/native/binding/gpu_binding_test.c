// gpu_binding_test.c: regions in a GPU's memory of arrays and of other processes, on the library that stands
// in for the driver, linked in.
#include "../../gpu/fake/fake_cuda.c"
#include "../../gpu/fake/fake_error.c"
#include "../../gpu/fake/fake_handles.c"
#include "../../gpu/fake/fake_list.c"
#include "../../gpu/fake/fake_time.c"
#include "../../gpu/fake/fake_user.c"

#include "dqtest.h"

#include "core/region.h"
#include "cuda/memory.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BUFS  64
#define SIZE  4096
#define BYTES ((uint64_t)BUFS * SIZE)

static void must(int err, const dq_diag *d, const char *what) {
    if (err == DQ_OK) return;
    fprintf(stderr, "%s: %s: %s: %s\n", dq_case, what, dq_err_name(err), d->text);
    exit(1);
}

static dq_session *session(dq_kind kind, int gpu, dq_region **r) {
    dq_diag d = {{0}};
    dq_session *s;
    dq_session_conf c = {.rx_meta_buffers = 8, .tx_meta_buffers = 8};
    must(dq_session_new(&c, &s, &d), &d, "session");
    dq_region_conf rc = {
        .name = "r", .kind = (int32_t)kind, .affinity = -1, .gpu = gpu, .num_bufs = BUFS, .buf_size = SIZE};
    must(dq_region_add(s, &rc, r, &d), &d, "region");
    return s;
}

// nic: a network device is to write to the region.
static int attempt_with(bool nic, dq_kind kind, int gpu, const dq_binding *b, dq_diag *d) {
    dq_region *r;
    dq_session *s = session(kind, gpu, &r);
    r->nic = nic;
    int err = dq_region_bind(r, b, d);
    if (err == DQ_OK) err = dq_session_open(s, d);
    DQ_EQ(dq_session_close(s), 0);
    return err;
}

static int attempt(dq_kind kind, int gpu, const dq_binding *b, dq_diag *d) {
    return attempt_with(false, kind, gpu, b, d);
}

static dq_array *array(dq_kind kind, int gpu) {
    dq_array *a;
    dq_diag d = {{0}};
    must(dq_array_new("array x", (int32_t)kind, gpu, BYTES, &a, &d), &d, "array");
    return a;
}

static void arrays(void) {
    dq_array *a = array(DQ_KIND_DEVICE, 0), *host = array(DQ_KIND_HOST_PINNED, 0),
             *other = array(DQ_KIND_DEVICE, 1);
    dq_binding b = {.source = DQ_BINDING_ARRAY, .fd = -1, .array = a, .bytes = DQ_BINDING_REST};
    dq_diag d = {{0}};
    dq_region *r;
    dq_region_info info;
    dq_session *s = session(DQ_KIND_DEVICE, 0, &r);
    must(dq_region_bind(r, &b, &d), &d, "bind");
    must(dq_session_open(s, &d), &d, "open");
    dq_region_read(r, &info);
    DQ_EQ((uintptr_t)info.device, a->device);
    DQ_EQ(info.cpu, 0);
    memcpy(fake_reach((uintptr_t)info.device + 8, 5), "hello", 5);
    DQ_EQ(dq_session_close(s), 0);
    char got[6] = "";
    must(dq_array_read(a, 8, got, 5, &d), &d, "read"); // the session did not free it
    DQ_EQ_STR(got, "hello");
    b.array = host;
    DQ_EQ(attempt(DQ_KIND_DEVICE, 0, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "array x lies in host memory, and the region's buffers lie on a GPU") != NULL);
    DQ_EQ(attempt(DQ_KIND_HOST_PINNED, 0, &b, &d), DQ_OK);
    b.array = a;
    DQ_EQ(attempt(DQ_KIND_HOST, 0, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "lies on a GPU, and the region's buffers lie in host memory") != NULL);
    b.array = other;
    DQ_EQ(attempt(DQ_KIND_DEVICE, 0, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "lies on GPU 1, and the region's affinity is GPU 0") != NULL);
    DQ_EQ(attempt(DQ_KIND_DEVICE, 1, &b, &d), DQ_OK);
    dq_array_free(a), dq_array_free(host), dq_array_free(other);
}

// Another process: it allocates memory of GPU `on`, sends a handle and a descriptor of it, and ends with the
// socket.
typedef struct owner {
    pid_t pid;
    int socket, fd;
    cu_ipc_handle handle;
} owner;

static void be_owner(int to, int on) {
    dq_diag d = {{0}};
    dqi_gpu_memory m;
    cu_ipc_handle h;
    int fd = -1;
    dqi_gpu *g = dqi_gpu_open(on, "owner", &d);
    if (!g) must(DQ_NOT_SUPPORTED, &d, "GPU");
    must(dqi_gpu_memory_new(g, BYTES, "", &m, "owner", &d), &d, "memory");
    must(dqi_gpu_memory_export(&m, &fd, "owner", &d), &d, "export");
    if (cuIpcGetMemHandle(&h, m.at) != CU_SUCCESS) exit(1);
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {&h, sizeof h};
    struct msghdr msg = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    char word;
    if (sendmsg(to, &msg, 0) < 0 || read(to, &word, 1) < 0) exit(1);
    _exit(0);
}

static owner start_owner(int on) {
    int pair[2];
    owner o = {0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) exit(1);
    if ((o.pid = fork()) == 0) {
        close(pair[0]);
        be_owner(pair[1], on);
    }
    close(pair[1]);
    o.socket = pair[0];
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {&o.handle, sizeof o.handle};
    struct msghdr msg = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(o.socket, &msg, MSG_WAITALL) != sizeof o.handle || !CMSG_FIRSTHDR(&msg)) exit(1);
    memcpy(&o.fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof o.fd);
    return o;
}

static void end_owner(const owner *o) {
    int status = 1;
    close(o->socket);
    close(o->fd);
    waitpid(o->pid, &status, 0);
    DQ_EQ(status, 0);
}

static dq_binding of_handle(const owner *o) {
    dq_binding b = {.source = DQ_BINDING_IPC, .fd = -1, .bytes = DQ_BINDING_REST};
    memcpy(b.handle, &o->handle, sizeof b.handle);
    return b;
}

static uint32_t ranges_left(void) {
    uint32_t n = 0;
    for (int i = 0; i < MAX_RANGES; i++)
        n += ranges[i].bytes > 0;
    return n;
}

// What the session writes is in the owner's memory, by either way; the session leaves nothing with the
// driver.
static void other_process(void) {
    owner o = start_owner(0);
    const dq_binding by[] = {of_handle(&o), {.source = DQ_BINDING_FILE, .fd = o.fd, .bytes = BYTES}};
    uint32_t before = ranges_left();
    char got[6] = "";
    for (int k = 0; k < 2; k++) {
        dq_diag d = {{0}};
        dq_region *r;
        dq_session *s = session(DQ_KIND_DEVICE, 0, &r);
        must(dq_region_bind(r, &by[k], &d), &d, "bind");
        must(dq_session_open(s, &d), &d, "open");
        memcpy(fake_reach((uintptr_t)r->device + 64 * (uint64_t)k, 5), k ? "world" : "hello", 5);
        DQ_EQ(dq_session_close(s), 0);
        DQ_EQ(ranges_left(), before);
        DQ_EQ(pread(o.fd, got, 5, 64 * k), 5); // the file that stands for the memory
        DQ_EQ_STR(got, k ? "world" : "hello");
    }
    end_owner(&o);
}

static void refused(void) {
    owner o = start_owner(1);
    dq_binding b = of_handle(&o);
    dq_diag d = {{0}};
    DQ_EQ(attempt(DQ_KIND_DEVICE, 0, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "lies on CUDA device 1, and the region's affinity is GPU 0") != NULL);
    b.bytes = 2u << 20;
    b.offset = 4096;
    DQ_EQ(attempt(DQ_KIND_DEVICE, 1, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "the range ends behind them") != NULL);
    b.bytes = DQ_BINDING_REST;
    DQ_EQ(attempt(DQ_KIND_DEVICE, 1, &b, &d), DQ_OK);
    b.offset = 100;
    DQ_EQ(attempt(DQ_KIND_DEVICE, 1, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "offset 100 is not a multiple of 4096") != NULL);
    conf.gpudirect = 0;
    b.offset = 0;
    DQ_EQ(attempt(DQ_KIND_DEVICE, 1, &b, &d), DQ_OK); // no device is to write there
    DQ_EQ(attempt_with(true, DQ_KIND_DEVICE, 1, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "devices can't access its memory (GPUDirect RDMA)") != NULL);
    conf.gpudirect = 1;
    memset(b.handle, 0, sizeof b.handle);
    DQ_EQ(attempt(DQ_KIND_DEVICE, 1, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "its handle can't be opened on GPU 1: cuIpcOpenMemHandle: ") != NULL);
    b = (dq_binding){.source = DQ_BINDING_FILE, .fd = o.fd, .bytes = DQ_BINDING_REST};
    DQ_EQ(attempt(DQ_KIND_DEVICE, 0, &b, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "needs bytes, the size of its allocation") != NULL);
    end_owner(&o);
}

int main(int argc, char **argv) {
    if (!dlsym(RTLD_DEFAULT, "cuInit")) DQ_SKIP("a static program: the driver's calls are looked up by name");
    setenv("DAQIRI_FAKE_CUDA", "gpus=2", 1);
    dq_begin(argc, argv);
    DQ_RUN(other_process); // first: owners are forked before there are threads
    DQ_RUN(refused);
    DQ_RUN(arrays);
    return dq_done();
}
