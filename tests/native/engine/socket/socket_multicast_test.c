// Multicast against plain sockets: IPv4 on the loopback interface, IPv6 in a network namespace, as the
// loopback interface has no route for its groups.
#include "socket_rig.h"

#include <net/if.h>
#include <sched.h>

static const char *nic = "lo";

typedef struct server {
    rig r;
    dq_iface *i;
    dq_queue *rx[3];
    uint32_t n_rx;
    uint16_t port;
} server;

static server group_server(const char *host, uint16_t port, uint32_t queues) {
    server s = {.r = rig_new(512, 256), .n_rx = queues};
    dq_iface_conf c = rig_conf("groups", DQ_PROTO_UDP, 1, host, port, "", 0);
    snprintf(c.address, sizeof c.address, "%s", nic);
    s.i = rig_iface(&s.r, &c);
    for (uint32_t k = 0; k < queues; k++)
        s.rx[k] = rig_rx(&s.r, s.i);
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    rig_start(&s.r, s.rx, queues);
    s.port = rig_port(s.i);
    return s;
}

// A plain socket that sends to groups from this address.
static int sender(const char *from) {
    uint16_t port = 0;
    int fd = peer_bind(SOCK_DGRAM, from, &port), index = (int)if_nametoindex(nic);
    if (strchr(from, ':')) {
        rig_need(setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index) == 0,
                 "IPV6_MULTICAST_IF");
    } else {
        struct ip_mreqn to = {.imr_ifindex = index};
        if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &to, sizeof to) != 0)
            dq_lack("multicast", "this kernel, or its emulation, has no IP_MULTICAST_IF by index");
    }
    return fd;
}

static bool send_to(int fd, const char *host, uint16_t port, const char *text) {
    socklen_t len;
    struct sockaddr_in6 a = peer_address(host, port, &len);
    return sendto(fd, text, strlen(text), 0, (struct sockaddr *)&a, len) == (ssize_t)strlen(text);
}

// Sends to the group, and behind it a mark straight to the server; true when the group's text came before the
// mark. What comes by loopback comes in order.
static bool hears(server *s, int fd, const char *group, const char *self) {
    uint32_t before = s->r.n;
    bool received = false, marked = false;
    DQ_CHECK(send_to(fd, group, s->port, "group"));
    DQ_CHECK(send_to(fd, self, s->port, "mark"));
    int64_t end = rig_now_ms() + 30000;
    while (!marked && rig_now_ms() < end) {
        rig_serve(&s->r, 5);
        for (uint32_t k = before; k < s->r.n; k++) {
            received = received || memcmp(s->r.packets[k].bytes, "group", 4) == 0;
            marked = marked || memcmp(s->r.packets[k].bytes, "mark", 4) == 0;
        }
    }
    DQ_CHECK(marked);
    return received;
}

static int join(server *s, const char *group, const char *source, bool on) {
    dq_diag d = {{0}};
    int err = dq_iface_multicast(s->i, group, source, on, &d);
    snprintf(s->r.error, sizeof s->r.error, "%s", d.text);
    return err;
}

static void joins_and_leaves(void) {
    server s = group_server("0.0.0.0", 0, 1);
    int fd = sender("127.0.0.1");
    const char *group = "239.77.1.2";
    char with_port[64];
    DQ_CHECK(!hears(&s, fd, group, "127.0.0.1"));
    DQ_EQ(join(&s, group, "", true), DQ_OK);
    DQ_CHECK(hears(&s, fd, group, "127.0.0.1"));
    DQ_CHECK(!hears(&s, fd, "239.77.1.3", "127.0.0.1"));
    DQ_EQ(join(&s, group, NULL, true), DQ_OK); // again
    DQ_EQ(join(&s, group, NULL, false), DQ_OK);
    DQ_CHECK(!hears(&s, fd, group, "127.0.0.1"));
    DQ_CHECK(join(&s, group, NULL, false) < 0);
    DQ_CHECK(strstr(s.r.error, "not joined") != NULL);
    snprintf(with_port, sizeof with_port, "%s:%u", group, s.port);
    DQ_EQ(join(&s, with_port, "", true), DQ_OK);
    DQ_CHECK(hears(&s, fd, group, "127.0.0.1"));
    close(fd);
    rig_close(&s.r);
}

