// sigmf_meta.c: JSON of a SigMF metadata file. Numbers of samples are those of the data file plus the offset.
#include "writer/recording/sigmf_meta.h"
#include "core/clock.h"
#include "core/dq_burst.h"
#include "writer/recording/recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_NS INT64_C(1000000000) // least time between two writes
#define SHARE    50                  // and this many times the duration of the last one

void dqi_sigmf_meta_path(const char *data, char *buf, size_t len) {
    size_t n = strlen(data), suffix = sizeof DQI_SIGMF_DATA - 1;
    snprintf(buf, len, "%.*s" DQI_SIGMF_META, (int)(n > suffix ? n - suffix : 0), data);
}

// Returns space for entry n of a list. NULL: the list is full, or there is no memory.
static void *room_for(void **list, uint32_t *room, uint32_t n, size_t size) {
    if (n >= DQI_SIGMF_LISTED) return NULL;
    if (n == *room) {
        uint32_t more = n ? 2 * n : 16;
        void *p = realloc(*list, more * size);
        if (!p) return NULL;
        *list = p;
        *room = more;
    }
    return (char *)*list + n * size;
}

static void note_unlisted(dqi_sigmf_meta *m, uint64_t start, uint64_t end) {
    if (m->unlisted++ == 0) m->rest.start = start;
    m->rest.end = end;
}

void dqi_sigmf_meta_capture(dqi_sigmf_meta *m, const dqi_sigmf_capture *c) {
    void *list = m->captures;
    dqi_sigmf_capture *to = room_for(&list, &m->room_captures, m->n_captures, sizeof *to);
    m->captures = list;
    m->changed = true;
    if (!to) {
        note_unlisted(m, c->start, c->start + 1);
        return;
    }
    *to = *c;
    m->n_captures++;
}

void dqi_sigmf_meta_gap(dqi_sigmf_meta *m, uint64_t start, uint64_t end) {
    m->changed = true;
    if (m->n_gaps > 0 && m->gaps[m->n_gaps - 1].end >= start && m->unlisted == 0) {
        m->gaps[m->n_gaps - 1].end = end;
        return;
    }
    void *list = m->gaps;
    dqi_sigmf_gap *to = room_for(&list, &m->room_gaps, m->n_gaps, sizeof *to);
    m->gaps = list;
    if (!to) {
        note_unlisted(m, start, end);
        return;
    }
    *to = (dqi_sigmf_gap){start, end};
    m->n_gaps++;
}

void dqi_sigmf_meta_cut(dqi_sigmf_meta *m, uint64_t n) {
    while (m->n_captures > 0 && m->captures[m->n_captures - 1].start >= n)
        m->n_captures--, m->changed = true;
    while (m->n_gaps > 0 && m->gaps[m->n_gaps - 1].start >= n)
        m->n_gaps--, m->changed = true;
    if (m->n_gaps > 0 && m->gaps[m->n_gaps - 1].end > n) {
        m->gaps[m->n_gaps - 1].end = n;
        m->changed = true;
    }
    if (m->unlisted > 0 && m->rest.start >= n) m->unlisted = 0;
    if (m->rest.end > n) m->rest.end = n;
}

// ---- the file ---------------------------------------------------------------------------------------------

static void put_capture(FILE *f, const dqi_sigmf_meta *m, const dqi_sigmf_capture *c) {
    fprintf(f, "{\"core:sample_start\":%" PRIu64, m->offset + c->start);
    if (c->indexed) fprintf(f, ",\"core:global_index\":%" PRIu64, c->index);
    if (c->time_ns != DQ_NO_TIME) {
        fputs(",\"core:datetime\":\"", f);
        dqi_recording_put_time(f, c->time_ns);
        fputc('"', f);
    }
    fprintf(f, "%s%s}", m->members[0] ? "," : "", m->members);
}

static void put_gap(FILE *f, const dqi_sigmf_meta *m, const dqi_sigmf_gap *g) {
    fprintf(f, "{\"core:sample_start\":%" PRIu64 ",\"core:sample_count\":%" PRIu64 ",\"core:label\":\"gap\"",
            m->offset + g->start, g->end - g->start);
}

static void put_document(FILE *f, const void *object) {
    const dqi_sigmf_meta *m = object;
    static const dqi_sigmf_capture none = {.time_ns = DQ_NO_TIME};
    fprintf(f, "{\"global\":{%s,\"core:offset\":%" PRIu64 "},\n\"captures\":[", m->global, m->offset);
    if (m->n_captures == 0) put_capture(f, m, &none);
    for (uint32_t i = 0; i < m->n_captures; i++) {
        fputs(i ? ",\n" : "", f);
        put_capture(f, m, &m->captures[i]);
    }
    fputs("],\n\"annotations\":[", f);
    for (uint32_t i = 0; i < m->n_gaps; i++) {
        fputs(i ? ",\n" : "", f);
        put_gap(f, m, &m->gaps[i]);
        fputs(",\"core:comment\":\"missing packets\"}", f);
    }
    if (m->unlisted > 0) {
        fputs(m->n_gaps ? ",\n" : "", f);
        put_gap(f, m, &m->rest);
        fprintf(f, ",\"core:comment\":\"%" PRIu64 " gaps and jumps in these samples are not listed\"}",
                m->unlisted);
    }
    fputs("]}\n", f);
}

int dqi_sigmf_meta_write(dqi_sigmf_meta *m) {
    int err = dqi_recording_replace(m->path, put_document, m);
    if (err == 0) m->changed = false;
    return err;
}

void dqi_sigmf_meta_refresh(dqi_sigmf_meta *m) {
    if (!m->changed) return;
    int64_t begin = dqi_mono_ns();
    if (begin < m->next_ns) return;
    dqi_sigmf_meta_write(m); // closing the file reports the error
    int64_t end = dqi_mono_ns();
    m->next_ns = end + PAUSE_NS + SHARE * (end - begin);
}

void dqi_sigmf_meta_free(dqi_sigmf_meta *m) {
    free(m->captures);
    free(m->gaps);
    *m = (dqi_sigmf_meta){.offset = m->offset};
}
