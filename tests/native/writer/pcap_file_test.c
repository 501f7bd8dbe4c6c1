// pcap_file_test.c: the bytes of pcap files, and the headers made for payloads, against a reader of their
// own.
#include "capture.h"

#include "writer/pcap_file.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/resource.h>

static dqi_file_tally tally;
static const dqi_pcap_conf plain;

static dqi_pcap_file *open_pcap(const rig *r, uint32_t snaplen) {
    static dqi_pcap_file p;
    memset(&tally, 0, sizeof tally);
    const dqi_pcap_conf conf = {.snaplen = snaplen, .mode = DQI_DISK_REPLACE};
    DQ_EQ(dqi_pcap_open(&p, rig_path(r, "t.pcap"), &conf, false, &tally), 0);
    return &p;
}

static capture close_pcap(const rig *r, dqi_pcap_file *p) {
    DQ_EQ(dqi_buffered_file_flush(&p->file, &tally), 0);
    DQ_EQ(dqi_pcap_close(p), 0);
    capture c = capture_read(rig_path(r, "t.pcap"));
    DQ_CHECK(c.whole);
    DQ_EQ(c.size, tally.file_bytes);
    return c;
}

// ---- frames -----------------------------------------------------------------------------------------------

static void bytes_of_a_file(void) {
    // The file's header, a packet at 123456789.987654321 s, an empty one at .999999999 s.
    static const uint8_t want[] = {
        0x4d, 0x3c, 0xb2, 0xa1, 2,    0,    4,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0,   0,   4,
        0,    1,    0,    0,    0,                                                             //
        0x15, 0xcd, 0x5b, 0x07, 0xb1, 0x68, 0xde, 0x3a, 3, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c', //
        0x15, 0xcd, 0x5b, 0x07, 0xff, 0xc9, 0x9a, 0x3b, 0, 0, 0, 0, 0, 0, 0, 0,                //
    };
    rig r;
    rig_open(&r, true, 1, 8, 64);
    dq_burst *b = rig_burst(&r, 2);
    put_seg(b, 0, 0, "abc", 3);
    dqi_pcap_file *p = open_pcap(&r, 0);
    DQ_EQ(dqi_pcap_add(p, b, 0, 123456789987654321, &tally), 0);
    DQ_EQ(dqi_pcap_add(p, b, 1, 123456789999999999, &tally), 0);
    capture c = close_pcap(&r, p);
    DQ_EQ(c.size, sizeof want);
    DQ_EQ_BYTES(c.bytes, want, sizeof want);
    DQ_EQ(tally.packets, 2);
    DQ_EQ(tally.packet_bytes, 3);
    DQ_EQ(tally.files, 1);
    capture_free(&c);
    dq_burst_unref(b);
    rig_close(&r);
}

static void segments_become_one_record(void) {
    static const uint32_t lens[][3] = {{10, 20, 30}, {0, 20, 0}, {0, 0, 5}, {64, 0, 1}, {0, 0, 0}, {1, 1, 1}};
    enum { N = sizeof lens / sizeof *lens };
    rig r;
    rig_open(&r, true, 3, 8, 64);
    dq_burst *b = rig_burst(&r, N);
    dqi_pcap_file *p = open_pcap(&r, 0);
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t s = 0; s < 3; s++)
            fill_seg(b, s, i, lens[i][s], 10 * i + s);
        DQ_EQ(dqi_pcap_add(p, b, i, i, &tally), 0);
    }
    capture c = close_pcap(&r, p);
    DQ_EQ(c.n, N);
    for (uint32_t i = 0; i < c.n; i++) {
        const uint32_t *l = lens[i];
        DQ_EQ(c.records[i].len, l[0] + l[1] + l[2]);
        DQ_EQ(c.records[i].kept, c.records[i].len);
        for (uint32_t s = 0, at = 0; s < 3; at += l[s++])
            DQ_CHECK(is_fill(c.records[i].data + at, l[s], 10 * i + s));
    }
    capture_free(&c);
    dq_burst_unref(b);
    rig_close(&r);
}

