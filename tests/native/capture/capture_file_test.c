// Reading captures: both formats in both byte orders, every resolution of times, files that end or break
// anywhere.
#include "dqtest.h"

#include "capture/capture_file.h"

#define FRONT 16 // bytes that may be written in front of a file in memory

// ---- writing, in either byte order ------------------------------------------------------------------------

typedef struct file {
    bool big; // big endian
    size_t n;
    uint8_t *bytes; // behind FRONT bytes
} file;

static void file_open(file *f, bool big) {
    *f = (file){.big = big};
    f->bytes = (uint8_t *)calloc(1, 1 << 16) + FRONT;
}

static void file_close(file *f) { free(f->bytes - FRONT); }

static void put(file *f, uint64_t v, int width) {
    for (int k = 0; k < width; k++)
        f->bytes[f->n++] = (uint8_t)(v >> 8 * (f->big ? width - 1 - k : k));
}

static void put_bytes(file *f, const void *p, size_t n) {
    memcpy(f->bytes + f->n, p, n);
    f->n += n;
}

static void pcap_header(file *f, uint32_t magic, uint32_t link) {
    put(f, magic, 4);
    put(f, 2, 2);
    put(f, 4, 2);
    put(f, 0, 8);
    put(f, 65535, 4);
    put(f, link, 4);
}

static void pcap_packet(file *f, uint32_t s, uint32_t frac, const void *p, uint32_t n, uint32_t orig) {
    put(f, s, 4);
    put(f, frac, 4);
    put(f, n, 4);
    put(f, orig, 4);
    put_bytes(f, p, n);
}

// A block whose body is what `fn` left in `body`.
static void block(file *f, uint32_t type, const file *body) {
    uint32_t padded = (uint32_t)(body->n + 3) & ~3u;
    put(f, type, 4);
    put(f, padded + 12, 4);
    put_bytes(f, body->bytes, body->n);
    for (size_t k = body->n; k < padded; k++)
        put(f, 0, 1);
    put(f, padded + 12, 4);
}

static void section(file *f) {
    file b;
    file_open(&b, f->big);
    put(&b, 0x1a2b3c4d, 4);
    put(&b, 1, 2);
    put(&b, 0, 2);
    put(&b, UINT64_MAX, 8);
    block(f, 0x0a0d0d0a, &b);
    file_close(&b);
}

// An interface; resolution 0xff and offset 0: none given.
static void interface(file *f, uint32_t link, uint32_t snaplen, uint8_t resolution, int64_t offset) {
    file b;
    file_open(&b, f->big);
    put(&b, link, 2);
    put(&b, 0, 2);
    put(&b, snaplen, 4);
    put(&b, 2, 2); // its name: an option that isn't ours, padded
    put(&b, 3, 2);
    put_bytes(&b, "eth\0", 4);
    if (resolution != 0xff) {
        put(&b, 9, 2);
        put(&b, 1, 2);
        put_bytes(&b, (uint8_t[]){resolution, 0, 0, 0}, 4);
    }
    if (offset != 0) {
        put(&b, 14, 2);
        put(&b, 8, 2);
        put(&b, (uint64_t)offset, 8);
    }
    put(&b, 0, 4);
    block(f, 1, &b);
    file_close(&b);
}

static void enhanced(file *f, uint32_t type, uint32_t iface, uint64_t ticks, const void *p, uint32_t n) {
    file b;
    file_open(&b, f->big);
    if (type == 2) {
        put(&b, iface, 2); // and drops
        put(&b, 7, 2);
    } else {
        put(&b, iface, 4);
    }
    put(&b, ticks >> 32, 4);
    put(&b, ticks & UINT32_MAX, 4);
    put(&b, n, 4);
    put(&b, n + 5, 4);
    put_bytes(&b, p, n);
    block(f, type, &b);
    file_close(&b);
}

static void simple(file *f, uint32_t orig, const void *p, uint32_t n) {
    file b;
    file_open(&b, f->big);
    put(&b, orig, 4);
    put_bytes(&b, p, n);
    block(f, 3, &b);
    file_close(&b);
}

