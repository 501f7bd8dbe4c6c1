// neigh_test.c: ARP and neighbour discovery, held against frames that scapy built: answers to questions,
// silence where nothing was asked of the station, questions, and what is learned of neighbours.
#include "dqtest.h"

#include "neighbour/neighbours.h"

// Built by scapy: the station is 02:00:00:00:00:aa with 10.0.0.1 and fe80::1, who asks 02:00:00:00:00:bb.
static const uint8_t arp_request[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00,
                                      0xbb, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01,
                                      0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x0a, 0x00, 0x00, 0x02, 0x00,
                                      0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01};
static const uint8_t arp_reply[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x02, 0x00, 0x00, 0x00, 0x00,
                                    0xaa, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x02,
                                    0x02, 0x00, 0x00, 0x00, 0x00, 0xaa, 0x0a, 0x00, 0x00, 0x01, 0x02,
                                    0x00, 0x00, 0x00, 0x00, 0xbb, 0x0a, 0x00, 0x00, 0x02};
static const uint8_t tagged_request[] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x81, 0x00, 0x00, 0x07,
    0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0xbb,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01};
static const uint8_t tagged_reply[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x02, 0x00, 0x00, 0x00, 0x00, 0xaa,
                                       0x81, 0x00, 0x00, 0x07, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04,
                                       0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0xaa, 0x0a, 0x00, 0x00, 0x01,
                                       0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x00, 0x00, 0x00, 0x00};
static const uint8_t solicitation[] = {
    0x33, 0x33, 0xff, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x86, 0xdd, 0x60,
    0x00, 0x00, 0x00, 0x00, 0x20, 0x3a, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x01, 0xff, 0x00, 0x00, 0x01, 0x87, 0x00, 0x79, 0xde, 0x00, 0x00,
    0x00, 0x00, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x01, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0xbb};
static const uint8_t advertisement[] = {
    0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x02, 0x00, 0x00, 0x00, 0x00, 0xaa, 0x86, 0xdd, 0x60,
    0x00, 0x00, 0x00, 0x00, 0x20, 0x3a, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x88, 0x00, 0x17, 0x73, 0x60, 0x00,
    0x00, 0x00, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x02, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0xaa};
static const uint8_t probe[] = {0x33, 0x33, 0xff, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0xbb, 0x86,
                                0xdd, 0x60, 0x00, 0x00, 0x00, 0x00, 0x18, 0x3a, 0xff, 0x00, 0x00, 0x00, 0x00,
                                0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff,
                                0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xff, 0x00,
                                0x00, 0x01, 0x87, 0x00, 0x7c, 0x25, 0x00, 0x00, 0x00, 0x00, 0xfe, 0x80, 0x00,
                                0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01};
static const uint8_t probe_answer[] = {
    0x33, 0x33, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0xaa, 0x86, 0xdd, 0x60,
    0x00, 0x00, 0x00, 0x00, 0x20, 0x3a, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88, 0x00, 0x56, 0xf2, 0x20, 0x00,
    0x00, 0x00, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x02, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0xaa};

static const dqi_station me = {
    .mac = {2, 0, 0, 0, 0, 0xaa},
    .n_ip4 = 2,
    .ip4 = {{10, 0, 0, 9}, {10, 0, 0, 1}},
    .n_ip6 = 1,
    .ip6 = {{0xfe, 0x80, [15] = 1}},
};

// Gives the station a copy of exactly len bytes, so that address sanitizers see a read behind it.
static uint32_t answer(const uint8_t *frame, uint32_t len, uint8_t *out) {
    uint8_t *copy = malloc(len ? len : 1);
    memcpy(copy, frame, len);
    uint32_t n = dqi_neigh_answer(&me, copy, len, out);
    free(copy);
    return n;
}

static void answers(const uint8_t *frame, uint32_t len, const uint8_t *want, uint32_t want_len) {
    uint8_t out[DQI_NEIGH_MAX];
    DQ_EQ(answer(frame, len, out), want_len);
    DQ_EQ_BYTES(out, want, want_len);
    for (uint32_t n = 0; n < len; n++) // a cut request is none
        DQ_EQ(answer(frame, n, out), 0);
}