static void snaplen_cuts(void) {
    static const struct {
        const char *name;
        uint32_t snaplen, len, kept;
    } cases[] = {
        {"shorter", 100, 99, 99},        {"equal", 100, 100, 100},
        {"longer", 100, 101, 100},       {"one byte", 1, 1500, 1},
        {"no limit", 0, 200000, 200000}, {"longer than readers take", 0, 300000, 262144},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 2, 2, 160000);
        dq_burst *b = rig_burst(&r, 1);
        fill_seg(b, 0, 0, cases[k].len / 2, 1);
        fill_seg(b, 1, 0, cases[k].len - cases[k].len / 2, 2);
        dqi_pcap_file *p = open_pcap(&r, cases[k].snaplen);
        DQ_EQ(dqi_pcap_add(p, b, 0, 1, &tally), 0);
        capture c = close_pcap(&r, p);
        DQ_EQ(c.snaplen, cases[k].snaplen ? cases[k].snaplen : 262144);
        DQ_EQ(c.n, 1);
        DQ_EQ(c.records[0].kept, cases[k].kept);
        DQ_EQ(c.records[0].len, cases[k].len);
        DQ_EQ(tally.packet_bytes, cases[k].kept);
        DQ_EQ(tally.cut, cases[k].kept < cases[k].len);
        capture_free(&c);
        dq_burst_unref(b);
        rig_close(&r);
    }
}

// Blocks leave at record boundaries: whatever is on disk while the file grows is a whole file.
static void file_is_whole_at_any_time(void) {
    rig r;
    uint64_t seed = 7, lens[64];
    rig_open(&r, true, 1, 64, 9000);
    dq_burst *b = rig_burst(&r, 64);
    for (uint32_t i = 0; i < 64; i++)
        fill_seg(b, 0, i, (uint32_t)(lens[i] = dq_below(&seed, 9001)), i);
    dqi_pcap_file *p = open_pcap(&r, 0);
    uint32_t seen = 0;
    for (uint32_t k = 0; k < 1000; k++) {
        DQ_EQ(dqi_pcap_add(p, b, k % 64, k, &tally), 0);
        if (k % 50 != 0) continue;
        capture c = capture_read(rig_path(&r, "t.pcap"));
        DQ_CHECK(c.whole);
        DQ_EQ(c.n, tally.packets);
        seen += c.n > 0;
        capture_free(&c);
    }
    DQ_CHECK(seen > 0); // blocks left before the flush
    capture c = close_pcap(&r, p);
    DQ_EQ(c.n, 1000);
    for (uint32_t k = 0; k < c.n; k++) {
        DQ_EQ(c.records[k].kept, lens[k % 64]);
        DQ_EQ(c.records[k].ts, k);
        DQ_CHECK(is_fill(c.records[k].data, c.records[k].kept, k % 64));
    }
    capture_free(&c);
    dq_burst_unref(b);
    rig_close(&r);
}

// ---- payloads ---------------------------------------------------------------------------------------------

// What a reader finds in the made-up headers of one record; ok: lengths and checksums are right.
typedef struct parsed {
    bool ok, v6, tcp;
    char src[INET6_ADDRSTRLEN + 8], dst[INET6_ADDRSTRLEN + 8];
    uint32_t seq, payload_len;
    const uint8_t *payload;
} parsed;

static uint32_t read_be(const uint8_t *p, int n) {
    uint32_t v = 0;
    while (n-- > 0)
        v = v << 8 | *p++;
    return v;
}

