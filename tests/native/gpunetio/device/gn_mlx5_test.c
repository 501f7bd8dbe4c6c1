// gn_mlx5_test.c: entries of work queues in the format of an mlx5 NIC: what each becomes, the syndrome of
// each error, completion entries, and hostile entries. Layouts are given by offsets, as the reference manual
// has them; gn_mlx5_abi_test.c compares them with rdma-core's header.
#include "dqtest.h"

#include "gpunetio/device/gn_mlx5.h"

enum { OWN, READ_ONLY, NO_ATOMICS, REMOTE, REMOTE_READ, REGIONS };
enum { LOG2 = 3, ENTRIES = 1 << LOG2, QUEUE = 5, BYTES = 4096 };

static const gn_u32 rights[REGIONS] = {GN_READ | GN_WRITE, GN_READ, GN_REMOTE | GN_READ | GN_WRITE,
                                       GN_REMOTE | GN_READ | GN_WRITE | GN_ADD, GN_REMOTE | GN_READ};

// A queue, and memory of its own for each region.
typedef struct bench {
    gn_u8 *memory[REGIONS];
    gn_region rows[REGIONS];
    gn_given given;
    gn_u64 *entries;
    gn_u32 record;
    gn_mlx5_queue q;
} bench;

static void open_bench(bench *b) {
    memset(b, 0, sizeof *b);
    for (int k = 0; k < REGIONS; k++) {
        b->memory[k] = calloc(1, BYTES);
        b->rows[k] = (gn_region){(uintptr_t)b->memory[k], BYTES, 0, rights[k], 0};
    }
    b->given = (gn_given){b->rows, REGIONS, ~(1u << GN_OP_FILE), 1500};
    b->entries = calloc(ENTRIES, GN_MLX5_ENTRY);
    b->q = (gn_mlx5_queue){.completions = malloc(ENTRIES * GN_MLX5_ENTRY),
                           .record = &b->record,
                           .rows = b->rows,
                           .of = calloc(ENTRIES, sizeof(gn_mlx5_pending)),
                           .number = QUEUE,
                           .log2 = LOG2};
    memset(b->q.completions, 0xff, ENTRIES * GN_MLX5_ENTRY);
}

static void close_bench(bench *b) {
    for (int k = 0; k < REGIONS; k++)
        free(b->memory[k]);
    free(b->entries);
    free(b->q.completions);
    free(b->q.of);
}

// ---- entries and completion entries -----------------------------------------------------------------------

static void put_be(gn_u8 *b, int bytes, uint64_t v) {
    for (int k = bytes; k-- > 0; v >>= 8)
        b[k] = (gn_u8)v;
}

static uint64_t get_be(const gn_u8 *b, int bytes) {
    uint64_t v = 0;
    for (int k = 0; k < bytes; k++)
        v = v << 8 | b[k];
    return v;
}

static gn_u8 *entry_of(bench *b, uint64_t index) {
    return (gn_u8 *)b->entries + index % ENTRIES * GN_MLX5_ENTRY;
}

// Begins an entry with a control segment that requests a completion entry.
static gn_u8 *control(bench *b, uint64_t index, uint32_t opcode, uint32_t segments) {
    gn_u8 *e = entry_of(b, index);
    memset(e, 0, GN_MLX5_ENTRY);
    put_be(e, 4, (index & 0xffff) << 8 | opcode);
    put_be(e + 4, 4, QUEUE << 8 | segments);
    e[11] = GN_MLX5_SIGNALED;
    return e;
}

static void remote(bench *b, gn_u8 *e, uint32_t region, uint64_t offset) {
    put_be(e + 16, 8, (uintptr_t)b->memory[region] + offset);
    put_be(e + 24, 4, region);
}

static void data(bench *b, gn_u8 *segment, uint32_t region, uint64_t offset, uint32_t bytes) {
    put_be(segment, 4, bytes);
    put_be(segment + 4, 4, region);
    put_be(segment + 8, 8, (uintptr_t)b->memory[region] + offset);
}

static int take(bench *b, uint64_t index, gn_desc *d) {
    return gn_mlx5_take(&b->q, b->entries, index, &b->given, d);
}

