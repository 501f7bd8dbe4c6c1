// zarr_test.c: Zarr arrays of block files: index, links and metadata; what begins another array; and files
// that get no index.
#include "writer_files_rig.h"

#include "writer/recording/zarr_array.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { PAGE = 4096, BLOCK = PAGE + 2 * PAGE, DATA = CELL * CELLS }; // a block in the file, and its data

static dq_writer_conf zarr_conf(const rig *r) {
    dq_writer_conf c = writer_conf(r);
    c.kind = DQ_WRITE_ZARR;
    c.rotate_packets = 4;
    return c;
}

// The text of a file, which the next call overwrites.
static const char *text_of(const rig *r, const char *name) {
    static char text[64 << 10];
    size_t n = 0;
    uint8_t *p = slurp(rig_path(r, name), &n);
    must(p && n < sizeof text, name);
    memcpy(text, p, n);
    text[n] = 0;
    free(p);
    return text;
}

static bool is_there(const rig *r, const char *name) {
    struct stat st;
    return lstat(rig_path(r, name), &st) == 0;
}

static void put_ordinal(rig *r, dq_stage *st, dqi_node *node, uint32_t slots, uint64_t ordinal) {
    static const uint64_t whole = 0xfff;
    dq_aggregate a;
    dq_burst *b = batch_of(r, slots, ordinal - 256, &whole, &a);
    a.present_cells = ordinal % 10 == 9 ? a.cells - 3 : a.cells;
    put_batch(st, node, b);
}

static uint64_t number(const uint8_t *p, uint32_t bytes) {
    uint64_t v = 0;
    for (uint32_t i = bytes; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

// The index of a shard: position i is the block with number at[i] in the file, or -1.
static void check_index(const rig *r, const char *name, const int *at, uint32_t each) {
    size_t n = 0;
    uint8_t *p = slurp(rig_path(r, name), &n);
    must(p && n > 16 * each + 4, name);
    DQ_EQ((n - PAGE) % BLOCK, 16 * each + 4);
    const uint8_t *index = p + n - 16 * each - 4;
    DQ_EQ(number(index + 16 * each, 4), dqi_crc32c(0, index, 16 * each));
    for (uint32_t i = 0; i < each; i++) {
        uint64_t offset = number(index + 16 * i, 8), bytes = number(index + 16 * i + 8, 8);
        DQ_EQ(offset, at[i] < 0 ? UINT64_MAX : (uint64_t)(PAGE + at[i] * BLOCK + PAGE));
        DQ_EQ(bytes, at[i] < 0 ? UINT64_MAX : DATA);
    }
    free(p);
}

// Blocks 259, 260, 262 and 269 of shards of four: block 2 and blocks 4 to 9 of the array are missing.
static void index_and_metadata(void) {
    rig r;
    rig_open(&r, true, 1, 64, 8192);
    dq_writer_conf c = zarr_conf(&r);
    snprintf(c.attributes, sizeof c.attributes, "\"site\":1");
    snprintf(c.element, sizeof c.element, "int16");
    c.sample_dtype = DQ_DTYPE_INT16;
    c.sample_bytes = 4;
    c.two_parts = true;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    put_ordinal(&r, st, &node, SLOTS, 259);
    CHECK_TEXT(text_of(&r, "t_000000.zarr/zarr.json"), "\"shape\":[0,6,250,2]");
    put_ordinal(&r, st, &node, SLOTS, 260);
    put_ordinal(&r, st, &node, SLOTS, 262);
    DQ_CHECK(!is_there(&r, "t_000000.zarr/c.0.0.0.0"));
    put_ordinal(&r, st, &node, SLOTS, 269);
    CHECK_TEXT(text_of(&r, "t_000000.zarr/zarr.json"), "\"shape\":[4,6,250,2]");
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 4);
    uint64_t packets;
    DQ_EQ(check_list(st, &packets), 2);
    DQ_EQ_STR(
        text_of(&r, "t_000000.zarr/zarr.json"),
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[11,6,250,2],\"data_type\":\"int16\",\"fill_"
        "value\":0,\n"
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,6,250,2]}},\n"
        "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\".\"}},\n"
        "\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,6,250,2],"
        "\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"index_codecs\":[{"
        "\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"crc32c\"}],"
        "\"index_location\":\"end\"}}],\n"
        "\"dimension_names\":[\"block\",\"slot\",\"sample\",\"re_im\"],\n"
        "\"attributes\":{\"first_ordinal\":259,\"start_time\":\"1970-01-01T00:00:00.000000005Z\",\"start_"
        "ns\":5,"
        "\"site\":1,\n\"missing_blocks\":[[2,1],[4,6]],\n\"incomplete_blocks\":[[0,3],[10,3]],\n"
        "\"unlisted_gaps\":0}}\n");
    check_index(&r, "t_000000.zarr/c.0.0.0.0", (const int[]){0, 1, -1, 2}, 4);
    check_index(&r, "t_000001.dqb", (const int[]){-1, -1, 0, -1}, 4);
    char target[64] = "";
    DQ_EQ(readlink(rig_path(&r, "t_000000.zarr/c.2.0.0.0"), target, sizeof target - 1), 15);
    DQ_EQ_STR(target, "../t_000001.dqb");
    DQ_CHECK(!is_there(&r, "t_000000.zarr/c.1.0.0.0"));
    rig_close(&r);
}

