// gap_track.h: account of the numbers of one stream: which of them came, came again, came late or are
// missing. Needs no packets, only their numbers.
//
// A bitmap marks the numbers that have come among the `window` ones up to the highest. A number that leaves
// the window unmarked is missing. Numbers further away than the window are on trial: they count only once
// DQI_GAP_TRIAL of them in a row lie close together. If these are at most `jump` ahead, the numbers between
// are missing; otherwise the stream has restarted. Numbers rejected by the trial are late if they are at most
// `jump` behind, otherwise outliers.
//
// Once the stream is closed, expected = unique + missing. Numbers before a stream's first are expected only
// if they come. Not thread-safe, but any thread may read the counts.
#ifndef DQI_GAP_TRACK_H
#define DQI_GAP_TRACK_H

#include "core/atomics.h"

#define DQI_GAP_TRIAL 4

typedef struct dqi_gap_rule {
    uint32_t bits;   // width of the numbers, which wrap
    uint32_t window; // numbers; with jump at most a quarter of the range
    uint32_t ring;   // bits of a bitmap: dqi_gap_ring(window)
    uint64_t jump;   // numbers
} dqi_gap_rule;

typedef struct dqi_gap_counts {
    dqi_count expected, unique, missing, reordered, duplicate, late, outliers, restarts;
} dqi_gap_counts;

typedef struct dqi_gap_stream {
    dqi_gap_counts c;
    uint64_t *seen; // bitmap of rule->ring bits, of the caller; bit k: position k modulo ring
    uint64_t top;   // position of the highest number: the number, continued beyond its width
    uint64_t span;  // positions from the first since the last restart to top; 0: none
    uint32_t on_trial;
    uint64_t trial[DQI_GAP_TRIAL]; // numbers
} dqi_gap_stream;

// Returns the size of a bitmap for a window, a power of two of at least 64.
uint32_t dqi_gap_ring(uint32_t window);
// Accounts the number of the next packet.
void dqi_gap_take(dqi_gap_stream *g, const dqi_gap_rule *rule, uint64_t number);
// Ends the stream: rejects the trial, and counts what has not come in the window as missing.
void dqi_gap_close(dqi_gap_stream *g, const dqi_gap_rule *rule);

#endif