typedef struct completion {
    uint32_t kind, owner, index, opcode, queue, bytes, syndrome, fault;
} completion;

static completion completion_of(const bench *b, uint64_t k) {
    const gn_u8 *c = b->q.completions + k % ENTRIES * GN_MLX5_ENTRY;
    return (completion){c[63] >> 4,
                        c[63] & 1,
                        (uint32_t)get_be(c + 60, 2),
                        c[56],
                        (uint32_t)get_be(c + 57, 3),
                        (uint32_t)get_be(c + 44, 4),
                        c[55],
                        c[54]};
}

// ---- what each entry becomes ------------------------------------------------------------------------------

static gn_desc decoded(bench *b, uint64_t index) {
    gn_desc d;
    DQ_EQ(take(b, index, &d), GN_FAULT_NONE);
    return d;
}

static void writes(void) {
    bench b;
    open_bench(&b);
    gn_u8 *e = control(&b, 0, GN_MLX5_WRITE, 4);
    remote(&b, e, REMOTE, 100);
    data(&b, e + 32, OWN, 7, 1000);
    data(&b, e + 48, READ_ONLY, 9, 24);
    gn_desc d = decoded(&b, 0);
    DQ_EQ(d.op, GN_OP_PUT);
    DQ_EQ(d.flags, GN_SPLIT);
    DQ_EQ(d.to, gn_place(REMOTE, 100));
    DQ_EQ(d.from, gn_place(OWN, 7));
    DQ_EQ(d.bytes, 1000);
    DQ_EQ(d.from2, gn_place(READ_ONLY, 9));
    DQ_EQ(d.bytes2, 24);

    e = control(&b, 1, GN_MLX5_WRITE, 4); // inline: bytes from 36 on
    remote(&b, e, REMOTE, 5);
    put_be(e + 32, 4, GN_MLX5_INLINE | 28);
    for (int k = 0; k < 28; k++)
        e[36 + k] = (gn_u8)(k + 1);
    d = decoded(&b, 1);
    DQ_EQ(d.flags, GN_INLINE);
    DQ_EQ(d.bytes, 28);
    DQ_EQ(d.to, gn_place(REMOTE, 5));
    for (int k = 0; k < 28; k++)
        DQ_EQ(d.data[k], k + 1);

    e = control(&b, 2, GN_MLX5_WRITE, 2); // without data
    remote(&b, e, REMOTE, 5);
    DQ_EQ(decoded(&b, 2).op, GN_OP_NOP);
    close_bench(&b);
}

static void reads_and_sends(void) {
    bench b;
    open_bench(&b);
    gn_u8 *e = control(&b, 0, GN_MLX5_READ, 3);
    remote(&b, e, REMOTE_READ, 64);
    data(&b, e + 32, OWN, 128, 256);
    gn_desc d = decoded(&b, 0);
    DQ_EQ(d.op, GN_OP_GET);
    DQ_EQ(d.to, gn_place(REMOTE_READ, 64));
    DQ_EQ(d.from, gn_place(OWN, 128));
    DQ_EQ(d.bytes, 256);
    e = control(&b, 1, GN_MLX5_SEND, 3);
    data(&b, e + 16, READ_ONLY, 1, 60);
    data(&b, e + 32, OWN, 2, 70);
    d = decoded(&b, 1);
    DQ_EQ(d.op, GN_OP_SEND);
    DQ_EQ(d.from, gn_place(READ_ONLY, 1));
    DQ_EQ(d.bytes, 60);
    DQ_EQ(d.from2, gn_place(OWN, 2));
    DQ_EQ(d.bytes2, 70);
    DQ_EQ(d.time, 0);
    control(&b, 2, GN_MLX5_NOP, 1);
    DQ_EQ(decoded(&b, 2).op, GN_OP_NOP);
    e = control(&b, 3, GN_MLX5_DUMP, 2);
    data(&b, e + 16, OWN, 0, 4);
    DQ_EQ(decoded(&b, 3).op, GN_OP_NOP);
    close_bench(&b);
}