// An earlier block, one far ahead and another shape begin arrays of their own. A folder of that name stays.
static void further_arrays(void) {
    rig r;
    rig_open(&r, true, 1, 64, 8192);
    must(mkdir(rig_path(&r, "t_000003.zarr"), 0777) == 0, "folder");
    dq_writer_conf c = zarr_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    const uint64_t jump = DQI_ZARR_JUMP;
    const uint64_t ordinals[] = {1000, 1001, 1001, 1002 + jump, 1004 + 2 * jump, 1005 + 2 * jump};
    for (size_t k = 0; k < sizeof ordinals / sizeof *ordinals; k++)
        put_ordinal(&r, st, &node, k == 5 ? SLOTS - 1 : SLOTS, ordinals[k]);
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 6);
    CHECK_TEXT(text_of(&r, "t_000000.zarr/zarr.json"), "\"shape\":[2,6,500]");
    char shape[64]; // the second 1001, and the block that is just near enough
    snprintf(shape, sizeof shape, "\"shape\":[%llu,6,500]", (unsigned long long)jump + 2);
    CHECK_TEXT(text_of(&r, "t_000001.zarr/zarr.json"), shape);
    DQ_CHECK(!is_there(&r, "t_000003.zarr/zarr.json"));
    CHECK_TEXT(text_of(&r, "t_000004.zarr/zarr.json"), "\"shape\":[1,6,500]");
    CHECK_TEXT(text_of(&r, "t_000005.zarr/zarr.json"), "\"shape\":[1,5,500]");
    rig_close(&r);
}

static void limit_to(rlim_t n, struct rlimit *old) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, old);
    struct rlimit limit = {.rlim_cur = n, .rlim_max = old->rlim_max};
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

// Every block that was written is where the index of the shard has it; their number.
static uint64_t indexed(const rig *r, const char *name, uint32_t each, uint64_t origin) {
    size_t n = 0;
    uint64_t found = 0;
    uint8_t *p = slurp(rig_path(r, name), &n);
    must(p && n > each * 16 + 4, name);
    for (uint64_t i = 0; i < each; i++) {
        uint64_t offset = number(p + n - each * 16 - 4 + 16 * i, 8);
        if (offset == UINT64_MAX) continue;
        must(offset + DATA <= n, "offset");
        DQ_EQ(number(p + offset - PAGE + 16, 8), origin + i);
        found++;
    }
    free(p);
    return found;
}

static int fill_a_disk(void) {
    rig r;
    rig_open(&r, true, 1, 64, 8192);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", r.dir, "tmpfs", 0, "size=1m") != 0) {
        rig_close(&r);
        return 77;
    }
    dq_writer_conf c = zarr_conf(&r);
    c.rotate_packets = 0;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    int ballast = open(rig_path(&r, "ballast"), O_CREAT | O_WRONLY, 0644);
    must(ballast >= 0 && fallocate(ballast, 0, 0, 500000) == 0, "ballast");
    uint64_t k = 300;
    for (; k < 500 && balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR] == 0; k++)
        put_ordinal(&r, st, &node, SLOTS, k);
    uint64_t full = balanced(st, &node, 1).out;
    DQ_CHECK(full > 0);
    DQ_EQ(ftruncate(ballast, 0), 0);
    close(ballast);
    for (; k < 1000 && account(st, &node, 1).out < full + 3; k++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        dq_advance(r.s, dq_now(r.s) + DQI_WRITER_LAG_NS);
        put_ordinal(&r, st, &node, SLOTS, k);
    }
    st->ops->finish(st);
    uint64_t out = balanced(st, &node, 1).out;
    DQ_CHECK(out > full);
    DQ_EQ(indexed(&r, "t_000000.zarr/c.0.0.0", (BLOCK - 5) / 16, 300), out);
    umount(r.dir);
    rig_close(&r);
    return dq_done();
}

// Blocks that a full disk loses are not in the index, and the others are where it has them, also those after
// space was freed.
static void no_space_for_blocks(void) {
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        atomic_store(&dq_failures, 0);
        _exit(fill_a_disk());
    }
    int status = 0;
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "waitpid");
    if (WEXITSTATUS(status) == 77) {
        printf("skip no_space_for_blocks: mounting a small file system needs root\n");
        DQ_CHECK(!dq_required("root"));
        return;
    }
    DQ_EQ(WEXITSTATUS(status), 0);
}

