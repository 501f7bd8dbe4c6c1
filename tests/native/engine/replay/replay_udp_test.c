// Which frames of a capture are a UDP interface's datagrams, and why the others are not.
#include "frames.h"

#include "engine/replay/replay_udp.h"
#include "pipeline/iface.h"

#include <errno.h>

static frame plain(void) {
    return (frame){.ip = 4,
                   .proto = 17,
                   .ttl = 1,
                   .src = {192, 0, 2, 1},
                   .dst = {192, 0, 2, 2},
                   .sport = 4000,
                   .dport = 7148,
                   .payload_len = 3,
                   .payload = {1, 2, 3},
                   .padding = 12};
}

static void open_as(dqi_replay_udp *u, dq_socket_conf conf) {
    dq_iface i = {.conf = {.name = "rx", .socket = conf}};
    dq_diag d;
    *u = (dqi_replay_udp){0};
    DQ_EQ(dqi_replay_udp_open(u, &i, &d), DQ_OK);
}

// Whether it is taken whole; else the reason. Nothing outside of the frame is read (ASan).
static int fate(const dqi_replay_udp *u, frame f, uint32_t cut) {
    uint8_t bytes[FRAME_MAX];
    dqi_datagram d;
    dq_reason why;
    frame_write(&f, bytes);
    uint8_t *exact = dq_exact(bytes, f.len - cut);
    bool taken = dqi_replay_udp_take(u, exact, f.len - cut, &d, &why);
    if (taken) {
        DQ_EQ(d.len, f.payload_len);
        DQ_EQ_BYTES(d.payload, f.payload, d.len);
        DQ_EQ(ntohs(d.peer.in6.sin6_port), f.sport); // at one place in both families
    }
    free(exact);
    return taken ? -1 : (int)why;
}

static void by_address_and_port(void) {
    dqi_replay_udp u;
    frame f = plain(), g = plain();
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "192.0.2.2", .local_port = 7148});
    DQ_EQ(fate(&u, f, 0), -1);
    g.dport = 7149;
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
    g = plain();
    g.dst[3] = 3;
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
    g = plain();
    g.proto = 6;
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
    g = plain();
    g.n_vlans = 2, g.ip_options = 8;
    DQ_EQ(fate(&u, g, 0), -1);
    g.ip = 6, g.ip_options = 0, g.extensions = 1;
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "0.0.0.0", .local_port = 7148});
    DQ_EQ(fate(&u, f, 0), -1);
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "::", .local_port = 7148});
    DQ_EQ(fate(&u, f, 0), -1);
    DQ_EQ(fate(&u, g, 0), -1);
}

// Returns the result of joining or leaving a group of this source.
static int change(dqi_replay_udp *u, const char *group, const char *source, bool join) {
    dq_iface i = {.conf = {.name = "rx"}};
    dq_diag d;
    return dqi_replay_udp_join(u, &i, group, source, join, &d);
}