// The immediate value of the control segment goes with a write or a send, which may then have no bytes.
static void immediates(void) {
    bench b;
    open_bench(&b);
    gn_u8 *e = control(&b, 0, GN_MLX5_WRITE_IMM, 3);
    put_be(e + 12, 4, 0x12345678);
    remote(&b, e, REMOTE, 100);
    data(&b, e + 32, OWN, 7, 24);
    gn_desc d = decoded(&b, 0);
    DQ_EQ(d.op, GN_OP_PUT);
    DQ_EQ(d.flags, GN_IMM);
    DQ_EQ(d.imm, 0x12345678);
    DQ_EQ(d.from, gn_place(OWN, 7));
    DQ_EQ(d.to, gn_place(REMOTE, 100));
    e = control(&b, 1, GN_MLX5_WRITE_IMM, 2);
    put_be(e + 12, 4, 0xfffffffe);
    remote(&b, e, REMOTE, 8);
    d = decoded(&b, 1);
    DQ_EQ(d.flags, GN_IMM | GN_INLINE);
    DQ_EQ(d.imm, 0xfffffffe);
    DQ_EQ(d.bytes, 0);
    e = control(&b, 2, GN_MLX5_SEND_IMM, 3);
    put_be(e + 12, 4, 9);
    data(&b, e + 16, READ_ONLY, 1, 60);
    data(&b, e + 32, OWN, 2, 70);
    d = decoded(&b, 2);
    DQ_EQ(d.op, GN_OP_SEND);
    DQ_EQ(d.flags, GN_IMM | GN_SPLIT);
    DQ_EQ(d.imm, 9);
    e = control(&b, 3, GN_MLX5_SEND_IMM, 1);
    put_be(e + 12, 4, 10);
    d = decoded(&b, 3);
    DQ_EQ(d.flags, GN_IMM);
    DQ_EQ(d.imm, 10);
    DQ_EQ(d.bytes, 0);
    e = control(&b, 4, GN_MLX5_WRITE_IMM, 2);
    remote(&b, e, REMOTE_READ, 8);
    DQ_EQ(take(&b, 4, &d), GN_FAULT_RIGHTS);
    close_bench(&b);
}

static gn_u8 *atomic(bench *b, uint64_t index, uint32_t opcode, uint64_t operand, uint64_t compare) {
    gn_u8 *e = control(b, index, opcode, 4);
    remote(b, e, REMOTE, 8);
    put_be(e + 32, 8, operand);
    put_be(e + 40, 8, compare);
    data(b, e + 48, OWN, 16, 8);
    return e;
}

static void atomics(void) {
    bench b;
    open_bench(&b);
    atomic(&b, 0, GN_MLX5_FETCH_ADD, 0x8000000000000003, 0);
    gn_desc d = decoded(&b, 0);
    DQ_EQ(d.op, GN_OP_ADD);
    DQ_EQ(d.signal, gn_place(REMOTE, 8));
    DQ_EQ(d.operand, 0x8000000000000003);
    DQ_EQ(d.result, gn_place(OWN, 16));
    atomic(&b, 1, GN_MLX5_COMPARE_SWAP, 12, 0x8000000000000004);
    d = decoded(&b, 1);
    DQ_EQ(d.op, GN_OP_CAS);
    DQ_EQ(d.operand, 12);
    DQ_EQ(d.compare, 0x8000000000000004);
    DQ_EQ(d.result, gn_place(OWN, 16));
    close_bench(&b);
}

// Keys are numbers of regions in either byte order, or the one of all regions; addresses begin at the
// region's address or at 0.
static void keys(void) {
    bench b;
    open_bench(&b);
    for (int k = 0; k < 3; k++) {
        gn_u8 *e = control(&b, (uint64_t)k, GN_MLX5_WRITE, 3);
        remote(&b, e, REMOTE, 100);
        data(&b, e + 32, READ_ONLY, 8, 16);
        if (k == 0) put_be(e + 24, 4, (uint32_t)REMOTE << 24), put_be(e + 36, 4, (uint32_t)READ_ONLY << 24);
        if (k == 1) put_be(e + 24, 4, 0xffffffff), put_be(e + 36, 4, 0xffffffff);
        if (k == 2) put_be(e + 16, 8, 100), put_be(e + 40, 8, 8);
        gn_desc d = decoded(&b, (uint64_t)k);
        DQ_EQ(d.to, gn_place(REMOTE, 100));
        DQ_EQ(d.from, gn_place(READ_ONLY, 8));
    }
    close_bench(&b);
}