static void arp(void) {
    answers(arp_request, sizeof arp_request, arp_reply, sizeof arp_reply);
    answers(tagged_request, sizeof tagged_request, tagged_reply, sizeof tagged_reply);
}

static void neighbour_discovery(void) {
    answers(solicitation, sizeof solicitation, advertisement, sizeof advertisement);
    answers(probe, sizeof probe, probe_answer, sizeof probe_answer);
}

// Bytes that make a request something else; at which offset, of how many, to what.
typedef struct change {
    uint32_t at;
    uint8_t to;
} change;

static void silent(const uint8_t *frame, uint32_t len, const change *changes, size_t n) {
    uint8_t copy[128], out[DQI_NEIGH_MAX];
    for (size_t k = 0; k < n; k++) {
        memcpy(copy, frame, len);
        copy[changes[k].at] = changes[k].to;
        DQ_EQ(answer(copy, len, out), 0);
    }
}

static void silence(void) {
    static const change in_arp[] = {{13, 7}, {15, 6}, {17, 1}, {18, 8}, {21, 2}, {22, 3}, {41, 3}, {41, 2}};
    silent(arp_request, sizeof arp_request, in_arp, sizeof in_arp / sizeof *in_arp);
    // Hop limit, type, code, checksum, target, an option of length 0, one that is too long.
    static const change in_nd[] = {{21, 254}, {54, 136}, {55, 1}, {56, 0}, {77, 2}, {79, 0}, {79, 2}};
    silent(solicitation, sizeof solicitation, in_nd, sizeof in_nd / sizeof *in_nd);
    static const change in_probe[] = {{38, 0xfe}};
    silent(probe, sizeof probe, in_probe, 1);
    uint8_t out[DQI_NEIGH_MAX];
    DQ_EQ(answer(arp_reply, sizeof arp_reply, out), 0);
    uint8_t announced[sizeof arp_request]; // another host has the station's address, and asks for nothing
    memcpy(announced, arp_request, sizeof announced);
    announced[31] = 1;
    DQ_EQ(answer(announced, sizeof announced, out), 0);
    DQ_EQ(answer(advertisement, sizeof advertisement, out), 0);
}

// Random damage: an answer is at most DQI_NEIGH_MAX long, and nothing is read that is not there.
static void damage(void) {
    uint64_t state = 1;
    for (int round = 0; round < 20000; round++) {
        uint8_t copy[sizeof solicitation], out[DQI_NEIGH_MAX];
        memcpy(copy, solicitation, sizeof copy);
        for (int k = 0; k < 3; k++)
            copy[dq_below(&state, sizeof copy)] = (uint8_t)dq_rand(&state);
        DQ_CHECK(answer(copy, sizeof copy, out) <= DQI_NEIGH_MAX);
    }
}

static dq_ip ip4(uint8_t last) { return (dq_ip){4, {10, 0, 0, last}}; }
static dq_ip ip6(uint8_t last) { return (dq_ip){16, {0xfe, 0x80, [15] = last}}; }

// A station 02:00:00:00:00:bb asks for addr.
static void asks(dq_ip from, dq_ip addr, uint16_t vlan, const uint8_t *want, uint32_t len) {
    const uint8_t mac[6] = {2, 0, 0, 0, 0, 0xbb};
    uint8_t out[DQI_NEIGH_MAX];
    DQ_EQ(dqi_neigh_ask(mac, &from, &addr, vlan, out), len);
    DQ_EQ_BYTES(out, want, len);
}