// A disk without space for the index: the blocks stay, and the array lacks this file.
static void no_space_for_the_index(void) {
    rig r;
    rig_open(&r, true, 1, 64, 8192);
    dq_writer_conf c = zarr_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    struct rlimit old;
    put_ordinal(&r, st, &node, SLOTS, 256);
    put_ordinal(&r, st, &node, SLOTS, 260);
    limit_to(PAGE + BLOCK + 5, &old);
    st->ops->finish(st);
    setrlimit(RLIMIT_FSIZE, &old);
    DQ_EQ(balanced(st, &node, 1).out, 2);
    check_error(st, "t_000001.dqb: ");
    DQ_CHECK(is_there(&r, "t_000000.zarr/c.0.0.0") && !is_there(&r, "t_000000.zarr/c.1.0.0"));
    uint64_t packets, size;
    DQ_EQ(check_list(st, &packets), 2);
    DQ_EQ(packets, 2);
    crc_of(rig_path(&r, "t_000001.dqb"), &size);
    DQ_EQ(size, PAGE + BLOCK);
    rig_close(&r);
}

// A file that is removed does not become part of the array.
static void removed_files(void) {
    rig r;
    rig_open(&r, true, 1, 64, 8192);
    dq_writer_conf c = zarr_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    put_ordinal(&r, st, &node, SLOTS, 256);
    unlink(rig_path(&r, "t_000000.dqb"));
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 0);
    DQ_CHECK(!is_there(&r, "t_000000.zarr/c.0.0.0"));
    rig_close(&r);
}

// The index stays smaller than a block, and a file within its limits.
static void blocks_per_shard(void) {
    dqi_block_shape s = {.block_bytes = 8192};
    dq_writer_conf c = {0};
    DQ_EQ(dqi_zarr_each(&c, &s), 511);
    DQ_CHECK(dqi_zarr_index_bytes(511) < 8192 && dqi_zarr_index_bytes(512) >= 8192);
    s.block_bytes = 1 << 20;
    DQ_EQ(dqi_zarr_each(&c, &s), DQI_ZARR_BLOCKS);
    c.rotate_bytes = PAGE + 7 * ((1 << 20) + 16) + 4;
    DQ_EQ(dqi_zarr_each(&c, &s), 7);
    c.rotate_bytes--;
    DQ_EQ(dqi_zarr_each(&c, &s), 6);
    c.rotate_packets = 5;
    DQ_EQ(dqi_zarr_each(&c, &s), 5);
    c.rotate_bytes = 100;
    DQ_EQ(dqi_zarr_each(&c, &s), 1);
}

// Missing blocks have the value of missing cells; a float has 0.
static void fill_values_and_full_lists(void) {
    rig r;
    rig_open(&r, true, 1, 8, 64);
    dq_writer_conf c = zarr_conf(&r);
    static dqi_zarr_array z;
    z = (dqi_zarr_array){
        .conf = &c, .each = 3, .fill = 0x88, .start_ns = DQ_NO_TIME, .shape = {.slots = 1, .slot_bytes = 8}};
    snprintf(z.path, sizeof z.path, "%s", rig_path(&r, "x.zarr"));
    snprintf(c.element, sizeof c.element, "int8");
    DQ_EQ(dqi_zarr_create(&z), 0);
    CHECK_TEXT(text_of(&r, "x.zarr/zarr.json"), "\"int8\",\"fill_value\":-120,");
    CHECK_TEXT(text_of(&r, "x.zarr/zarr.json"),
               "\"attributes\":{\"first_ordinal\":0,\n\"missing_blocks\":[],");
    DQ_EQ(dqi_zarr_create(&z), -EEXIST);
    dqi_zarr_block blocks[3] = {{.at = 1}, {.at = DQI_ZARR_NONE}, {.at = 2, .missing = 1}};
    snprintf(c.element, sizeof c.element, "uint16");
    for (uint64_t k = 0; k <= DQI_ZARR_LISTED; k++)
        DQ_EQ(dqi_zarr_add_shard(&z, k, "/d/x.dqb", blocks), 0);
    CHECK_TEXT(text_of(&r, "x.zarr/zarr.json"), "\"uint16\",\"fill_value\":34952,");
    CHECK_TEXT(text_of(&r, "x.zarr/zarr.json"), "\"unlisted_gaps\":2}");
    DQ_EQ(dqi_zarr_add_shard(&z, 0, "/d/x.dqb", blocks), -EEXIST);
    snprintf(c.element, sizeof c.element, "float32");
    DQ_EQ(dqi_zarr_add_shard(&z, 9999, "x.dqb", blocks), 0);
    CHECK_TEXT(text_of(&r, "x.zarr/zarr.json"), "\"float32\",\"fill_value\":0,");
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(index_and_metadata);
    DQ_RUN(further_arrays);
    DQ_RUN(no_space_for_blocks);
    DQ_RUN(no_space_for_the_index);
    DQ_RUN(removed_files);
    DQ_RUN(blocks_per_shard);
    DQ_RUN(fill_values_and_full_lists);
    return dq_done();
}