// ---- errors -----------------------------------------------------------------------------------------------

static uint64_t at(const bench *b, uint32_t region, uint64_t offset) {
    return (uintptr_t)b->memory[region] + offset;
}

// A valid write or atomic operation, with bytes replaced: the first entry in error.
typedef struct wrong {
    uint32_t opcode, where, bytes;
    uint64_t value;
    uint32_t syndrome;
} wrong;

static void check_wrong(const wrong *w) {
    bench b;
    gn_desc d;
    open_bench(&b);
    bool is_atomic = w->opcode == GN_MLX5_FETCH_ADD || w->opcode == GN_MLX5_COMPARE_SWAP;
    gn_u8 *e = is_atomic ? atomic(&b, 0, w->opcode, 1, 2) : control(&b, 0, w->opcode, 3);
    if (!is_atomic) remote(&b, e, REMOTE, 100), data(&b, e + 32, OWN, 0, 16);
    uint64_t was = get_be(e + w->where, (int)w->bytes);
    put_be(e + w->where, (int)w->bytes, w->bytes == 8 ? was + w->value : w->value);
    DQ_CHECK(take(&b, 0, &d) != GN_FAULT_NONE);
    gn_mlx5_complete(&b.q, 1);
    completion c = completion_of(&b, 0);
    if (c.syndrome != w->syndrome) fprintf(stderr, "opcode %u, byte %u:\n", w->opcode, w->where);
    DQ_EQ(c.syndrome, w->syndrome);
    DQ_EQ(c.kind, GN_MLX5_ERROR);
    DQ_EQ(c.queue, QUEUE);
    close_bench(&b);
}

static void each_error(void) {
    static const wrong list[] = {
        {GN_MLX5_WRITE, 3, 1, 12, GN_MLX5_LOCAL_OPERATION},                // an opcode it lacks
        {GN_MLX5_WRITE, 3, 1, 0x25, GN_MLX5_LOCAL_OPERATION},              // registers memory
        {GN_MLX5_WRITE, 3, 1, 0x15, GN_MLX5_LOCAL_OPERATION},              // masked
        {GN_MLX5_WRITE, 0, 1, 1, GN_MLX5_LOCAL_OPERATION},                 // a modifier
        {GN_MLX5_WRITE, 2, 1, ENTRIES, GN_MLX5_LOCAL_OPERATION},           // index of another pass
        {GN_MLX5_WRITE, 6, 1, QUEUE + 1, GN_MLX5_LOCAL_OPERATION},         // another queue
        {GN_MLX5_WRITE, 7, 1, 0, GN_MLX5_LOCAL_LENGTH},                    // no segment,
        {GN_MLX5_WRITE, 7, 1, 1, GN_MLX5_LOCAL_LENGTH},                    // no remote address,
        {GN_MLX5_WRITE, 7, 1, 5, GN_MLX5_LOCAL_LENGTH},                    // more than an entry has
        {GN_MLX5_WRITE, 16, 8, BYTES, GN_MLX5_REMOTE_ACCESS},              // past the peer's region,
        {GN_MLX5_WRITE, 16, 8, 1ull << 48, GN_MLX5_REMOTE_ACCESS},         // beyond all places
        {GN_MLX5_WRITE, 24, 4, REMOTE_READ, GN_MLX5_REMOTE_ACCESS},        // not to be written,
        {GN_MLX5_WRITE, 24, 4, OWN, GN_MLX5_REMOTE_ACCESS},                // the kernel's own
        {GN_MLX5_WRITE, 24, 4, 77, GN_MLX5_REMOTE_ACCESS},                 // of no region
        {GN_MLX5_WRITE, 32, 4, 0, GN_MLX5_LOCAL_LENGTH},                   // 2 GiB on hardware
        {GN_MLX5_WRITE, 32, 4, BYTES + 1, GN_MLX5_LOCAL_PROTECTION},       // past the region
        {GN_MLX5_WRITE, 32, 4, GN_MLX5_INLINE | 13, GN_MLX5_LOCAL_LENGTH}, // past the last segment
        {GN_MLX5_WRITE, 36, 4, REMOTE, GN_MLX5_LOCAL_PROTECTION},
        {GN_MLX5_WRITE, 40, 8, 1ull << 48, GN_MLX5_LOCAL_PROTECTION},
        {GN_MLX5_READ, 36, 4, READ_ONLY, GN_MLX5_LOCAL_PROTECTION},
        {GN_MLX5_READ, 32, 4, GN_MLX5_INLINE | 4, GN_MLX5_LOCAL_OPERATION},
        {GN_MLX5_FETCH_ADD, 16, 8, 1, GN_MLX5_REMOTE_REQUEST}, // not a multiple of 8
        {GN_MLX5_FETCH_ADD, 56, 8, 1, GN_MLX5_LOCAL_OPERATION},
        {GN_MLX5_FETCH_ADD, 24, 4, NO_ATOMICS, GN_MLX5_REMOTE_ACCESS},
        {GN_MLX5_COMPARE_SWAP, 24, 4, REMOTE_READ, GN_MLX5_REMOTE_ACCESS},
        {GN_MLX5_COMPARE_SWAP, 52, 4, READ_ONLY, GN_MLX5_LOCAL_PROTECTION},
        {GN_MLX5_COMPARE_SWAP, 48, 4, 4, GN_MLX5_LOCAL_LENGTH},
        {GN_MLX5_COMPARE_SWAP, 7, 1, 3, GN_MLX5_LOCAL_LENGTH},
    };
    for (uint32_t k = 0; k < sizeof list / sizeof *list; k++)
        check_wrong(&list[k]);
}

