// replay.c: each loop begins a mean gap after the last packet of the one before, so times increase.
#include "engine/replay/replay.h"
#include "core/err.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define AGAIN_NS  50000    // interval between polls for a chunk that is being read
#define PIPE_NS   10000000 // same for a pipe, whose reader kicks
#define LEAST_GAP 1000     // minimum ns between two loops
#define LONE_GAP  1000000  // same for a capture of a single packet
#define LATEST_NS 4e18     // after the first packet

static void end(dqi_replay *r) {
    atomic_store_explicit(&r->ended, true, memory_order_release);
    for (uint32_t k = 0; k < r->iface->n_rx; k++)
        dqi_queue_kick(r->iface->rx[k]);
}

static void count_bad(dqi_replay *r) { dqi_add_shared(&r->c->extra[DQ_EXTRA_BAD_RECORDS], 1); }

// Stores and reports the first error; later ones are ignored.
static __attribute__((format(printf, 2, 3))) void set_error(dqi_replay *r, const char *fmt, ...) {
    char what[230];
    va_list ap;
    if (atomic_load_explicit(&r->failed, memory_order_relaxed)) return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(r->error, sizeof r->error, "interface %s: %.200s: %s", r->iface->conf.name, r->path, what);
    atomic_store_explicit(&r->failed, true, memory_order_release);
    dqi_note(r->iface->session, "%s", r->error);
}

// Ends the replay with an error.
static void fail(dqi_replay *r, const char *why) {
    char rest[64] = "what follows is not replayed";
    uint64_t size = dqi_readahead_size(&r->ahead);
    if (size > r->pos)
        snprintf(rest, sizeof rest, "%llu bytes are left and not replayed",
                 (unsigned long long)(size - r->pos));
    set_error(r, "at byte %llu: %.160s; %s", (unsigned long long)r->pos, why, rest);
    count_bad(r);
    end(r);
}

static void report_cut(dqi_replay *r) {
    count_bad(r);
    r->is_cut = true;
    set_error(r, "it is cut off in the record at byte %llu, of which %llu bytes are there",
              (unsigned long long)r->pos, (unsigned long long)r->left);
}

// ---- next packet ------------------------------------------------------------------------------------------

static void advance(dqi_replay *r, uint64_t n) {
    uint64_t here = n < r->left ? n : r->left;
    r->p += here;
    r->left -= here;
    r->pos += here;
    r->skip = n - here;
}

// Reports once which contents of the capture are not passed on with packets.
static void report_left_out(dqi_replay *r) {
    if (r->reported_left_out || (r->capture.unread == 0 && r->remarks.lost == 0)) return;
    r->reported_left_out = true;
    dqi_note(
        r->iface->session,
        "interface %s: %.200s: not passed on: %llu blocks other than packets (host names, secrets, custom "
        "blocks), and comments of %llu packets (longer than 207 bytes, or after 65536 different ones)",
        r->iface->conf.name, r->path, (unsigned long long)r->capture.unread,
        (unsigned long long)r->remarks.lost);
}

static void next_loop(dqi_replay *r) {
    uint64_t loops = r->iface->conf.replay.loops;
    r->loop++;
    dqi_add_shared(&r->c->extra[DQ_EXTRA_LOOPS], 1);
    if (r->packets == 0 || (loops > 0 && r->loop >= loops)) {
        report_left_out(r);
        end(r);
        return;
    }
    int64_t took = r->last_ns - r->first_ns, gap = LONE_GAP;
    if (r->packets > 1) gap = took / (int64_t)(r->packets - 1);
    r->shift_ns += took + (gap < LEAST_GAP ? LEAST_GAP : gap);
    r->first_ns = r->last_ns = DQ_NO_TIME;
    dqi_readahead_next(&r->ahead);
    report_left_out(r);
    dqi_capture_reset(&r->capture);
    dqi_remarks_again(&r->remarks);
    r->p = NULL;
    r->left = 0;
    r->pos = r->skip = r->packets = 0;
}