// ---- reading ----------------------------------------------------------------------------------------------

typedef struct seen {
    uint32_t n;
    dqi_capture_packet p[8];
    int how; // it ended
    char why[160];
} seen;

// Reads the first n bytes from a buffer that ends there, all in memory.
static seen read_all(const uint8_t *bytes, size_t n) {
    static uint8_t kept[8][64];
    uint8_t *mem = malloc(FRONT + n), *p = mem + FRONT;
    dqi_capture c = {0};
    seen s = {.how = DQI_CAPTURE_MORE};
    memcpy(p, bytes, n);
    for (size_t at = 0, steps = 0; at < n; steps++) {
        dqi_capture_packet k;
        size_t used = 0;
        s.how = dqi_capture_next(&c, p + at, n - at, &k, &used);
        if (s.how == DQI_CAPTURE_MORE) DQ_CHECK(used > n - at);
        if (s.how == DQI_CAPTURE_MORE || s.how == DQI_CAPTURE_BAD) break;
        DQ_CHECK(used >= 4 && steps < n);
        if (s.how == DQI_CAPTURE_PACKET) {
            DQ_CHECK(used <= n - at && k.data >= p + at && k.data + k.len <= p + at + used);
            uint8_t sum = 0; // the sanitizers see what isn't there
            for (uint32_t i = 0; i < k.len; i++)
                sum ^= k.data[i];
            if (dqi_capture_frame(&k)) sum ^= k.len ? k.data[k.len - 1] ^ k.data[0] : sum;
            *(volatile uint8_t *)&kept[0][63] = sum;
            if (s.n < 8) {
                memcpy(kept[s.n], k.data, k.len < 64 ? k.len : 64);
                s.p[s.n] = k;
                s.p[s.n].data = kept[s.n];
            }
            s.n++;
        }
        at = used > n - at ? n : at + used;
    }
    snprintf(s.why, sizeof s.why, "%s", c.why);
    dqi_capture_reset(&c);
    free(mem);
    return s;
}

