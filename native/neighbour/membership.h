// membership.h: multicast membership where no kernel sees to it: what a host tells the routers and switches
// of its network (IGMPv3, RFC 3376; MLDv2, RFC 3810; IGMPv2 and MLDv1 while somebody asks in these).
//
// A value that its owner locks. Times are session times. Frames have no VLAN tags.
#ifndef DQI_MEMBERSHIP_H
#define DQI_MEMBERSHIP_H

#include "neighbour/group.h"
#include "neighbour/neigh.h"

enum { DQI_REPORT_LEAST = 128 }; // bytes that a report must have room for
enum { DQI_REPORT_MAX = 1294 };  // more makes no difference

// A group with one source, or with all; a group with several sources has several.
typedef struct dqi_member {
    dqi_group g;
    bool leaving;      // forgotten when that was said
    uint32_t changes;  // how often it is still to be said that it was joined or left
    int64_t change_ns; // when next
    int64_t answer_ns; // when a query is to be answered; INT64_MAX: there is none
} dqi_member;

typedef struct dqi_membership {
    uint32_t n, cap;
    dqi_member *all;
    int64_t old_until[2]; // somebody asks in IGMPv2 [0], MLDv1 [1]: reports are in these until then
    uint64_t seed;        // of the waits
} dqi_membership;

void dqi_membership_init(dqi_membership *m, uint64_t seed);
void dqi_membership_free(dqi_membership *m);
// Joins or leaves; 0 or errno, as dqi_group_fail takes it. A second join of the same is none.
int dqi_membership_change(dqi_membership *m, const dqi_group *g, bool join, int64_t now);
// Leaves all, which is said once.
void dqi_membership_leave_all(dqi_membership *m, int64_t now);
// Takes in a received frame. False: it is no query, or not a valid one.
bool dqi_membership_query(dqi_membership *m, const uint8_t *frame, uint32_t len, int64_t now);
// When the next report is due; INT64_MAX: there is none.
int64_t dqi_membership_due(const dqi_membership *m);
// Writes a frame of at most room (from DQI_REPORT_LEAST on) bytes of what is due; its length, 0: nothing is.
uint32_t dqi_membership_report(dqi_membership *m, const dqi_station *me, int64_t now, uint8_t *out,
                               uint32_t room);
// The Ethernet addresses of the groups, at most max; the number that there are, some perhaps twice.
uint32_t dqi_membership_macs(const dqi_membership *m, uint8_t (*macs)[6], uint32_t max);

// ---- membership_report.c ----------------------------------------------------------------------------------

// What a report says of a member (RFC 3376, 4.2.12).
enum { DQI_IS_IN = 1, DQI_IS_EX, DQI_TO_IN, DQI_TO_EX, DQI_ALLOW, DQI_BLOCK };

// A report being written.
typedef struct dqi_report {
    uint8_t *out;
    uint32_t room, at, n; // at: of the next record; n: records
    int family;
} dqi_report;

// Starts a report of this family to the routers that know it.
void dqi_report_begin(dqi_report *r, const dqi_station *me, int family, uint8_t *out, uint32_t room);
// Adds a record; false: there is no room.
bool dqi_report_add(dqi_report *r, int record, const dqi_group *g);
// The frame's length.
uint32_t dqi_report_end(dqi_report *r);
// The whole of a report in IGMPv2 or MLDv1: that a group has a member, or that it has none. Its length.
uint32_t dqi_report_old(const dqi_station *me, const dqi_group *g, bool member, uint8_t *out);

#endif