// Advances to the next chunk and copies the remainder of this one in front of it. Returns false if that chunk
// is not yet read or the replay has ended.
static bool next_chunk(dqi_replay *r) {
    dqi_chunk *k = dqi_readahead_at(&r->ahead, 0);
    if (k->last) {
        if (k->err != 0) {
            fail(r, strerror(k->err));
            return false;
        }
        if (r->ahead.stream && r->capture.form == DQI_CAPTURE_NEW) {
            fail(r, "it ended before a capture began");
            return false;
        }
        if (r->left > 0 || r->skip > 0) report_cut(r);
        next_loop(r);
        return !dqi_replay_ended(r);
    }
    dqi_chunk *next = dqi_readahead_at(&r->ahead, 1);
    if (!next) return false;
    if (r->left > 0) memcpy(next->bytes - r->left, r->p, r->left);
    r->p = next->bytes - r->left;
    r->left += next->len;
    dqi_readahead_next(&r->ahead);
    return true;
}

static bool enter_chunk(dqi_replay *r) {
    if (r->p) return true;
    dqi_chunk *k = dqi_readahead_at(&r->ahead, 0);
    if (!k) return false;
    r->p = k->bytes;
    r->left = k->len;
    return true;
}

// Converts the packet's time to this loop.
static void note_time(dqi_replay *r) {
    int64_t ts = r->next.ts;
    if (ts == DQ_NO_TIME) return;
    if (r->first_ns == DQ_NO_TIME) r->first_ns = r->last_ns = ts;
    if (ts > r->last_ns) r->last_ns = ts;
    r->next.ts = ts + r->shift_ns;
    if (atomic_load_explicit(&r->origin_ns, memory_order_relaxed) == DQ_NO_TIME) // single writer
        atomic_store(&r->origin_ns, r->next.ts);
}

// Counts a packet that cannot be converted to a frame. If the link type of the whole capture is unsupported,
// the replay ends.
static void pass_by(dqi_replay *r) {
    uint32_t link = r->next.link;
    char why[96];
    snprintf(why, sizeof why, "a packet of %s (%u), which is not Ethernet and can't be made so",
             dqi_capture_link_name(link), link);
    if (r->capture.form == DQI_CAPTURE_PCAP && !dqi_capture_link_known(link)) {
        fail(r, why);
        return;
    }
    if (!r->reported_link)
        dqi_note(r->iface->session,
                 "interface %s: %.200s: at byte %llu: %s: such packets count as other_link",
                 r->iface->conf.name, r->path, (unsigned long long)r->pos, why);
    r->reported_link = true;
    dqi_add_shared(&r->c->in, 1);
    dqi_add_shared(&r->c->in_bytes, r->next.len);
    dqi_add_shared(&r->c->dropped[DQ_DROP_OTHER_LINK], 1);
}

// Converts the packet to an Ethernet frame and sets its time in this loop.
static void accept(dqi_replay *r) {
    if (!dqi_capture_frame(&r->next)) {
        pass_by(r);
        return;
    }
    note_time(r);
    bool bare = r->capture.form == DQI_CAPTURE_PCAP && r->capture.links[0].fcs < 0; // pcap has no metadata
    r->remark = bare ? NULL : dqi_remarks_of(&r->remarks, &r->capture, &r->next);
    r->packets++;
    r->valid = true;
}

// Reads until a packet is available; returns false if there is none now or the replay has ended.
static bool fetch(dqi_replay *r, bool busy) {
    while (!dqi_replay_ended(r) && enter_chunk(r)) {
        size_t used = 0;
        if (r->skip > 0) advance(r, r->skip);
        int what = DQI_CAPTURE_MORE;
        if (r->skip == 0) what = dqi_capture_next(&r->capture, r->p, r->left, &r->next, &used);
        if (what == DQI_CAPTURE_BAD) {
            fail(r, r->capture.why);
        } else if (what == DQI_CAPTURE_MORE) {
            if (busy || !next_chunk(r)) return false;
        } else if (what == DQI_CAPTURE_OTHER) {
            advance(r, used);
        } else {
            accept(r);
            advance(r, used);
            if (r->valid) return true;
        }
    }
    return false;
}