// ---- the queue --------------------------------------------------------------------------------------------

// Owner bits flip with each pass, of completion entries: those of entries that request none are not counted.
static void completions(void) {
    bench b;
    gn_desc d;
    open_bench(&b);
    DQ_EQ(completion_of(&b, 0).kind, 15);
    uint64_t written = 0;
    for (uint64_t k = 0; k < 70000; k++) {
        gn_u8 *e = atomic(&b, k, GN_MLX5_FETCH_ADD, 1, 0);
        bool wants = k % 3 != 1;
        e[11] = (gn_u8)(wants ? GN_MLX5_SIGNALED : 0x60);
        DQ_EQ(take(&b, k, &d), GN_FAULT_NONE);
        gn_mlx5_complete(&b.q, k + 1);
        if (!wants) continue;
        completion c = completion_of(&b, written);
        DQ_EQ(c.kind, GN_MLX5_DONE);
        DQ_EQ(c.owner, written / ENTRIES % 2);
        DQ_EQ(c.index, k & 0xffff);
        DQ_EQ(c.opcode, GN_MLX5_FETCH_ADD);
        DQ_EQ(c.bytes, 8);
        written++;
    }
    DQ_EQ(b.q.written, written);
    close_bench(&b);
}

// After the first error nothing is executed, and each entry gets a completion entry in error. Accepted ones
// complete as they are.
static void stops(void) {
    bench b;
    gn_desc d;
    open_bench(&b);
    for (uint64_t k = 0; k < 6; k++) {
        gn_u8 *e = control(&b, k, k == 2 ? 0x7f : GN_MLX5_NOP, 1);
        e[11] = 0;
        int fault = take(&b, k, &d);
        DQ_EQ(fault, k < 2 ? GN_FAULT_NONE : k == 2 ? GN_FAULT_OP : GN_FAULT_FLUSHED);
        DQ_EQ(d.op, GN_OP_NOP);
    }
    gn_mlx5_fail(&b.q, 1, GN_FAULT_FAILED); // by the engine, later
    for (uint64_t k = 0; k < 6; k++)
        gn_mlx5_complete(&b.q, k + 1);
    static const uint32_t syndromes[] = {GN_MLX5_REMOTE_OPERATION, GN_MLX5_LOCAL_OPERATION, GN_MLX5_FLUSHED,
                                         GN_MLX5_FLUSHED, GN_MLX5_FLUSHED};
    DQ_EQ(b.q.written, 5);
    for (uint32_t k = 0; k < 5; k++) {
        completion c = completion_of(&b, k);
        DQ_EQ(c.kind, GN_MLX5_ERROR);
        DQ_EQ(c.index, k + 1);
        DQ_EQ(c.syndrome, syndromes[k]);
    }
    DQ_EQ(completion_of(&b, 0).fault, GN_FAULT_FAILED);
    close_bench(&b);
}

