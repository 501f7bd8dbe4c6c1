// match_test.c: single matches against conditions written out one by one on the description of the frame.
#include "match_model.h"

#include "packet/flow_table.h"

static void matches_as_described(void) {
    uint64_t seed = 8;
    uint32_t hits = 0;
    for (int i = 0; i < 60000; i++) {
        frame f, g;
        uint8_t buf[FRAME_MAX];
        dq_match m;
        frame_random(&seed, true, &g);
        match_random(&seed, &g, &m);
        frame_random(&seed, true, &f);
        if (dq_below(&seed, 3) == 0) f = g;
        uint32_t len = frame_write(&f, buf);
        uint8_t *p = dq_exact(buf, len);
        dqi_pkt k;
        dqi_parse(p, len, &k);
        bool want = slow_match(&m, &f);
        DQ_EQ(dqi_match_packet(&m, p, len, &k), want);
        hits += want && m.set != 0;
        free(p);
    }
    DQ_CHECK(hits > 5000);
}

typedef struct refusal {
    const char *name;
    dq_match match;
    const char *text;
} refusal;

static void refuses_contradictions(void) {
    static const refusal cases[] = {
        {"unknown bit", {.set = 1u << 30}, "match: unknown bits in set"},
        {"udp and tcp",
         {.set = DQ_MATCH_UDP_DST | DQ_MATCH_TCP_SRC},
         "match: UDP and TCP conditions exclude each other"},
        {"v4 and v6",
         {.set = DQ_MATCH_IPV4_LEN | DQ_MATCH_IPV6_DST},
         "match: IPv4 and IPv6 conditions exclude each other"},
        {"empty range", {.set = DQ_MATCH_TCP_DST, .tcp_dst = {5, 4}}, "match: tcp_dst: the range is empty"},
        {"vlan", {.set = DQ_MATCH_VLAN_ID, .vlan_id = 4096}, "match: vlan_id: outside 0..4095"},
        {"prefix",
         {.set = DQ_MATCH_IPV6_SRC, .ipv6_src_prefix = 129},
         "match: ipv6_src: prefix outside 0..128"},
        {"id without type",
         {.set = DQ_MATCH_ECPRI_ID},
         "match: ecpri: an id needs a msg_type, which determines the position of the id"},
        {"id of a type without",
         {.set = DQ_MATCH_ECPRI_ID | DQ_MATCH_ECPRI_TYPE, .ecpri_type = 5},
         "match: ecpri: only messages of type 0, 1 and 2 carry an id"},
        {"ecpri over tcp",
         {.set = DQ_MATCH_ECPRI | DQ_MATCH_TCP_DST},
         "match: eCPRI is not carried over TCP"},
        {"flex on another port",
         {.set = DQ_MATCH_FLEX | DQ_MATCH_UDP_DST, .flex_udp_dst = 9},
         "match: udp_dst: the flex item's port is outside the range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dq_diag diag = {{0}};
        dq_case = cases[i].name;
        DQ_EQ(dqi_match_check(&cases[i].match, &diag), DQ_INVALID_PARAMETER);
        DQ_EQ_STR(diag.text, cases[i].text);
        dq_rule rule = {.match = cases[i].match, .flow_id = 12, .n_queues = 1};
        dqi_flow_table *t = NULL;
        DQ_EQ(dqi_flow_table_build(&rule, 1, &t, &diag), DQ_INVALID_PARAMETER);
        DQ_CHECK(strncmp(diag.text, "flow 12: match: ", 16) == 0);
    }
    dq_rule no_queue = {.flow_id = 3};
    dq_diag diag = {{0}};
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(&no_queue, 1, &t, &diag), DQ_INVALID_PARAMETER);
    DQ_EQ_STR(diag.text, "flow 3: 0 queues are outside 1..32");
}

// Of an IPv6 prefix longer than 64 both halves count.
static void long_prefixes(void) {
    frame f = {.ip = 6, .proto = 17, .payload_len = 4, .dst = {0xfd, [15] = 1}};
    dq_match m = {.set = DQ_MATCH_IPV6_DST, .ipv6_dst_prefix = 128};
    memcpy(m.ipv6_dst, f.dst, 16);
    uint8_t p[FRAME_MAX];
    uint32_t len = frame_write(&f, p);
    dqi_pkt k;
    dqi_parse(p, len, &k);
    DQ_CHECK(dqi_match_packet(&m, p, len, &k));
    m.ipv6_dst[15] = 3;
    DQ_CHECK(!dqi_match_packet(&m, p, len, &k));
    m.ipv6_dst_prefix = 126;
    DQ_CHECK(dqi_match_packet(&m, p, len, &k));
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(long_prefixes);
    DQ_RUN(matches_as_described);
    DQ_RUN(refuses_contradictions);
    return dq_done();
}
