// membership.h: multicast membership without a kernel: reports to the routers and switches of a network
// (IGMPv3, RFC 3376; MLDv2, RFC 3810; IGMPv2 and MLDv1 while a querier uses these).
//
// Not thread-safe: the owner locks. Times are session times. Frames have no VLAN tags.
#ifndef DQI_MEMBERSHIP_H
#define DQI_MEMBERSHIP_H

#include "neighbour/group.h"
#include "neighbour/neigh.h"

enum { DQI_REPORT_LEAST = 128 }; // minimum buffer size of a report
enum { DQI_REPORT_MAX = 1294 };  // larger buffers make no difference

// A group with one source or any source; a group with several sources has several members.
typedef struct dqi_member {
    dqi_group g;
    bool leaving;      // removed once reported
    uint32_t changes;  // remaining reports of joining or leaving
    int64_t change_ns; // time of the next such report
    int64_t answer_ns; // time to answer a query; INT64_MAX: none pending
} dqi_member;

typedef struct dqi_membership {
    uint32_t n, cap;
    dqi_member *all;
    int64_t old_until[2]; // IGMPv2 [0] or MLDv1 [1] querier present: reports use these until then
    uint64_t seed;        // of the random delays
} dqi_membership;

void dqi_membership_init(dqi_membership *m, uint64_t seed);
void dqi_membership_free(dqi_membership *m);
// Joins or leaves; returns 0 or an errno for dqi_group_fail. Joining twice has no effect.
int dqi_membership_change(dqi_membership *m, const dqi_group *g, bool join, int64_t now);
// Leaves all groups, each reported once.
void dqi_membership_leave_all(dqi_membership *m, int64_t now);
// Processes a received frame. False: not a valid query.
bool dqi_membership_query(dqi_membership *m, const uint8_t *frame, uint32_t len, int64_t now);
// Returns when the next report is due; INT64_MAX: none.
int64_t dqi_membership_due(const dqi_membership *m);
// Writes a frame of what is due into room (DQI_REPORT_LEAST or more) bytes; returns its length, 0: none.
uint32_t dqi_membership_report(dqi_membership *m, const dqi_station *me, int64_t now, uint8_t *out,
                               uint32_t room);
// Writes up to max Ethernet addresses of the groups; returns the total, possibly with duplicates.
uint32_t dqi_membership_macs(const dqi_membership *m, uint8_t (*macs)[6], uint32_t max);

// ---- membership_report.c ----------------------------------------------------------------------------------

// Record types of a report (RFC 3376, 4.2.12).
enum { DQI_IS_IN = 1, DQI_IS_EX, DQI_TO_IN, DQI_TO_EX, DQI_ALLOW, DQI_BLOCK };

// A report under construction.
typedef struct dqi_report {
    uint8_t *out;
    uint32_t room, at, n; // at: offset of the next record; n: records
    int family;
} dqi_report;

// Starts a report of this family to its routers' group.
void dqi_report_begin(dqi_report *r, const dqi_station *me, int family, uint8_t *out, uint32_t room);
// Adds a record; false: no room.
bool dqi_report_add(dqi_report *r, int record, const dqi_group *g);
// Completes the frame; returns its length.
uint32_t dqi_report_end(dqi_report *r);
// Writes a complete IGMPv2 or MLDv1 report that a group has a member or not; returns its length.
uint32_t dqi_report_old(const dqi_station *me, const dqi_group *g, bool member, uint8_t *out);

#endif