// RFC 1071 as it is written, byte by byte.
static uint32_t sum16(const uint8_t *p, uint32_t n, uint32_t sum) {
    for (uint32_t i = 0; i < n; i++) {
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static void address(char *to, size_t size, bool v6, const uint8_t *ip, uint32_t port) {
    char host[INET6_ADDRSTRLEN];
    inet_ntop(v6 ? AF_INET6 : AF_INET, ip, host, sizeof host);
    snprintf(to, size, v6 ? "[%s]:%u" : "%s:%u", host, port);
}

static parsed parse(const record *r) {
    parsed p = {0};
    const uint8_t *ip = r->data + 14;
    uint32_t type = read_be(r->data + 12, 2);
    p.v6 = type == 0x86dd;
    uint32_t ip_len = p.v6 ? 40 : 20, rest = r->len - 14 - ip_len;
    if (r->kept != r->len || r->len < 42 || (!p.v6 && type != 0x0800)) return p;
    if (p.v6 ? ip[0] != 0x60 || read_be(ip + 4, 2) != rest
             : ip[0] != 0x45 || read_be(ip + 2, 2) != rest + 20 || sum16(ip, 20, 0) != 0xffff)
        return p;
    uint32_t proto = ip[p.v6 ? 6 : 9];
    const uint8_t *l4 = ip + ip_len;
    p.tcp = proto == 6;
    uint32_t l4_len = p.tcp ? (uint32_t)(l4[12] >> 4) * 4 : 8;
    address(p.src, sizeof p.src, p.v6, ip + (p.v6 ? 8 : 12), read_be(l4, 2));
    address(p.dst, sizeof p.dst, p.v6, ip + (p.v6 ? 24 : 16), read_be(l4 + 2, 2));
    uint32_t sum = sum16(ip + (p.v6 ? 8 : 12), p.v6 ? 32 : 8, proto + rest);
    p.seq = p.tcp ? read_be(l4 + 4, 4) : 0;
    p.payload = l4 + l4_len;
    p.payload_len = rest - l4_len;
    p.ok = (p.tcp ? l4_len == 20 : proto == 17 && read_be(l4 + 4, 2) == rest) &&
           sum16(l4, rest, sum) == 0xffff && (p.tcp || read_be(l4 + 6, 2) != 0) && r->data[0] == 2 &&
           r->data[6] == 2;
    return p;
}

// Writes where a packet came from: "192.0.2.1", "2001:db8::1", or nothing.
static void set_peer(dq_burst *b, uint32_t i, const char *host, uint16_t port) {
    dqi_sockaddr *a = dqi_burst_peer_addr(b, i);
    memset(a, 0, sizeof *a);
    if (inet_pton(AF_INET6, host, &a->in6.sin6_addr) == 1) {
        a->in6.sin6_family = AF_INET6;
        a->in6.sin6_port = htons(port);
    } else if (inet_pton(AF_INET, host, &a->in4.sin_addr) == 1) {
        a->in4.sin_family = AF_INET;
        a->in4.sin_port = htons(port);
    }
}

static void rig_payload(rig *r, dq_proto proto, const char *local_host, uint16_t local_port) {
    rig_payloads(r);
    r->iface.conf.socket.proto = (int32_t)proto;
    r->iface.conf.socket.local_port = local_port;
    snprintf(r->iface.conf.socket.local_host, sizeof r->iface.conf.socket.local_host, "%s", local_host);
}

static void udp_headers(void) {
    static const struct {
        const char *name, *peer, *local, *src, *dst;
    } cases[] = {
        {"IPv4", "192.0.2.1", "192.0.2.9", "192.0.2.1:5000", "192.0.2.9:7148"},
        {"IPv6", "2001:db8::1", "2001:db8::9", "[2001:db8::1]:5000", "[2001:db8::9]:7148"},
        {"zone", "fe80::1", "fe80::9%eth0", "[fe80::1]:5000", "[fe80::9]:7148"},
        {"IPv4 on an IPv6 socket", "::ffff:192.0.2.1", "::", "192.0.2.1:5000", "0.0.0.0:7148"},
        {"IPv4 from all addresses", "192.0.2.1", "0.0.0.0", "192.0.2.1:5000", "0.0.0.0:7148"},
        {"IPv6, local address unknown", "2001:db8::1", "", "[2001:db8::1]:5000", "[::]:7148"},
        {"peer unknown", "", "192.0.2.9", "0.0.0.0:0", "192.0.2.9:7148"},
        {"peer unknown, IPv6", "", "2001:db8::9", "[::]:0", "[2001:db8::9]:7148"},
        {"nothing known", "", "", "0.0.0.0:0", "0.0.0.0:7148"},
    };
    static const uint32_t lens[] = {0, 1, 2, 3, 17, 1472, 1473, 65495, 1};
    enum { N = sizeof lens / sizeof *lens };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 2, N, 65536);
        rig_payload(&r, DQ_PROTO_UDP, cases[k].local, 7148);
        dq_burst *b = rig_burst(&r, N);
        dqi_pcap_file *p = open_pcap(&r, 0);
        for (uint32_t i = 0; i < N; i++) {
            fill_seg(b, 0, i, lens[i] / 3, i);
            fill_seg(b, 1, i, lens[i] - lens[i] / 3, i + 1);
            set_peer(b, i, cases[k].peer, 5000);
            DQ_EQ(dqi_pcap_add(p, b, i, i, &tally), 0);
        }
        capture c = close_pcap(&r, p);
        DQ_EQ(c.n, N);
        for (uint32_t i = 0; i < c.n; i++) {
            parsed h = parse(&c.records[i]);
            DQ_CHECK(h.ok && !h.tcp);
            DQ_EQ_STR(h.src, cases[k].src);
            DQ_EQ_STR(h.dst, cases[k].dst);
            DQ_EQ(h.payload_len, lens[i]);
            DQ_CHECK(is_fill(h.payload, lens[i] / 3, i));
            DQ_CHECK(is_fill(h.payload + lens[i] / 3, lens[i] - lens[i] / 3, i + 1));
        }
        capture_free(&c);
        dq_burst_unref(b);
        rig_close(&r);
    }
}