// The doorbell record holds the low 16 bits of the index after the last entry, big endian.
static void doorbell(void) {
    bench b;
    open_bench(&b);
    b.q.first = 1001;
    DQ_CHECK(!gn_mlx5_is_posted(&b.q, 1001));
    put_be((gn_u8 *)&b.record, 4, 2);
    DQ_CHECK(gn_mlx5_is_posted(&b.q, 1001));
    DQ_CHECK(gn_mlx5_is_posted(&b.q, 1002));
    DQ_CHECK(!gn_mlx5_is_posted(&b.q, 1003));
    DQ_CHECK(gn_mlx5_is_posted(&b.q, 1001 + 0x1ffff));
    DQ_CHECK(gn_mlx5_is_posted(&b.q, 1001 + 0x20001));
    DQ_CHECK(!gn_mlx5_is_posted(&b.q, 1001 + 0x20002));
    close_bench(&b);
}

// Index 0 is the first ticket's, and the first place's.
static void later_tickets(void) {
    bench b;
    gn_desc d;
    open_bench(&b);
    b.q.first = b.q.completed = 1001;
    for (uint64_t k = 0; k < 20; k++) {
        control(&b, k, GN_MLX5_NOP, 1);
        DQ_EQ(take(&b, 1001 + k, &d), GN_FAULT_NONE);
        gn_mlx5_complete(&b.q, 1002 + k);
        DQ_EQ(completion_of(&b, k).index, k);
    }
    close_bench(&b);
}

// ---- hostile entries --------------------------------------------------------------------------------------

static gn_u8 *memory_at(bench *b, gn_u64 place) {
    return b->memory[gn_place_region(place)] + gn_place_offset(place);
}

// Executes a checked operation: the address sanitizer reports every byte outside of a region.
static void execute(bench *b, const gn_desc *d) {
    gn_u64 value, was;
    switch (d->op) {
    case GN_OP_PUT:
        if (d->flags & GN_INLINE) {
            memcpy(memory_at(b, d->to), d->data, d->bytes);
            break;
        }
        memmove(memory_at(b, d->to), memory_at(b, d->from), d->bytes);
        if (d->bytes2) memmove(memory_at(b, d->to) + d->bytes, memory_at(b, d->from2), d->bytes2);
        break;
    case GN_OP_GET:
        memmove(memory_at(b, d->from), memory_at(b, d->to), d->bytes);
        if (d->bytes2) memmove(memory_at(b, d->from2), memory_at(b, d->to) + d->bytes, d->bytes2);
        break;
    case GN_OP_SEND:
        for (gn_u32 k = 0; k < d->bytes; k++)
            b->rows[0].spare += memory_at(b, d->from)[k];
        break;
    case GN_OP_ADD:
    case GN_OP_CAS:
        memcpy(&was, memory_at(b, d->signal), 8);
        value = d->op == GN_OP_ADD ? was + d->operand : was == d->compare ? d->operand : was;
        memcpy(memory_at(b, d->signal), &value, 8);
        memcpy(memory_at(b, d->result), &was, 8);
    }
}

static uint64_t odd_number(uint64_t *seed) {
    static const uint64_t odd[] = {0,     1,         7,          8,          16,         BYTES - 8, BYTES - 1,
                                   BYTES, BYTES + 1, 1ull << 31, 1ull << 32, 1ull << 48, ~0ull};
    return dq_below(seed, 2) ? odd[dq_below(seed, sizeof odd / sizeof *odd)]
                             : dq_rand(seed) >> dq_below(seed, 64);
}