static const char frame[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

static void pcap_in_both_orders(void) {
    for (int k = 0; k < 4; k++) {
        bool ns = k & 1;
        file f;
        file_open(&f, k & 2);
        pcap_header(&f, ns ? 0xa1b23c4d : 0xa1b2c3d4, 1 | 5u << 28); // with the length of its FCS
        pcap_packet(&f, 1700000000, 123456, frame, 20, 20);
        pcap_packet(&f, 4000000000u, 999999, frame, 5, 1500);
        seen s = read_all(f.bytes, f.n);
        DQ_EQ(s.n, 2);
        DQ_EQ(s.p[0].ts, 1700000000000000000 + 123456 * (ns ? 1 : 1000));
        DQ_EQ(s.p[1].ts, 4000000000000000000 + 999999 * (ns ? 1 : 1000));
        DQ_EQ(s.p[0].len, 20);
        DQ_EQ(s.p[1].len, 5);
        DQ_EQ(s.p[1].orig, 1500);
        DQ_EQ_BYTES(s.p[0].data, frame, 20);
        file_close(&f);
    }
}

static void blocks_of_every_kind(void) {
    for (int big = 0; big < 2; big++) {
        file f, extra = {0};
        file_open(&f, big);
        file_open(&extra, big);
        put_bytes(&extra, frame, 10);
        section(&f);
        interface(&f, 1, 0, 0xff, 0); // µs
        block(&f, 0x0bad, &extra);
        enhanced(&f, 6, 0, 1700000000000001, frame, 7);
        interface(&f, 1, 4, 9, 0);
        enhanced(&f, 2, 1, 1700000000000000002, frame, 9);
        simple(&f, 6, frame, 6);
        f.big = extra.big = !big;
        section(&f); // of the other byte order, with interfaces of its own
        interface(&f, 1, 4, 6, 0);
        simple(&f, 1000, frame, 4); // the interface's snaplen
        seen s = read_all(f.bytes, f.n);
        DQ_EQ_STR(s.why, "");
        DQ_EQ(s.n, 4);
        DQ_EQ(s.p[0].ts, 1700000000000001000);
        DQ_EQ(s.p[0].orig, 12);
        DQ_EQ(s.p[1].ts, 1700000000000000002);
        DQ_EQ(s.p[1].dropped, 7);
        DQ_EQ(s.p[0].dropped, 0);
        DQ_EQ(s.p[2].ts, DQ_NO_TIME);
        DQ_EQ(s.p[2].len, 6);
        DQ_EQ(s.p[3].ts, DQ_NO_TIME);
        DQ_EQ(s.p[3].len, 4);
        DQ_EQ(s.p[3].orig, 1000);
        for (int k = 0; k < 4; k++)
            DQ_EQ_BYTES(s.p[k].data, frame, s.p[k].len);
        file_close(&extra);
        file_close(&f);
    }
}

static void times_of_any_resolution(void) {
    static const struct {
        uint8_t resolution;
        int64_t offset;
        uint64_t ticks;
        int64_t want;
    } cases[] = {
        {0, 0, 17, 17000000000},
        {3, 0, 1700000000123, 1700000000123000000},
        {6, 0, 1700000000123456, 1700000000123456000},
        {9, 0, 1700000000123456789, 1700000000123456789},
        {12, 0, 1234567890123456789, 1234567890123456},
        {19, 0, UINT64_MAX, 1844674407},
        {100, 0, UINT64_MAX, 0},
        {0x80, 0, 17, 17000000000},
        {0x80 | 10, 0, 1024 * 17 + 512, 17500000000},
        {0x80 | 32, 0, (UINT64_C(17) << 32) + (1u << 31), 17500000000},
        {0x80 | 63, 0, UINT64_C(3) << 62, 1500000000},
        {0x80 | 126, 0, UINT64_MAX, 0},
        {9, 1700000000, 5, 1700000000000000005},
        {9, -10, 10000000007, 7},
        {0, 0, UINT64_MAX, INT64_MAX}, // past what 64 bits hold
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        file f;
        file_open(&f, k & 1);
        section(&f);
        interface(&f, 1, 0, cases[k].resolution, cases[k].offset);
        enhanced(&f, 6, 0, cases[k].ticks, frame, 4);
        seen s = read_all(f.bytes, f.n);
        DQ_EQ(s.n, 1);
        DQ_EQ(s.p[0].ts, cases[k].want);
        file_close(&f);
    }
}

// ---- what isn't whole -------------------------------------------------------------------------------------

static void good_pcap(file *f, bool big, bool ns) {
    file_open(f, big);
    pcap_header(f, ns ? 0xa1b23c4d : 0xa1b2c3d4, 1);
    pcap_packet(f, 1, 2, frame, 20, 20);
    pcap_packet(f, 1, 3, frame, 26, 26);
}

static void good_pcapng(file *f, bool big) {
    file_open(f, big);
    section(f);
    interface(f, 1, 0, 9, 0);
    interface(f, 101, 0, 9, 3);
    simple(f, 20, frame, 20);
    enhanced(f, 2, 1, 5, frame, 21);
    enhanced(f, 6, 1, 5, frame, 26);
}

static void cut_anywhere(void) {
    for (int form = 0; form < 4; form++) {
        file f;
        good_pcap(&f, form & 1, form & 2);
        for (size_t n = 24; n < f.n; n++) {
            seen s = read_all(f.bytes, n);
            DQ_EQ(s.n, n >= 60);
            DQ_EQ(s.how, n == 60 ? DQI_CAPTURE_PACKET : n == 24 ? DQI_CAPTURE_OTHER : DQI_CAPTURE_MORE);
        }
        file_close(&f);
    }
    for (int big = 0; big < 2; big++) {
        file f;
        good_pcapng(&f, big);
        uint32_t whole = 0;
        for (size_t n = 1; n <= f.n; n++) {
            seen s = read_all(f.bytes, n);
            DQ_CHECK(s.how != DQI_CAPTURE_BAD && s.n >= whole && s.n <= whole + 1);
            whole = s.n;
        }
        DQ_EQ(whole, 3);
        file_close(&f);
    }
}

// Every length of a block and of an option, too short, too long, and as long as can be: what is read stays
// inside.
static void wrong_lengths(void) {
    static const uint32_t lengths[] = {0,  1,  4,  8,       11,         12,         13,         16,
                                       20, 24, 28, 1 << 20, UINT16_MAX, 0x7ffffffc, 0xfffffffc, UINT32_MAX};
    for (int big = 0; big < 2; big++) {
        file f;
        good_pcapng(&f, big);
        for (size_t at = 0; at + 4 <= f.n; at += 2) {
            uint8_t was[4];
            memcpy(was, f.bytes + at, 4);
            for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
                size_t n = f.n;
                f.n = at;
                put(&f, lengths[k], 4);
                f.n = n;
                seen s = read_all(f.bytes, f.n);
                DQ_CHECK(s.n <= 3 && (s.how == DQI_CAPTURE_BAD) == (s.why[0] != 0));
            }
            memcpy(f.bytes + at, was, 4);
        }
        DQ_EQ(read_all(f.bytes, f.n).n, 3);
        file_close(&f);
    }
}