static void chooses_sources(void) {
    server s = group_server("0.0.0.0", 0, 1);
    int a = sender("127.0.0.1"), b = sender("127.0.0.2");
    const char *group = "232.77.1.2";
    DQ_EQ(join(&s, group, "127.0.0.1", true), DQ_OK);
    DQ_CHECK(hears(&s, a, group, "127.0.0.1"));
    DQ_CHECK(!hears(&s, b, group, "127.0.0.1"));
    DQ_EQ(join(&s, group, "127.0.0.2", true), DQ_OK);
    DQ_CHECK(hears(&s, b, group, "127.0.0.1"));
    DQ_EQ(join(&s, group, "127.0.0.1", false), DQ_OK);
    DQ_CHECK(!hears(&s, a, group, "127.0.0.1"));
    DQ_CHECK(hears(&s, b, group, "127.0.0.1"));
    close(a);
    close(b);
    rig_close(&s.r);
}

static void bound_to_a_group(void) {
    server s = group_server("239.77.1.4", 0, 1);
    int a = sender("127.0.0.1"), b = sender("127.0.0.2");
    DQ_CHECK(send_to(a, "239.77.1.4", s.port, "hello"));
    RIG_UNTIL(&s.r, s.r.n == 1);
    DQ_EQ(join(&s, "239.77.1.4", "127.0.0.2", true), DQ_OK); // chosen sources take the place of any
    DQ_CHECK(send_to(a, "239.77.1.4", s.port, "not chosen"));
    DQ_CHECK(send_to(b, "239.77.1.4", s.port, "chosen"));
    RIG_UNTIL(&s.r, s.r.n >= 2);
    DQ_EQ(s.r.n, 2);
    DQ_EQ(s.r.packets[1].len, strlen("chosen"));
    close(a);
    close(b);
    rig_close(&s.r);
}

// Sends to itself until something comes: a new interface's routes take a moment.
static bool reaches_itself(const char *host) {
    uint16_t port = 0;
    int fd = peer_bind(SOCK_DGRAM, host, &port);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool ok = false;
    for (int k = 0; k < 500 && !ok; k++)
        ok = send_to(fd, host, port, "x") && poll(&p, 1, 10) > 0;
    close(fd);
    return ok;
}

// The process moves into a network namespace of its own, with an interface that routes IPv6 groups.
static bool enter_namespace(void) {
    if (unshare(CLONE_NEWNET) != 0) return false;
    nic = "dqa";
    return system("{ ip link set lo up && ip link add dqa type veth peer name dqb && ip link set dqa up && "
                  "ip link set dqb up && ip addr add fd99::1/64 dev dqa nodad && "
                  "ip addr add fd99::2/64 dev dqa nodad; } >/dev/null 2>&1") == 0 &&
           reaches_itself("fd99::1") && reaches_itself("fd99::2");
}

static void ipv6_groups(void) {
    if (!enter_namespace()) {
        fprintf(stderr, "IPv6 groups: left out, a network namespace takes root and ip(8)\n");
        return;
    }
    server s = group_server("::", 0, 1);
    int a = sender("fd99::1"), b = sender("fd99::2");
    const char *group = "ff02::7:1234", *chosen = "ff3e::7:1234";
    DQ_CHECK(!hears(&s, a, group, "fd99::1"));
    DQ_EQ(join(&s, group, "", true), DQ_OK);
    DQ_CHECK(hears(&s, a, group, "fd99::1"));
    DQ_EQ(join(&s, group, "", false), DQ_OK);
    DQ_CHECK(!hears(&s, a, group, "fd99::1"));
    DQ_EQ(join(&s, chosen, "fd99::2", true), DQ_OK);
    DQ_CHECK(!hears(&s, a, chosen, "fd99::1"));
    DQ_CHECK(hears(&s, b, chosen, "fd99::1"));
    close(a);
    close(b);
    rig_close(&s.r);
}

// An IPv6 socket takes IPv4 groups too.
static void ipv4_groups_on_ipv6(void) {
    if (!has_ipv6()) return;
    server s = group_server("::", 0, 1);
    int fd = sender("127.0.0.1");
    DQ_CHECK(!hears(&s, fd, "239.77.1.5", "127.0.0.1"));
    DQ_EQ(join(&s, "239.77.1.5", "", true), DQ_OK);
    DQ_CHECK(hears(&s, fd, "239.77.1.5", "127.0.0.1"));
    close(fd);
    rig_close(&s.r);
}