// A segment of any meaning near the borders of what is valid.
static void hostile_segment(bench *b, gn_u8 *s, bool is_remote, uint64_t *seed) {
    uint32_t region = dq_below(seed, 4) ? (is_remote ? REMOTE : OWN) : dq_below(seed, REGIONS + 1);
    uint32_t key = region < REGIONS ? region : (uint32_t)odd_number(seed);
    uint64_t base = region < REGIONS && dq_below(seed, 4) ? at(b, region, 0) : 0;
    uint64_t address = base + odd_number(seed) % (BYTES + 64);
    if (dq_below(seed, 16) == 0) address = odd_number(seed);
    if (is_remote != (dq_below(seed, 16) == 0)) {
        put_be(s, 8, address);
        put_be(s + 8, 4, key);
    } else {
        put_be(s, 4, dq_below(seed, 4) ? 8 * dq_below(seed, 8) : odd_number(seed));
        put_be(s + 4, 4, key);
        put_be(s + 8, 8, address);
    }
}

static void hostile(void) {
    static const gn_u8 opcodes[] = {GN_MLX5_WRITE,     GN_MLX5_READ,         GN_MLX5_SEND,
                                    GN_MLX5_FETCH_ADD, GN_MLX5_COMPARE_SWAP, GN_MLX5_WRITE_IMM,
                                    GN_MLX5_SEND_IMM};
    bench b;
    uint64_t seed = 31, valid = 0, before, syndromes = 0;
    open_bench(&b);
    for (uint64_t k = 0; k < 1000000; k++) {
        gn_desc d;
        gn_u8 *e = control(&b, k, opcodes[dq_below(&seed, sizeof opcodes)], 1 + dq_below(&seed, 4));
        for (int s = 1; s < 4; s++)
            hostile_segment(&b, e + 16 * s, s == 1 && e[3] != GN_MLX5_SEND && e[3] != GN_MLX5_SEND_IMM,
                            &seed);
        uint32_t how = dq_below(&seed, 16);
        if (how == 0) e[dq_below(&seed, 64)] = (gn_u8)dq_rand(&seed);
        for (int i = 0; how == 1 && i < 64; i += 8)
            put_be(e + i, 8, dq_rand(&seed));
        int fault = take(&b, k, &d);
        if (fault == GN_FAULT_NONE) execute(&b, &d);
        valid += fault == GN_FAULT_NONE && d.op != GN_OP_NOP;
        before = b.q.written;
        gn_mlx5_complete(&b.q, k + 1);
        if (fault == GN_FAULT_NONE) continue;
        DQ_EQ(b.q.written, before + 1); // an error always has a completion entry
        completion c = completion_of(&b, before);
        DQ_EQ(c.kind, GN_MLX5_ERROR);
        DQ_EQ(c.fault, fault);
        syndromes |= 1ull << c.syndrome;
        if (dq_below(&seed, 4)) b.q.stopped = false; // as if the queue were opened again
    }
    for (uint32_t k = 0; k < BYTES; k++)
        DQ_CHECK(b.memory[READ_ONLY][k] == 0 && b.memory[REMOTE_READ][k] == 0);
    DQ_CHECK(valid > 40000);
    DQ_EQ(syndromes, 1u << GN_MLX5_LOCAL_LENGTH | 1u << GN_MLX5_LOCAL_OPERATION |
                         1u << GN_MLX5_LOCAL_PROTECTION | 1u << GN_MLX5_FLUSHED |
                         1u << GN_MLX5_REMOTE_REQUEST | 1u << GN_MLX5_REMOTE_ACCESS);
    close_bench(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(writes);
    DQ_RUN(reads_and_sends);
    DQ_RUN(immediates);
    DQ_RUN(atomics);
    DQ_RUN(keys);
    DQ_RUN(each_error);
    DQ_RUN(completions);
    DQ_RUN(stops);
    DQ_RUN(doorbell);
    DQ_RUN(later_tickets);
    DQ_RUN(hostile);
    return dq_done();
}