// ---- schedule ---------------------------------------------------------------------------------------------

// Returns the ns from the first packet to this one.
static double after_first(const dqi_replay *r) {
    const dq_replay_conf *conf = &r->iface->conf.replay;
    if (conf->bps > 0 || conf->pps > 0) return r->spent_ns;
    if (r->next.ts == DQ_NO_TIME) return 0; // at once after the packet before it
    return (double)(r->next.ts - atomic_load_explicit(&r->origin_ns, memory_order_relaxed)) / conf->speed;
}

static void set_due(dqi_replay *r, int64_t now) {
    const dq_replay_conf *conf = &r->iface->conf.replay;
    if (!r->begun) {
        r->begun = true;
        r->base_ns = r->due_ns = now;
    }
    r->timed = true;
    if (conf->bps <= 0 && conf->pps <= 0 && conf->speed <= 0) return; // no pacing
    double ns = after_first(r);
    int64_t due = r->base_ns + (int64_t)(ns < LATEST_NS ? ns : LATEST_NS);
    if (due > r->due_ns) r->due_ns = due; // packets with decreasing times follow immediately
}

bool dqi_replay_next(dqi_replay *r, int64_t now, bool busy, int64_t *due) {
    if (!r->valid && !fetch(r, busy)) {
        bool stay =
            busy || dqi_replay_ended(r) || dqi_virtual(r->iface->session); // virtual time waits for a pipe
        *due = stay ? now : now + (r->ahead.stream ? PIPE_NS : AGAIN_NS);
        return false;
    }
    if (!r->timed) set_due(r, now);
    *due = r->due_ns;
    return r->due_ns <= now;
}

void dqi_replay_took(dqi_replay *r) {
    const dq_replay_conf *conf = &r->iface->conf.replay;
    if (conf->bps > 0) r->spent_ns += 8e9 * r->next.len / conf->bps;
    if (conf->pps > 0) r->spent_ns += 1e9 / conf->pps;
    r->valid = r->timed = false;
}

// ---- open and close ---------------------------------------------------------------------------------------

int dqi_replay_open(dqi_replay *r, dq_iface *i, const char *path, dqi_counters *c, dq_diag *diag) {
    r->iface = i;
    r->c = c;
    r->first_ns = r->last_ns = DQ_NO_TIME;
    atomic_store(&r->origin_ns, DQ_NO_TIME);
    snprintf(r->path, sizeof r->path, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
    int err = dqi_readahead_open(&r->ahead, path, i->conf.replay.loops, i, diag);
    if (err != DQ_OK) return err;
    if (r->ahead.stream) return DQ_OK; // its first packet may arrive much later
    if (fetch(r, false)) return DQ_OK;
    if (atomic_load(&r->failed) && !r->is_cut) return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s", r->error);
    if (r->capture.form == DQI_CAPTURE_NEW)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: %s is not a valid capture: too short",
                        i->conf.name, path);
    if (r->reported_link)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: %.200s contains no packets that are, or can be converted to, Ethernet frames",
            i->conf.name, path);
    dqi_note(i->session, "interface %s: %s contains no packets", i->conf.name, path);
    return DQ_OK;
}

int dqi_replay_start(dqi_replay *r) { return dqi_readahead_start(&r->ahead); }

void dqi_replay_close(dqi_replay *r) {
    if (!r->iface) return;
    dqi_readahead_close(&r->ahead);
    dqi_capture_reset(&r->capture);
    dqi_remarks_free(&r->remarks);
}

void dqi_replay_read(const dqi_replay *r, dq_source *out) {
    out->fault[0] = 0;
    if (atomic_load_explicit(&r->failed, memory_order_acquire))
        snprintf(out->fault, sizeof out->fault, "%s", r->error);
}
