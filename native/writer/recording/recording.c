// recording.c: what formats of recordings share.
#include "writer/recording/recording.h"
#include "core/err.h"
#include "pipeline/queue.h"
#include "reorder/reorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

int dqi_recording_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag) {
    const dqi_reorder *r = dqi_reorder_of(q);
    int32_t made = r ? r->conf.types.output : DQ_DTYPE_BYTES;
    if (made == DQ_DTYPE_BYTES || made == c->sample_dtype) return DQ_OK;
    return dqi_fail(
        diag, DQ_INVALID_PARAMETER,
        "writer %s: reorder %s makes %s, which samples.type does not describe; hint: make the type of "
        "the samples and output_type the same",
        writer, q->conf.name, dq_dtype_name(made));
}

int dqi_recording_replace(const char *path, void (*put)(FILE *f, const void *object), const void *object) {
    char fresh[sizeof((dq_writer_file *)0)->path + 8];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return -errno;
    FILE *f = fdopen(fd, "w");
    if (!f) {
        int err = -errno;
        close(fd);
        unlink(fresh);
        return err;
    }
    errno = 0;
    put(f, object);
    int err = ferror(f) ? -(errno ? errno : EIO) : 0;
    if (fclose(f) != 0 && err == 0) err = -errno;
    if (err == 0 && rename(fresh, path) != 0) err = -errno;
    if (err != 0) unlink(fresh);
    return err;
}

void dqi_recording_put_time(FILE *f, int64_t ns) {
    int64_t part = ns % SECOND;
    if (part < 0) part += SECOND;
    time_t at = (time_t)((ns - part) / SECOND);
    struct tm tm;
    char text[32];
    if (!gmtime_r(&at, &tm)) return;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    fprintf(f, "%s.%09" PRId64 "Z", text, part);
}