// A checksum that comes out as 0 must be sent as 0xffff.
static void udp_checksum_is_never_zero(void) {
    rig r;
    rig_open(&r, true, 1, 64, 64);
    rig_payload(&r, DQ_PROTO_UDP, "192.0.2.9", 7148);
    dqi_pcap_file *p = open_pcap(&r, 0);
    dq_burst *b = rig_burst(&r, 1);
    for (uint32_t v = 0; v <= 0xffff; v++) {
        uint8_t bytes[2] = {(uint8_t)(v >> 8), (uint8_t)v};
        b->bytes = 0;
        put_seg(b, 0, 0, bytes, 2);
        set_peer(b, 0, "192.0.2.1", 5000);
        DQ_EQ(dqi_pcap_add(p, b, 0, v, &tally), 0);
    }
    capture c = close_pcap(&r, p);
    uint32_t wrapped = 0;
    for (uint32_t i = 0; i < c.n; i++) {
        DQ_CHECK(parse(&c.records[i]).ok);
        wrapped += read_be(c.records[i].data + 40, 2) == 0xffff;
    }
    DQ_EQ(c.n, 0x10000);
    DQ_CHECK(wrapped > 0);
    capture_free(&c);
    dq_burst_unref(b);
    rig_close(&r);
}

// Longer than any datagram (a reordered block, say): cut, and reported.
static void payload_longer_than_a_datagram(void) {
    rig r;
    rig_open(&r, true, 1, 1, 100000);
    rig_payload(&r, DQ_PROTO_UDP, "192.0.2.9", 7148);
    dq_burst *b = rig_burst(&r, 1);
    fill_seg(b, 0, 0, 100000, 3);
    set_peer(b, 0, "192.0.2.1", 5000);
    dqi_pcap_file *p = open_pcap(&r, 0);
    DQ_EQ(dqi_pcap_add(p, b, 0, 1, &tally), 0);
    capture c = close_pcap(&r, p);
    DQ_EQ(c.n, 1);
    DQ_CHECK(parse(&c.records[0]).ok);
    DQ_EQ(parse(&c.records[0]).payload_len, 65495);
    DQ_EQ(tally.cut, 1);
    DQ_EQ(tally.packets, 1);
    capture_free(&c);
    dq_burst_unref(b);
    rig_close(&r);
}

static int reads;

// Connection n comes from port 40000 + n; from the third on it is gone.
static int fake_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    (void)i;
    reads++;
    if (conn >= 3) return DQ_INVALID_PARAMETER;
    snprintf(out->local, sizeof out->local, "[2001:db8::9]:9000");
    snprintf(out->peer, sizeof out->peer, "[2001:db8::%x]:%u", conn, 40000 + conn);
    return DQ_OK;
}

// Chunks of two connections, some longer than an IP packet: each stream comes out whole and in order.
static void tcp_streams(void) {
    enum { CHUNKS = 12, CHUNK = 200000 };
    rig r;
    uint8_t *stream[3] = {0};
    uint32_t len[3] = {0}, at[3] = {0}, seq[3] = {0}, records = 0;
    rig_open(&r, true, 2, 64, CHUNK / 2);
    rig_payload(&r, DQ_PROTO_TCP, "", 9000);
    rig_conns(&r, fake_conn_read);
    dqi_pcap_file *p = open_pcap(&r, 0);
    reads = 0;
    for (uint32_t k = 0; k < CHUNKS; k++) {
        uint32_t conn = 1 + k / 2 % 2, n = k % 3 == 0 ? CHUNK : k * 1000 + 1;
        dq_burst *b = rig_burst(&r, 1);
        b->conn = conn;
        set_peer(b, 0, "", 0);
        stream[conn] = realloc(stream[conn], len[conn] + n);
        for (uint32_t s = 0; s < 2; s++) { // records run over the segments' boundary
            uint32_t part = s == 0 ? n / 2 : n - n / 2;
            fill_seg(b, s, 0, part, 2 * k + s);
            memcpy(stream[conn] + len[conn], seg_bytes(b, s, 0), part);
            len[conn] += part;
        }
        DQ_EQ(dqi_pcap_add(p, b, 0, k, &tally), 0);
        records += (n + 65494) / 65495;
        dq_burst_unref(b);
    }
    capture c = close_pcap(&r, p);
    DQ_EQ(c.n, records);
    DQ_EQ(tally.packets, CHUNKS);
    DQ_EQ(tally.packet_bytes, len[1] + len[2]);
    DQ_EQ(reads, CHUNKS / 2); // once per change of connection
    for (uint32_t i = 0; i < c.n; i++) {
        parsed h = parse(&c.records[i]);
        DQ_CHECK(h.ok && h.tcp && h.v6);
        DQ_EQ_STR(h.dst, "[2001:db8::9]:9000");
        uint32_t conn = strcmp(h.src, "[2001:db8::1]:40001") == 0 ? 1 : 2;
        DQ_EQ_STR(h.src, conn == 1 ? "[2001:db8::1]:40001" : "[2001:db8::2]:40002");
        if (at[conn] > 0) DQ_EQ(h.seq, seq[conn]);
        DQ_EQ_BYTES(h.payload, stream[conn] + at[conn], h.payload_len);
        at[conn] += h.payload_len;
        seq[conn] = h.seq + h.payload_len;
    }
    for (int k = 1; k < 3; k++) {
        DQ_EQ(at[k], len[k]);
        free(stream[k]);
    }
    capture_free(&c);
    rig_close(&r);
}