static void groups_once_joined(void) {
    dqi_replay_udp u;
    frame f = plain(), g = plain();
    f.dst[0] = 239;
    g.dst[0] = 239, g.src[3] = 9;
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "0.0.0.0", .local_port = 7148});
    DQ_EQ(fate(&u, f, 0), DQ_DROP_NO_FLOW);
    DQ_EQ(change(&u, "192.0.2.2", "", true), DQ_INVALID_PARAMETER);
    DQ_EQ(change(&u, "239.0.2.2", "::1", true), DQ_INVALID_PARAMETER);
    DQ_EQ(fate(&u, f, 0), DQ_DROP_NO_FLOW);
    DQ_EQ(change(&u, "udp://239.0.2.2:7148", NULL, true), DQ_OK);
    DQ_EQ(change(&u, "239.0.2.2", "", true), DQ_OK);
    DQ_EQ(fate(&u, f, 0), -1);
    DQ_EQ(change(&u, "239.0.2.2", "192.0.2.1", true), DQ_ESYS - EINVAL);
    DQ_EQ(change(&u, "239.0.2.2", "192.0.2.1", false), DQ_ESYS - EADDRNOTAVAIL);
    DQ_EQ(change(&u, "239.0.2.2", "", false), DQ_OK);
    DQ_EQ(fate(&u, f, 0), DQ_DROP_NO_FLOW);
    DQ_EQ(change(&u, "239.0.2.2", "192.0.2.1", true), DQ_OK); // of one sender
    DQ_EQ(fate(&u, f, 0), -1);
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
    DQ_EQ(change(&u, "239.0.2.2", "192.0.2.9", true), DQ_OK); // and of a second one
    DQ_EQ(fate(&u, g, 0), -1);
    DQ_EQ(change(&u, "239.0.2.2", "192.0.2.1", false), DQ_OK);
    DQ_EQ(fate(&u, f, 0), DQ_DROP_NO_FLOW);
    DQ_EQ(fate(&u, g, 0), -1);
}

static void address_that_is_a_group(void) {
    dqi_replay_udp u;
    frame f = plain();
    f.dst[0] = 239;
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "239.0.2.2", .local_port = 7148});
    DQ_EQ(fate(&u, f, 0), -1);
    DQ_EQ(change(&u, "239.0.2.2", "192.0.2.9", true), DQ_OK);
    DQ_EQ(fate(&u, f, 0), DQ_DROP_NO_FLOW); // the chosen source took its place
    f.src[3] = 9;
    DQ_EQ(fate(&u, f, 0), -1);
    f.dst[0] = 232; // source-specific: nothing comes unasked
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "232.0.2.2", .local_port = 7148});
    DQ_EQ(fate(&u, f, 0), DQ_DROP_NO_FLOW);
}

static void no_more_groups_than_fit(void) {
    dqi_replay_udp u;
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "0.0.0.0", .local_port = 7148});
    for (int k = 0; k <= DQI_REPLAY_GROUPS; k++) {
        char group[32];
        snprintf(group, sizeof group, "239.1.%d.%d", k / 256, k % 256);
        DQ_EQ(change(&u, group, "", true), k < DQI_REPLAY_GROUPS ? DQ_OK : DQ_NO_SPACE_AVAILABLE);
    }
}

static void client_hears_its_server(void) {
    dqi_replay_udp u;
    frame f = plain(), g = plain();
    open_as(&u, (dq_socket_conf){.remote_host = "192.0.2.1", .remote_port = 4000});
    DQ_EQ(fate(&u, f, 0), -1);
    g.sport = 4001;
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
    g = plain();
    g.src[3] = 9;
    DQ_EQ(fate(&u, g, 0), DQ_DROP_NO_FLOW);
}

static void whole_ones_alone(void) {
    dqi_replay_udp u;
    frame f = plain();
    open_as(&u, (dq_socket_conf){.server = 1, .local_host = "0.0.0.0", .local_port = 7148, .max_payload = 3});
    DQ_EQ(fate(&u, f, 12), -1); // its padding
    for (uint32_t cut = 13; cut <= 12 + 3 + 8; cut++)
        DQ_EQ(fate(&u, f, cut), DQ_DROP_CUT);
    f.payload_len = 4;
    DQ_EQ(fate(&u, f, 0), DQ_DROP_TOO_LONG);
    f.more_fragments = true;
    DQ_EQ(fate(&u, f, 0), DQ_DROP_FRAGMENT);
    f.more_fragments = false, f.frag_offset = 100;
    DQ_EQ(fate(&u, f, 0), DQ_DROP_FRAGMENT);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(by_address_and_port);
    DQ_RUN(groups_once_joined);
    DQ_RUN(address_that_is_a_group);
    DQ_RUN(no_more_groups_than_fit);
    DQ_RUN(client_hears_its_server);
    DQ_RUN(whole_ones_alone);
    return dq_done();
}
