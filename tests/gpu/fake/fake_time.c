// fake_time.c: of the stand-in for the driver, fills and copies, and what only measuring needs: events and
// work that is launched together. Events know when their stream came to them.
#include "fake.h"

#include <stdlib.h>

int cuMemsetD8Async(cu_ptr at, unsigned char value, size_t n, cu_stream s) {
    void *p = fake_reach(at, n);
    return p ? fake_put(s, (job){.at = p, .value = value, .n = n}) : INVALID;
}

int cuMemcpyDtoHAsync_v2(void *to, cu_ptr from, size_t n, cu_stream s) {
    void *p = fake_reach(from, n);
    return p ? fake_put(s, (job){.at = to, .from = p, .n = n}) : INVALID;
}

int cuMemcpyHtoDAsync_v2(cu_ptr to, const void *from, size_t n, cu_stream s) {
    void *p = fake_reach(to, n);
    return p ? fake_put(s, (job){.at = p, .from = from, .n = n}) : INVALID;
}

int cuMemcpyDtoDAsync_v2(cu_ptr to, cu_ptr from, size_t n, cu_stream s) {
    void *p = fake_reach(to, n);
    const void *q = fake_reach(from, n);
    return p && q ? fake_put(s, (job){.at = p, .from = q, .n = n}) : INVALID;
}

// ---- time, and work that is launched together -------------------------------------------------------------

struct cu_event_s {
    int64_t at_ns;
    cu_stream stream; // that it was recorded on last
};

struct cu_graph_s {
    job *first;
};

int cuEventCreate(cu_event *out, unsigned flags) {
    *out = calloc(1, sizeof **out);
    return OK_OR_BROKEN(flags == 0 ? CU_SUCCESS : INVALID);
}

int cuEventDestroy_v2(cu_event e) {
    free(e);
    return CU_SUCCESS;
}

int cuEventRecord(cu_event e, cu_stream s) {
    e->stream = s;
    return fake_put(s, (job){.stamp = &e->at_ns});
}

int cuEventSynchronize(cu_event e) { return e->stream ? cuStreamSynchronize(e->stream) : INVALID; }

int cuEventElapsedTime(float *ms, cu_event from, cu_event to) {
    *ms = (float)(to->at_ns - from->at_ns) / 1e6F;
    return OK_OR_BROKEN(CU_SUCCESS);
}

// Of the stream: what other threads do meanwhile isn't checked.
int cuStreamBeginCapture_v2(cu_stream s, int mode) {
    (void)mode;
    if (s->captures) return INVALID;
    s->graph = calloc(1, sizeof *s->graph);
    s->captures = &s->graph->first;
    return OK_OR_BROKEN(CU_SUCCESS);
}

int cuStreamEndCapture(cu_stream s, cu_graph *out) {
    if (!s->captures) return INVALID;
    s->captures = NULL;
    *out = s->graph;
    return OK_OR_BROKEN(CU_SUCCESS);
}

// What can be launched has the jobs of its own, as the graph may go before it.
int cuGraphInstantiateWithFlags(cu_graph_exec *out, cu_graph graph, unsigned long long flags) {
    *out = calloc(1, sizeof **out);
    job **last = &(*out)->first;
    for (const job *j = graph->first; j; j = j->next) {
        *last = malloc(sizeof **last);
        **last = *j;
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    return OK_OR_BROKEN(flags == 0 ? CU_SUCCESS : INVALID);
}

int cuGraphLaunch(cu_graph_exec g, cu_stream s) {
    int err = CU_SUCCESS;
    for (const job *j = g->first; j && err == CU_SUCCESS; j = j->next)
        err = fake_put(s, *j);
    return err;
}

int cuGraphDestroy(cu_graph g) {
    for (job *j = g->first, *next; j; j = next) {
        next = j->next;
        free(j);
    }
    free(g);
    return CU_SUCCESS;
}

int cuGraphExecDestroy(cu_graph_exec g) { return cuGraphDestroy(g); }
