// confine.c: capabilities(7), seccomp(2) and landlock(7) by system calls, without libraries.
#include "compute/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- capabilities -----------------------------------------------------------------------------------------

bool dqi_confine_rights(void) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); // from Linux 4.3 on
    for (unsigned long k = 0; prctl(PR_CAPBSET_READ, k) >= 0; k++)
        prctl(PR_CAPBSET_DROP, k); // fails without the capability, but then none can be gained either
    return syscall(SYS_capset, &head, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// ---- system calls -----------------------------------------------------------------------------------------

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "seccomp: add AUDIT_ARCH_ of this architecture"
#endif

// Numbers of system calls; those missing in old headers or on an architecture are omitted.
static const uint32_t reach_out[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_bind,
    SYS_connect,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_setns,
    SYS_unshare,
    SYS_mount,
    SYS_bpf,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_perf_event_open,
    SYS_init_module,
    SYS_finit_module,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
};

static const uint32_t open_files[] = {
    SYS_clone,      SYS_openat,  SYS_unlinkat, SYS_renameat2,    SYS_linkat,
    SYS_symlinkat,  SYS_mkdirat, SYS_fchmodat, SYS_fchownat,     SYS_truncate,
    SYS_mknodat,    SYS_chdir,   SYS_chroot,   SYS_memfd_create, SYS_socket,
    SYS_socketpair, SYS_sendmsg, SYS_sendmmsg, SYS_recvmsg,      SYS_open_by_handle_at,
#ifdef SYS_open
    SYS_open,       SYS_creat,   SYS_unlink,   SYS_rename,       SYS_link,
    SYS_symlink,    SYS_mkdir,   SYS_rmdir,    SYS_chmod,        SYS_chown,
#endif
#ifdef SYS_clone3
    SYS_clone3,
#endif
#ifdef SYS_openat2
    SYS_openat2,
#endif
};

// Calls of the C library in threads that compute, print and exit.
static const uint32_t of_memory[] = {
    SYS_futex,
    SYS_sched_yield,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_munmap,
    SYS_madvise,
    SYS_brk,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_write,
    SYS_writev,
    SYS_sendto,
    SYS_recvfrom,
    SYS_exit,
    SYS_exit_group,
    SYS_getpid,
    SYS_gettid,
    SYS_getcpu,
    SYS_getrandom,
    SYS_set_robust_list,
    SYS_sched_getaffinity,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_time
    SYS_time,
#endif
};

// Additional calls for launches with their own memory.
static const uint32_t of_launches[] = {
    SYS_recvmsg,
    SYS_close,
    SYS_ppoll,
#ifdef SYS_poll
    SYS_poll,
#endif
};

typedef struct program {
    struct sock_filter at[256];
    unsigned short n;
} program;

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void add(program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t k) {
    if (p->n < COUNT(p->at)) p->at[p->n] = (struct sock_filter){code, yes, no, k};
    p->n++;
}

static void load(program *p, uint32_t at) { add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, at); }

static void answer(program *p, uint32_t with) { add(p, BPF_RET | BPF_K, 0, 0, with); }

static void on(program *p, const uint32_t *calls, size_t n, uint32_t with) {
    for (size_t k = 0; k < n; k++) {
        add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, calls[k]);
        answer(p, with);
    }
}

static uint32_t argument(unsigned k) { // lower half; both architectures are little endian
    return (uint32_t)(offsetof(struct seccomp_data, args) + 8 * k);
}

// Rejects executable mappings, and allows others.
static void on_mapping(program *p, uint32_t call) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, call);
    load(p, argument(2));
    add(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, PROT_EXEC);
    answer(p, SECCOMP_RET_ERRNO | EPERM);
    answer(p, SECCOMP_RET_ALLOW);
}

// Allows tgkill(2), used by abort(3), for the process itself only.
static void on_signal(program *p) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_tgkill);
    load(p, argument(0));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)getpid());
    answer(p, SECCOMP_RET_ALLOW);
    answer(p, SECCOMP_RET_KILL_PROCESS);
}

static void on_domain(program *p, uint32_t domain) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, domain);
    answer(p, SECCOMP_RET_KILL_PROCESS);
}

