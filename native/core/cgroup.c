// cgroup.c: the memory limit of this process's control groups. A container sees its own group as the root, a
// service its path below the root; a limit covers all groups below it, so each group up to the root is read.
// Version 2 has one hierarchy (the root itself, or `unified` beside version 1), version 1 one for memory.
#include "core/cgroup.h"
#include "core/err.h"
#include "core/region.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct search {
    uint64_t least;
    char *file;
    size_t n;
} search;

static void ask(search *s, const char *path) {
    unsigned long long v = 0;
    FILE *f = fopen(path, "r");
    if (!f) return;
    if (fscanf(f, "%llu", &v) == 1 && v < s->least) { // version 2 has "max" for no limit
        s->least = v;
        snprintf(s->file, s->n, "%s", path);
    }
    fclose(f);
}

// Reads the limits of the group and of its parents, up to the root of the hierarchy.
static void climb(search *s, const char *tree, const char *group, const char *name) {
    char at[1024], path[2048];
    snprintf(at, sizeof at, "%s", strcmp(group, "/") == 0 ? "" : group);
    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", tree, at, name);
        ask(s, path);
        char *slash = strrchr(at, '/');
        if (!slash) return;
        *slash = 0;
    }
}

static bool has_memory(const char *controllers) {
    size_t n = strlen("memory");
    for (const char *p = controllers; p; p = strchr(p, ',')) {
        if (*p == ',') p++;
        if (strncmp(p, "memory", n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
    }
    return false;
}

uint64_t dqi_cgroup_limit(const char *own, const char *root, char *file, size_t n) {
    search s = {.least = UINT64_MAX, .file = file, .n = n};
    char line[1024], tree[512];
    FILE *f = fopen(own, "r");
    if (!f) return s.least;
    while (fgets(line, sizeof line, f)) { // "4:memory:/group", or "0::/group" of version 2
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        if (*++controllers == 0) {
            climb(&s, root, group, "memory.max");
            snprintf(tree, sizeof tree, "%s/unified", root);
            climb(&s, tree, group, "memory.max");
        } else if (has_memory(controllers)) {
            snprintf(tree, sizeof tree, "%s/memory", root);
            climb(&s, tree, group, "memory.limit_in_bytes");
        }
    }
    fclose(f);
    return s.least;
}

uint64_t dq_cgroup_memory(char *file, size_t n) {
    return dqi_cgroup_limit("/proc/self/cgroup", "/sys/fs/cgroup", file, n);
}

int dqi_memory_check(const char *what, uint64_t all, uint64_t small, const char *lower, dq_diag *diag) {
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * dqi_page_size();
    if (all > ram)
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: %llu MiB needed, and this host has %llu; hint: %s", what,
                        (unsigned long long)(all >> 20), (unsigned long long)(ram >> 20), lower);
    char file[256];
    uint64_t group = dq_cgroup_memory(file, sizeof file);
    if (small <= group) return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - ENOMEM,
                    "%s: %llu MiB needed, and %s allows %llu; hint: %s, or raise that limit", what,
                    (unsigned long long)(small >> 20), file, (unsigned long long)(group >> 20), lower);
}