// The address that came with a packet is better than the connection's, which may be gone.
static void tcp_peer_of_the_packet_first(void) {
    rig r;
    rig_open(&r, true, 1, 4, 64);
    rig_payload(&r, DQ_PROTO_TCP, "192.0.2.9", 9000);
    rig_conns(&r, fake_conn_read);
    dq_burst *b = rig_burst(&r, 2);
    b->conn = 7;
    fill_seg(b, 0, 0, 10, 1);
    fill_seg(b, 0, 1, 10, 2);
    set_peer(b, 0, "192.0.2.1", 5000);
    set_peer(b, 1, "", 0);
    dqi_pcap_file *p = open_pcap(&r, 0);
    DQ_EQ(dqi_pcap_add(p, b, 0, 1, &tally), 0);
    DQ_EQ(dqi_pcap_add(p, b, 1, 2, &tally), 0);
    b->conn = 1;
    set_peer(b, 0, "2001:db8::77", 5000);
    DQ_EQ(dqi_pcap_add(p, b, 0, 3, &tally), 0);
    DQ_EQ(dqi_pcap_add(p, b, 1, 4, &tally), 0);
    capture c = close_pcap(&r, p);
    DQ_EQ(c.n, 4);
    DQ_EQ_STR(parse(&c.records[0]).src, "192.0.2.1:5000");
    DQ_EQ_STR(parse(&c.records[1]).src, "0.0.0.0:0");
    DQ_EQ_STR(parse(&c.records[1]).dst, "192.0.2.9:9000");
    DQ_EQ_STR(parse(&c.records[2]).src, "[2001:db8::77]:5000");
    DQ_EQ_STR(parse(&c.records[3]).src, "[2001:db8::1]:40001");
    capture_free(&c);
    dq_burst_unref(b);
    rig_close(&r);
}