// Bytes that are changed at random: whatever is read stays inside, and reading ends (read_all sees to it).
static void damaged_anywhere(void) {
    uint64_t seed = 42;
    for (int round = 0; round < 20000; round++) {
        file f;
        bool big = round & 2;
        if (round & 1)
            good_pcap(&f, big, round & 4);
        else
            good_pcapng(&f, big);
        for (int k = 0; k < 1 + round % 5; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            f.bytes[(seed >> 33) % f.n] = (uint8_t)(seed >> (seed >> 62 ? 20 : 60));
        }
        read_all(f.bytes, f.n - round % 7);
        file_close(&f);
    }
}

static void said_what_is_wrong(void) {
    static const struct {
        const char *bytes, *want;
    } files[] = {
        {"\x1f\x8b\x08\x00", "it is compressed: unpack it first (gunzip)"},
        {"\x28\xb5\x2f\xfd", "it is compressed: unpack it first (unzstd)"},
        {"hello, world", "neither pcap nor pcapng: it begins with 68 65 6c 6c"},
        {"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00----", "a section without its byte order"},
    };
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        seen s = read_all((const uint8_t *)files[k].bytes, k == 3 ? 12 : 4);
        DQ_EQ(s.how, DQI_CAPTURE_BAD);
        DQ_EQ_STR(s.why, files[k].want);
    }
    file f;
    file_open(&f, false);
    pcap_header(&f, 0xa1b23c4d, 1);
    pcap_packet(&f, 1, 2, frame, 0, 0);
    memset(f.bytes + 24 + 8, 0xff, 4);
    DQ_EQ_STR(read_all(f.bytes, f.n).why, "a packet of 4294967295 bytes");
    f.n = 0;
    section(&f);
    enhanced(&f, 6, 0, 0, frame, 4);
    DQ_EQ_STR(read_all(f.bytes, f.n).why, "a packet of interface 0, and the section has 0 so far");
    f.n = 0;
    section(&f);
    f.bytes[f.n - 4] = 32;
    DQ_EQ_STR(read_all(f.bytes, f.n).why, "a block of 28 bytes that ends as one of 32");
    file_close(&f);
}

// ---- other links ------------------------------------------------------------------------------------------

