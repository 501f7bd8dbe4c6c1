// writer_check.c: validation of a writer's configuration, before anything is opened.
#include "capture/capture_file.h"
#include "core/err.h"
#include "writer/pcap_file.h"
#include "writer/writer.h"

#include <string.h>

#define MAX_PREFIX 200 // bytes; leaves room for an index or a suffix in a file's name

static int check_dirs(const char *name, const dq_writer_conf *c, dq_diag *diag) {
    if (c->n_dirs == 0 || c->n_dirs > DQ_MAX_DIRS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "writer %s: %u folders: it takes 1 to %d", name,
                        c->n_dirs, DQ_MAX_DIRS);
    for (uint32_t i = 0; i < c->n_dirs; i++) {
        if (c->dirs[i][0] == 0)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "writer %s: the folder's name is empty", name);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(c->dirs[i], c->dirs[k]) == 0)
                return dqi_fail(diag, DQ_INVALID_PARAMETER, "writer %s: folder %s is there twice", name,
                                c->dirs[i]);
    }
    return DQ_OK;
}

static int check_rotation(const char *name, const dq_writer_conf *c, dq_diag *diag) {
    if (dqi_format_of(c->kind)->about.each && (c->rotate_bytes || c->rotate_packets || c->rotate_ns))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: rotate: a file for each packet or burst is never too long", name);
    if (c->quota != 0 && c->rotate_bytes > c->quota)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "writer %s: files of %llu bytes (rotate) are more than the quota of %llu: raise it, or "
            "rotate earlier",
            name, (unsigned long long)c->rotate_bytes, (unsigned long long)c->quota);
    if (c->enough && c->quota == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: when_full \"stop\" needs a quota, after which it stops", name);
    if (c->delete_oldest && (c->quota == 0 || c->rotate_bytes == 0))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: when_full \"delete_oldest\" needs a quota, and rotation by size", name);
    if (c->delete_oldest && c->rotate_bytes > c->quota / (c->n_dirs + 2))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: to delete the oldest file the quota must have room for %u files; hint: "
                        "rotate at %llu bytes or less",
                        name, c->n_dirs + 2, (unsigned long long)(c->quota / (c->n_dirs + 2)));
    return DQ_OK;
}

int dqi_writer_check(const char *name, const dq_writer_conf *c, dq_diag *diag) {
    if (!dqi_format_of(c->kind))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "writer %s: there is no format %d", name, c->kind);
    if (c->prefix[0] == 0 || strchr(c->prefix, '/'))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: prefix \"%s\": must be the start of a file's name, without folders", name,
                        c->prefix);
    if (strlen(c->prefix) > MAX_PREFIX)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "writer %s: prefix is longer than %d bytes", name,
                        MAX_PREFIX);
    if (c->snaplen > DQI_CAPTURE_MAX_FRAME)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: snaplen %u: readers of pcap files take at most %u", name, c->snaplen,
                        DQI_CAPTURE_MAX_FRAME);
    int err = check_rotation(name, c, diag);
    return err == DQ_OK ? check_dirs(name, c, diag) : err;
}