static void addresses_as_text(void) {
    static const struct {
        const char *text;
        int family;
        uint16_t port;
        uint8_t last; // byte of the address
    } cases[] = {
        {"192.0.2.1:7148", AF_INET, 7148, 1},
        {"[2001:db8::5]:1", AF_INET6, 1, 5},
        {"[fe80::6%eth0]:65535", AF_INET6, 65535, 6},
        {"[::ffff:192.0.2.3]:80", AF_INET, 80, 3},
        {"host:80", 0, 80, 0},
        {"192.0.2.1", 0, 0, 0},
        {"192.0.2.1:65536", 0, 0, 0},
        {"", 0, 0, 0},
        {":", 0, 0, 0},
        {"[]:5", 0, 5, 0},
        {"192.0.2.1.192.0.2.1.192.0.2.1.192.0.2.1.192.0.2.1.192.0.2.1:5", 0, 5, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dqi_endpoint e = dqi_endpoint_parse(cases[k].text);
        DQ_EQ(e.family, cases[k].family);
        DQ_EQ(e.port, cases[k].port);
        DQ_EQ(e.family == AF_INET6 ? e.ip[15] : e.ip[3], cases[k].last);
    }
}

// ---- errors -----------------------------------------------------------------------------------------------

// A file that may not grow further: what is there is whole, what is not is counted.
static void file_too_large(void) {
    rig r;
    rig_open(&r, true, 1, 4, 2000);
    dq_burst *b = rig_burst(&r, 1);
    fill_seg(b, 0, 0, 1000, 1);
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    limit = (struct rlimit){.rlim_cur = 100000, .rlim_max = old.rlim_max};
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    dqi_pcap_file *p = open_pcap(&r, 0);
    for (int i = 0; i < 200; i++)
        DQ_EQ(dqi_pcap_add(p, b, 0, i, &tally), 0);
    DQ_EQ(dqi_buffered_file_flush(&p->file, &tally), -EFBIG);
    DQ_EQ(dqi_buffered_file_flush(&p->file, &tally), 0); // nothing waits any more
    DQ_EQ(dqi_pcap_close(p), 0);
    setrlimit(RLIMIT_FSIZE, &old);
    capture c = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(c.whole);
    DQ_EQ(c.n, (100000 - 24) / 1016);
    DQ_EQ(tally.packets, c.n);
    DQ_EQ(tally.lost, 200 - c.n);
    DQ_EQ(tally.file_bytes, c.size);
    capture_free(&c);
    dq_burst_unref(b);
    rig_close(&r);
}

static void open_errors(void) {
    rig r;
    rig_open(&r, true, 1, 4, 64);
    dqi_pcap_file first, second;
    const char *path = rig_path(&r, "t.pcap");
    DQ_EQ(dqi_pcap_open(&first, rig_path(&r, "none/t.pcap"), &plain, false, &tally), -ENOENT);
    DQ_EQ(dqi_pcap_open(&first, r.dir, &plain, false, &tally), -EISDIR);
    must(symlink("/dev/full", rig_path(&r, "full.pcap")) == 0, "symlink");
    DQ_EQ(dqi_pcap_open(&first, rig_path(&r, "full.pcap"), &plain, false, &tally), -ENOSPC);
    DQ_EQ(dqi_pcap_open(&first, path, &plain, false, &tally), 0);
    DQ_EQ(dqi_pcap_open(&second, path, &plain, false, &tally), -EWOULDBLOCK);
    capture c = capture_read(path); // not emptied by the second
    DQ_EQ(c.size, 24);
    capture_free(&c);
    DQ_EQ(dqi_pcap_close(&first), 0);
    DQ_EQ(dqi_pcap_close(&first), 0);
    rig_close(&r);
}

static void replaces_what_was_there(void) {
    rig r;
    rig_open(&r, true, 1, 4, 64);
    dq_burst *b = rig_burst(&r, 1);
    fill_seg(b, 0, 0, 60, 1);
    for (int n = 3; n > 0; n--) {
        dqi_pcap_file *p = open_pcap(&r, 0);
        for (int i = 0; i < n; i++)
            DQ_EQ(dqi_pcap_add(p, b, 0, i, &tally), 0);
        capture c = close_pcap(&r, p);
        DQ_EQ(c.n, n);
        capture_free(&c);
    }
    dq_burst_unref(b);
    rig_close(&r);
}

static void removed_file(void) {
    rig r;
    rig_open(&r, true, 1, 4, 64);
    dq_burst *b = rig_burst(&r, 1);
    dqi_pcap_file *p = open_pcap(&r, 0);
    DQ_EQ(dqi_pcap_add(p, b, 0, 1, &tally), 0);
    must(unlink(rig_path(&r, "t.pcap")) == 0, "unlink");
    DQ_EQ(dqi_buffered_file_flush(&p->file, &tally), -ENOENT);
    DQ_EQ(tally.packets, 0);
    DQ_EQ(tally.lost, 1);
    DQ_EQ(dqi_pcap_close(p), -ENOENT);
    dq_burst_unref(b);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(bytes_of_a_file);
    DQ_RUN(segments_become_one_record);
    DQ_RUN(snaplen_cuts);
    DQ_RUN(file_is_whole_at_any_time);
    DQ_RUN(udp_headers);
    DQ_RUN(udp_checksum_is_never_zero);
    DQ_RUN(payload_longer_than_a_datagram);
    DQ_RUN(tcp_streams);
    DQ_RUN(tcp_peer_of_the_packet_first);
    DQ_RUN(addresses_as_text);
    DQ_RUN(file_too_large);
    DQ_RUN(open_errors);
    DQ_RUN(replaces_what_was_there);
    DQ_RUN(removed_file);
    return dq_done();
}
