// rss_test.c: the hash against the published verification suite of the RSS specification, and table against
// definition.
#include "frames.h"

#include "packet/rss.h"

typedef struct vector {
    const char *name;
    uint8_t src[16], dst[16];
    uint16_t sport, dport;
    uint32_t with_ports, addresses; // hashes
} vector;

// The specification's "Verifying the RSS hash calculation".
static const vector ipv4[] = {
    {"66.9.149.187", {66, 9, 149, 187}, {161, 142, 100, 80}, 2794, 1766, 0x51ccc178, 0x323e8fc2},
    {"199.92.111.2", {199, 92, 111, 2}, {65, 69, 140, 83}, 14230, 4739, 0xc626b0ea, 0xd718262a},
    {"24.19.198.95", {24, 19, 198, 95}, {12, 22, 207, 184}, 12898, 38024, 0x5c2b394a, 0xd2d0a5de},
    {"38.27.205.30", {38, 27, 205, 30}, {209, 142, 163, 6}, 48228, 2217, 0xafc7327f, 0x82989176},
    {"153.39.163.191", {153, 39, 163, 191}, {202, 188, 127, 2}, 44251, 1303, 0x10e828a2, 0x5d1809c5},
};

static const vector ipv6[] = {
    {"3ffe:2501:200:1fff::7",
     {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7},
     {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1},
     2794,
     1766,
     0x40207d3d,
     0x2cc18cd5},
    {"3ffe:501:8::260:97ff:fe40:efab",
     {0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab},
     {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
     14230,
     4739,
     0xdde51bbf,
     0x0f0c461c},
    {"3ffe:1900:4545:3:200:f8ff:fe21:67cf",
     {0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0x00, 0x03, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
     {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
     44251,
     38024,
     0x02d1feef,
     0x4b61e985},
};

static uint32_t hash_of(frame *f) {
    uint8_t p[FRAME_MAX];
    dqi_pkt k;
    dqi_parse(p, frame_write(f, p), &k);
    return dqi_rss_hash(dqi_rss_default(), p, &k);
}

static void check_vectors(const vector *v, size_t n, int ip) {
    for (size_t i = 0; i < n; i++) {
        frame f = {.ip = ip, .proto = 6, .sport = v[i].sport, .dport = v[i].dport, .payload_len = 4};
        memcpy(f.src, v[i].src, 16);
        memcpy(f.dst, v[i].dst, 16);
        dq_case = v[i].name;
        DQ_EQ(hash_of(&f), v[i].with_ports);
        f.proto = 17;
        DQ_EQ(hash_of(&f), v[i].with_ports);
        f.more_fragments = true;
        DQ_EQ(hash_of(&f), v[i].addresses);
        f.frag_offset = 3;
        DQ_EQ(hash_of(&f), v[i].addresses);
        f.frag_offset = 0;
        f.more_fragments = false;
        f.proto = 47;
        DQ_EQ(hash_of(&f), v[i].addresses);
    }
}

static void published_ipv4(void) { check_vectors(ipv4, sizeof ipv4 / sizeof *ipv4, 4); }
static void published_ipv6(void) { check_vectors(ipv6, sizeof ipv6 / sizeof *ipv6, 6); }

static void no_ip_is_zero(void) {
    frame f = {.ethertype = 0x0806, .payload_len = 40};
    DQ_EQ(hash_of(&f), 0);
}

// eCPRI over Ethernet: the id and the type count, nothing else does, and ids spread over the queues.
static void ecpri_streams(void) {
    uint32_t queues = 0;
    for (uint8_t id = 0; id < 16; id++) {
        frame f = {.ethertype = 0xaefe, .payload_len = 20};
        f.payload[5] = id;
        uint32_t h = hash_of(&f);
        queues |= 1u << dqi_rss_queue(h, 4);
        f.payload[3] = f.payload[9] = 77;
        DQ_EQ(hash_of(&f), h);
        f.payload[1] = 2;
        DQ_CHECK(hash_of(&f) != h);
        f.payload_len = 5;
        DQ_EQ(hash_of(&f), 0);
    }
    DQ_EQ(queues, 0xf);
}

static void table_is_the_definition(void) {
    uint64_t seed = 7;
    dqi_rss *r = malloc(sizeof *r);
    DQ_CHECK(r != NULL);
    for (int round = 0; round < 4; round++) {
        uint8_t key[DQI_RSS_KEY_LEN], in[DQI_RSS_INPUT_MAX];
        fill_random(&seed, key, sizeof key);
        dqi_rss_init(r, key);
        for (int i = 0; i < 2000; i++) {
            fill_random(&seed, in, sizeof in);
            uint32_t n = dq_below(&seed, DQI_RSS_INPUT_MAX + 1);
            DQ_EQ(dqi_rss_bytes(r, in, n), dqi_rss_slow(key, in, n));
        }
    }
    free(r);
}

static void queues_share_the_table(void) {
    for (uint32_t n = 1; n <= 32; n++) {
        uint32_t count[32] = {0};
        for (uint32_t h = 0; h < DQI_RSS_ENTRIES; h++) {
            uint32_t q = dqi_rss_queue(h, n);
            DQ_CHECK(q < n);
            DQ_EQ(q, dqi_rss_queue(h + 5 * DQI_RSS_ENTRIES, n));
            count[q]++;
        }
        for (uint32_t q = 0; q < n; q++)
            DQ_CHECK(count[q] == DQI_RSS_ENTRIES / n || count[q] == DQI_RSS_ENTRIES / n + 1);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(published_ipv4);
    DQ_RUN(published_ipv6);
    DQ_RUN(no_ip_is_zero);
    DQ_RUN(ecpri_streams);
    DQ_RUN(table_is_the_definition);
    DQ_RUN(queues_share_the_table);
    return dq_done();
}
