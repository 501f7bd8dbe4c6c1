// Addresses as text and as values.
#include "core/socket_addr.h"
#include "dqtest.h"

#include <arpa/inet.h>

static void splits_text(void) {
    static const struct {
        const char *text, *host;
        int32_t port;
        dq_proto proto;
        bool ok;
    } cases[] = {
        {"192.0.2.1:7148", "192.0.2.1", 7148, DQ_PROTO_NONE, true},
        {"192.0.2.1", "192.0.2.1", -1, DQ_PROTO_NONE, true},
        {"udp://host.example:1", "host.example", 1, DQ_PROTO_UDP, true},
        {"tcp://[2001:db8::1]:65535", "2001:db8::1", 65535, DQ_PROTO_TCP, true},
        {"[::]:0", "::", 0, DQ_PROTO_NONE, true},
        {"[fe80::1%eth0]:5", "fe80::1%eth0", 5, DQ_PROTO_NONE, true},
        {"2001:db8::1", "2001:db8::1", -1, DQ_PROTO_NONE, true},
        {"[::1]", "::1", -1, DQ_PROTO_NONE, true},
        {":5000", "", 5000, DQ_PROTO_NONE, true},
        {"host:", "", 0, DQ_PROTO_NONE, false},
        {"host:65536", "", 0, DQ_PROTO_NONE, false},
        {"host:50x", "", 0, DQ_PROTO_NONE, false},
        {"host:-1", "", 0, DQ_PROTO_NONE, false},
        {"host:123456", "", 0, DQ_PROTO_NONE, false},
        {"[::1", "", 0, DQ_PROTO_NONE, false},
        {"[::1]5", "", 0, DQ_PROTO_NONE, false},
        {"a b:5", "", 0, DQ_PROTO_NONE, false},
        {"http://host:5", "", 0, DQ_PROTO_NONE, false},
        {"host/path:5", "", 0, DQ_PROTO_NONE, false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char host[64];
        int32_t port;
        dq_proto proto;
        bool ok = dqi_addr_split(cases[k].text, host, sizeof host, &port, &proto);
        if (ok != cases[k].ok) dq_failed(__FILE__, __LINE__, cases[k].text);
        if (!ok || !cases[k].ok) continue;
        DQ_EQ_STR(host, cases[k].host);
        DQ_EQ(port, cases[k].port);
        DQ_EQ(proto, cases[k].proto);
    }
}

static void refuses_long_host(void) {
    char host[8];
    int32_t port;
    dq_proto proto;
    DQ_CHECK(dqi_addr_split("1234567:5", host, sizeof host, &port, &proto));
    DQ_CHECK(!dqi_addr_split("12345678:5", host, sizeof host, &port, &proto));
}

static dqi_sockaddr parsed(const char *host, uint16_t port) {
    dqi_sockaddr a = {0};
    DQ_CHECK(dqi_addr_parse(host, &a));
    dqi_addr_set_port(&a, port);
    return a;
}

static void writes_text(void) {
    static const struct {
        const char *host, *want;
    } cases[] = {
        {"192.0.2.1", "192.0.2.1:80"},
        {"2001:db8::1", "[2001:db8::1]:80"},
        {"::ffff:192.0.2.7", "192.0.2.7:80"},
    };
    char text[80];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dqi_sockaddr a = parsed(cases[k].host, 80);
        dqi_addr_text(&a, text, sizeof text);
        DQ_EQ_STR(text, cases[k].want);
    }
    dqi_sockaddr none = {0};
    dqi_addr_text(&none, text, sizeof text);
    DQ_EQ_STR(text, "");
    dqi_sockaddr a = parsed("192.0.2.1", 80);
    dqi_addr_text(&a, text, 6);
    DQ_EQ_STR(text, "192.0");
}

static void parses_no_names(void) {
    dqi_sockaddr a;
    DQ_CHECK(!dqi_addr_parse("localhost", &a));
    DQ_CHECK(!dqi_addr_parse("", &a));
    DQ_CHECK(!dqi_addr_parse("192.0.2.256", &a));
}

static void maps_and_unmaps(void) {
    dqi_sockaddr v4 = parsed("192.0.2.1", 7), v6 = parsed("2001:db8::1", 7), any = parsed("0.0.0.0", 9), out;
    DQ_CHECK(dqi_addr_fit(&v4, AF_INET6, &out));
    DQ_CHECK(out.sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&out.in6.sin6_addr));
    dqi_addr_unmap(&out);
    DQ_CHECK(dqi_addr_same_host(&out, &v4));
    DQ_EQ(dqi_addr_port(&out), 7);
    DQ_EQ(dqi_addr_len(&out), sizeof(struct sockaddr_in));
    DQ_CHECK(!dqi_addr_fit(&v6, AF_INET, &out));
    DQ_CHECK(dqi_addr_fit(&v6, AF_INET6, &out));
    DQ_CHECK(dqi_addr_same_host(&out, &v6));
    DQ_CHECK(dqi_addr_fit(&any, AF_INET6, &out));
    DQ_CHECK(dqi_addr_is_any(&out) && out.sa.sa_family == AF_INET6);
    DQ_EQ(dqi_addr_port(&out), 9);
    dqi_addr_unmap(&v6);
    DQ_EQ(v6.sa.sa_family, AF_INET6);
}

static void knows_ranges(void) {
    static const struct {
        const char *host;
        bool multicast, ssm, any;
    } cases[] = {
        {"224.0.0.1", true, false, false},
        {"239.255.255.255", true, false, false},
        {"232.1.2.3", true, true, false},
        {"223.255.255.255", false, false, false},
        {"240.0.0.1", false, false, false},
        {"ff02::1", true, false, false},
        {"ff3e::8000:1", true, true, false},
        {"fe80::1", false, false, false},
        {"0.0.0.0", false, false, true},
        {"::", false, false, true},
        {"ff3e:30:2001:db8::1", true, false, false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dqi_sockaddr a = parsed(cases[k].host, 0);
        bool same = dqi_addr_is_multicast(&a) == cases[k].multicast && dqi_addr_is_ssm(&a) == cases[k].ssm &&
                    dqi_addr_is_any(&a) == cases[k].any;
        if (!same) dq_failed(__FILE__, __LINE__, cases[k].host);
    }
}

static void resolves(void) {
    dqi_sockaddr out[4];
    const char *why = "";
    DQ_EQ(dqi_addr_resolve("", 5, out, 4, &why), 2);
    DQ_CHECK(dqi_addr_is_any(&out[0]) && out[0].sa.sa_family == AF_INET6 && dqi_addr_port(&out[0]) == 5);
    DQ_CHECK(dqi_addr_is_any(&out[1]) && out[1].sa.sa_family == AF_INET);
    DQ_EQ(dqi_addr_resolve("127.0.0.1", 5, out, 4, &why), 1);
    DQ_CHECK(dqi_addr_resolve("localhost", 5, out, 4, &why) >= 1);
    DQ_CHECK(dqi_addr_resolve("no such name", 5, out, 4, &why) < 0);
    DQ_CHECK(why[0] != 0);
    dqi_sockaddr lo = parsed("127.0.0.1", 0), nowhere = parsed("198.51.100.77", 0);
    DQ_CHECK(dqi_addr_nic(&lo) != 0);
    DQ_EQ(dqi_addr_nic(&nowhere), 0);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(splits_text);
    DQ_RUN(refuses_long_host);
    DQ_RUN(writes_text);
    DQ_RUN(parses_no_names);
    DQ_RUN(maps_and_unmaps);
    DQ_RUN(knows_ranges);
    DQ_RUN(resolves);
    return dq_done();
}