// Kills the process for network domains of socket(2).
static void on_socket(program *p) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 8, SYS_socket);
    load(p, argument(0));
    on_domain(p, AF_INET);
    on_domain(p, AF_INET6);
    on_domain(p, AF_PACKET);
    answer(p, SECCOMP_RET_ALLOW);
}

static void begin(program *p) {
    load(p, offsetof(struct seccomp_data, arch));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
    answer(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); // x32 calls
    answer(p, SECCOMP_RET_KILL_PROCESS);
#endif
}

bool dqi_confine_calls(dqi_calls may) {
    program p = {.n = 0};
    bool memory_only = may != DQI_CALLS_GPU;
    begin(&p);
    if (may == DQI_CALLS_LAUNCHES) on(&p, of_launches, COUNT(of_launches), SECCOMP_RET_ALLOW);
    if (memory_only) on(&p, of_memory, COUNT(of_memory), SECCOMP_RET_ALLOW);
    on(&p, reach_out, COUNT(reach_out), SECCOMP_RET_KILL_PROCESS);
    on_signal(&p);
    if (memory_only) {
        on(&p, open_files, COUNT(open_files), SECCOMP_RET_KILL_PROCESS);
        on_mapping(&p, SYS_mmap);
        on_mapping(&p, SYS_mprotect);
        answer(&p, SECCOMP_RET_ERRNO | EPERM);
    } else {
        on_socket(&p);
        answer(&p, SECCOMP_RET_ALLOW);
    }
    if (p.n > COUNT(p.at)) {
        errno = E2BIG;
        return false;
    }
    struct sock_fprog all = {p.n, p.at};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) == 0;
}

// ---- files ------------------------------------------------------------------------------------------------

// landlock(7); the numbers are repeated here, as headers before Linux 5.13 lack them.
enum {
    LANDLOCK_CREATE = 444, // same on all architectures
    LANDLOCK_ADD,
    LANDLOCK_RESTRICT,
    LANDLOCK_VERSION = 1,
    BENEATH = 1, // LANDLOCK_RULE_PATH_BENEATH
    RUN = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    ALL_OF_1 = (1 << 13) - 1,
    REFER = 1 << 13,    // from version 2 on
    TRUNCATE = 1 << 14, // 3
    TCP = 3,            // bind and connect, 4
};

struct ruleset {
    uint64_t files, network;
};

struct beneath {
    uint64_t files;
    int32_t folder;
} __attribute__((packed));

// Allows access below path; paths that can't be opened are ignored.
static bool let(int rules, const char *path, uint64_t may) {
    struct beneath b = {.files = may, .folder = open(path, O_PATH | O_CLOEXEC)};
    if (b.folder < 0) return true;
    long err = syscall(LANDLOCK_ADD, rules, BENEATH, &b, 0);
    if (err != 0 && errno == EINVAL) { // files have no directory rights
        b.files &= RUN | WRITE_FILE | READ_FILE | TRUNCATE;
        err = syscall(LANDLOCK_ADD, rules, BENEATH, &b, 0);
    }
    close(b.folder);
    return err == 0;
}

static bool let_roots(int rules, const char *roots) {
    char path[4096];
    for (const char *at = roots; *at;) {
        size_t n = strcspn(at, ":");
        if (n > 0 && n < sizeof path) {
            snprintf(path, sizeof path, "%.*s", (int)n, at);
            if (!let(rules, path, RUN | READ_FILE | READ_DIR)) return false;
        }
        at += n + (at[n] == ':');
    }
    return true;
}

bool dqi_confine_files(const char *dir, const char *roots) {
    long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
    if (version < 1) return false;
    struct ruleset r = {.files = ALL_OF_1, .network = version >= 4 ? TCP : 0};
    if (version >= 2) r.files |= REFER;
    if (version >= 3) r.files |= TRUNCATE;
    int rules = (int)syscall(LANDLOCK_CREATE, &r, version >= 4 ? sizeof r : sizeof r.files, 0);
    if (rules < 0) return false;
    bool done = let(rules, dir, r.files) && let(rules, "/dev/null", WRITE_FILE | READ_FILE) &&
                let_roots(rules, roots) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                syscall(LANDLOCK_RESTRICT, rules, 0) == 0;
    close(rules);
    return done;
}