static void frames_of_other_links(void) {
    static const uint8_t sll[] = {0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 0x08, 0x00, 0x45, 1};
    static const uint8_t llc[] = {0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 0, 4, 0x42, 0x42, 3};
    static const uint8_t novell[] = {0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0xff, 0xff};
    static const uint8_t can[] = {0, 1, 1, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 1, 2};
    static const uint8_t canfd[] = {0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 0, 13, 1, 2};
    static const uint8_t netlink[] = {0, 4, 3, 56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 1, 2};
    static const uint8_t radiotap[] = {0, 0, 3, 35, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0, 1, 2};
    static const uint8_t llc2[] = {0, 4, 0, 0,    0, 0, 0, 1, 0,    1,    0, 6,
                                   2, 0, 0, 0x11, 0, 3, 0, 0, 0xaa, 0xaa, 3};
    static const uint8_t netlink2[] = {8, 0, 0, 0, 0, 0, 0, 1, 3, 56, 0, 6, 2, 0, 0, 0x11, 0, 3, 0, 0, 1, 2};
    static const uint8_t sll2[] = {0x86, 0xdd, 0, 0, 0,    0, 0, 1, 0, 1,    0,
                                   6,    2,    0, 0, 0x11, 0, 3, 0, 0, 0x60, 7};
    static const struct {
        uint32_t link;
        const void *in;
        uint32_t n, want_n;
        const char *want;
    } cases[] = {
        {1, "ethernet", 8, 8, "ethernet"},
        {101, "\x45g", 2, 16, "\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45g"},
        {228, "\x45g", 2, 16, "\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45g"},
        {229, "\x60g", 2, 16, "\0\0\0\0\0\0\0\0\0\0\0\0\x86\xdd\x60g"},
        {113, sll, sizeof sll, 16, "\0\0\0\0\0\0\x02\0\0\0\0\x09\x08\0\x45\x01"},
        {276, sll2, sizeof sll2, 16, "\0\0\0\0\0\0\x02\0\0\x11\0\x03\x86\xdd\x60\x07"},
        {113, llc, sizeof llc, 17, "\0\0\0\0\0\0\x02\0\0\0\0\x09\0\x03\x42\x42\x03"},
        {113, novell, sizeof novell, 16, "\0\0\0\0\0\0\x02\0\0\0\0\x09\0\x02\xff\xff"},
        {276, llc2, sizeof llc2, 17, "\0\0\0\0\0\0\x02\0\0\x11\0\x03\0\x03\xaa\xaa\x03"},
        {113, can, sizeof can, 0, NULL},
        {113, canfd, sizeof canfd, 0, NULL},
        {113, netlink, sizeof netlink, 0, NULL},
        {113, radiotap, sizeof radiotap, 0, NULL},
        {276, netlink2, sizeof netlink2, 0, NULL},
        {0, "\x02\0\0\0\x45g", 6, 16, "\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45g"},
        {0, "\0\0\0\x1e\x60g", 6, 16, "\0\0\0\0\0\0\0\0\0\0\0\0\x86\xdd\x60g"},
        {108, "\0\0\0\x18\x60g", 6, 16, "\0\0\0\0\0\0\0\0\0\0\0\0\x86\xdd\x60g"},
        {0, "\x07\0\0\0\x45g", 6, 0, NULL}, // another family
        {0, "\x02\0\0", 3, 0, NULL},
        {101, "\x35g", 2, 0, NULL}, // neither IPv4 nor IPv6
        {101, "", 0, 0, NULL},
        {113, sll, 15, 0, NULL},
        {276, sll2, 19, 0, NULL},
        {105, sll, 15, 0, NULL}, // 802.11
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t mem[64] = {0};
        memcpy(mem + FRONT, cases[k].in, cases[k].n);
        dqi_capture_packet p = {
            .data = mem + FRONT, .len = cases[k].n, .orig = cases[k].n, .link = cases[k].link};
        DQ_EQ(dqi_capture_frame(&p), cases[k].want != NULL);
        if (!cases[k].want) continue;
        DQ_EQ(p.len, cases[k].want_n);
        DQ_EQ(p.orig, cases[k].want_n);
        DQ_EQ_BYTES(p.data, cases[k].want, p.len);
    }
    DQ_CHECK(dqi_capture_link_known(276) && dqi_capture_link_known(0) && !dqi_capture_link_known(105));
    DQ_EQ_STR(dqi_capture_link_name(105), "802.11");
    DQ_EQ_STR(dqi_capture_link_name(4711), "link type");
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(pcap_in_both_orders);
    DQ_RUN(blocks_of_every_kind);
    DQ_RUN(times_of_any_resolution);
    DQ_RUN(cut_anywhere);
    DQ_RUN(wrong_lengths);
    DQ_RUN(damaged_anywhere);
    DQ_RUN(said_what_is_wrong);
    DQ_RUN(frames_of_other_links);
    return dq_done();
}