// With several queues each group goes to one, and comes once.
static void groups_are_dealt_out(void) {
    server s = group_server("0.0.0.0", 0, 3);
    int fd = sender("127.0.0.1");
    dq_queue *home[3];
    for (int k = 0; k < 3; k++) {
        char group[32];
        snprintf(group, sizeof group, "239.77.2.%d", k);
        DQ_EQ(join(&s, group, "", true), DQ_OK);
        DQ_CHECK(send_to(fd, group, s.port, "x"));
        RIG_UNTIL(&s.r, s.r.n == (uint32_t)k + 1);
        home[k] = s.r.packets[k].queue;
    }
    for (int k = 0; k < 5; k++)
        rig_serve(&s.r, 1);
    DQ_EQ(s.r.n, 3);
    DQ_CHECK(home[0] != home[1] && home[1] != home[2] && home[0] != home[2]);
    close(fd);
    rig_close(&s.r);
}

// A client sends to a group; its members' answers come from their own addresses.
static void client_to_a_group(void) {
    server s = group_server("0.0.0.0", 0, 1);
    DQ_EQ(join(&s, "239.77.1.6", "", true), DQ_OK);
    rig r = rig_new(64, 256);
    dq_iface_conf c = rig_conf("asker", DQ_PROTO_UDP, 0, "127.0.0.1", 0, "239.77.1.6", s.port);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i), *tx = rig_tx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, &rx, 1);
    rig_send(&r, tx, rig_burst(&r, tx, 1, 5, 0));
    RIG_UNTIL(&r, rig_line(&r, tx).out == 1);
    RIG_UNTIL(&s.r, s.r.n == 1);
    rig_need(s.r.n == 1, "nothing came");
    char want[64];
    snprintf(want, sizeof want, "127.0.0.1:%u", rig_port(i));
    DQ_EQ_STR(s.r.packets[0].peer, want);
    int fd = sender("127.0.0.1");
    DQ_CHECK(send_to(fd, "127.0.0.1", rig_port(i), "answer"));
    RIG_UNTIL(&r, r.n == 1);
    close(fd);
    rig_close(&r);
    rig_close(&s.r);
}

static void tells_what_is_wrong(void) {
    server s = group_server("0.0.0.0", 0, 1);
    static const struct {
        const char *group, *source, *want;
    } cases[] = {
        {"192.0.2.1", "", "is not a multicast group"},           {"nonsense", "", "is not a multicast group"},
        {"239.77.1.2:1", "", "this interface receives on port"}, {"239.77.1.2", "::1", "source '::1'"},
        {"239.77.1.2", "nonsense", "source 'nonsense'"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        DQ_EQ(join(&s, cases[k].group, cases[k].source, true), DQ_INVALID_PARAMETER);
        if (!strstr(s.r.error, cases[k].want) || !strstr(s.r.error, "interface groups"))
            dq_failed(__FILE__, __LINE__, s.r.error);
    }
    DQ_EQ(join(&s, "239.77.1.7", "", true), DQ_OK);
    DQ_CHECK(join(&s, "239.77.1.7", "127.0.0.1", true) < 0);
    DQ_CHECK(strstr(s.r.error, "leave it first") != NULL);
    rig_close(&s.r);
    rig r = rig_new(64, 256);
    dq_iface_conf c = rig_conf("stream", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    rig_rx(&r, i);
    dq_diag d;
    rig_need(rig_open(&r) == DQ_OK, r.error);
    DQ_EQ(dq_iface_multicast(i, "239.77.1.2", "", true, &d), DQ_NOT_SUPPORTED);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    int fd = sender("127.0.0.1");
    if (!send_to(fd, "239.77.1.1", 9, "probe")) dq_lack("multicast", "the loopback interface sends none");
    close(fd);
    DQ_RUN(joins_and_leaves);
    DQ_RUN(chooses_sources);
    DQ_RUN(bound_to_a_group);
    DQ_RUN(ipv4_groups_on_ipv6);
    DQ_RUN(groups_are_dealt_out);
    DQ_RUN(client_to_a_group);
    DQ_RUN(tells_what_is_wrong);
    DQ_RUN(ipv6_groups); // last: the others stay where they are
    return dq_done();
}