static void questions(void) {
    const dq_ip none = {0};
    asks(ip4(2), ip4(1), 0, arp_request, sizeof arp_request);
    asks(none, ip4(1), 7, tagged_request, sizeof tagged_request);
    asks(ip6(2), ip6(1), 0, solicitation, sizeof solicitation);
    // Without an address it asks from its link-local one, and is answered.
    uint8_t out[DQI_NEIGH_MAX], reply[DQI_NEIGH_MAX];
    const uint8_t mac[6] = {2, 0, 0, 0, 0, 0xbb}, own[16] = {0xfe, 0x80, [11] = 0xff, 0xfe, [15] = 0xbb};
    dq_ip addr = ip6(1);
    uint32_t len = dqi_neigh_ask(mac, &none, &addr, 9, out);
    DQ_EQ_BYTES(out + 18 + 8, own, 16);
    DQ_EQ(answer(out, len, reply), len);
    dqi_neighbour status;
    DQ_CHECK(dqi_neigh_hear(reply, len, &status));
    DQ_EQ(status.vlan, 9);
}

// A cut frame is ignored, and so is one with a bit wrong in what is covered.
static void says(const uint8_t *frame, uint32_t len, dq_ip ip, uint8_t last) {
    dqi_neighbour status;
    for (uint32_t n = 0; n < len; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        memcpy(copy, frame, n);
        DQ_CHECK(!dqi_neigh_hear(copy, n, &status));
        free(copy);
    }
    DQ_CHECK(dqi_neigh_hear(frame, len, &status));
    DQ_EQ_BYTES(status.ip.bytes, ip.bytes, ip.len);
    DQ_EQ(status.mac[5], last);
}

static void hears(void) {
    says(arp_request, sizeof arp_request, ip4(2), 0xbb);
    says(arp_reply, sizeof arp_reply, ip4(1), 0xaa);
    says(advertisement, sizeof advertisement, ip6(1), 0xaa);
    says(probe_answer, sizeof probe_answer, ip6(1), 0xaa);
    dqi_neighbour status;
    DQ_CHECK(!dqi_neigh_hear(solicitation, sizeof solicitation, &status));
    uint64_t state = 2;
    for (int round = 0; round < 20000; round++) { // damage: its checksum shows it
        uint8_t copy[sizeof advertisement], at = 54 + (uint8_t)dq_below(&state, sizeof copy - 54);
        memcpy(copy, advertisement, sizeof copy);
        copy[at] ^= (uint8_t)(1 << dq_below(&state, 8));
        DQ_CHECK(!dqi_neigh_hear(copy, sizeof copy, &status));
    }
}

// What was asked for is kept for a minute; the oldest question makes room.
static void neighbours_are_kept(void) {
    dqi_neighbours *t = calloc(1, sizeof *t);
    uint8_t mac[6];
    dq_ip one = ip4(1);
    dqi_neighbour status = {.ip = one, .mac = {2, 0, 0, 0, 0, 1}};
    dqi_neighbours_update(t, &status, 5);
    DQ_CHECK(!dqi_neighbours_find(t, &one, 0, 5, mac)); // nothing asked
    dqi_neighbours_want(t, &one, 0);
    dqi_neighbours_want(t, &one, 7);
    DQ_CHECK(!dqi_neighbours_find(t, &one, 0, 5, mac));
    status.vlan = 7;
    dqi_neighbours_update(t, &status, 5);
    DQ_CHECK(dqi_neighbours_find(t, &one, 7, 60000000005, mac));
    DQ_EQ(mac[5], 1);
    DQ_CHECK(!dqi_neighbours_find(t, &one, 7, 60000000006, mac));
    DQ_CHECK(!dqi_neighbours_find(t, &one, 0, 5, mac)); // another VLAN's
    for (uint8_t k = 0; k < DQI_NEIGHBOURS - 1; k++) {
        dq_ip other = ip4(100 + k);
        dqi_neighbours_want(t, &other, 0);
    }
    status.vlan = 0; // the device took the tag out
    status.mac[5] = 2;
    dqi_neighbours_update(t, &status, 6);
    DQ_CHECK(dqi_neighbours_find(t, &one, 7, 6, mac));
    DQ_EQ(mac[5], 2);
    DQ_CHECK(!dqi_neighbours_find(t, &one, 0, 6, mac)); // it made room
    free(t);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(arp);
    DQ_RUN(neighbour_discovery);
    DQ_RUN(silence);
    DQ_RUN(damage);
    DQ_RUN(questions);
    DQ_RUN(hears);
    DQ_RUN(neighbours_are_kept);
    return dq_done();
}
