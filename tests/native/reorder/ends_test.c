// ends_test.c: what a stream's batches lack, as text of a digit a cell, is missing or cut.
#include "dqtest.h"
#include "reorder/ends.h"

#include <string.h>

enum { LONG = 70, WINDOW = 3 };

typedef enum lane { SEQUENCE, SLOTS, HEAPS } lane;

static dqi_ends ends;
static dqi_handover done;

static void begin(void) {
    memset(&ends, 0, sizeof ends);
    memset(&done, 0, sizeof done);
}

// A batch leaves whose cells are these: 1 came.
static void leave(lane l, uint64_t ordinal, uint32_t stream, const char *cells) {
    uint64_t present[2] = {0};
    dq_aggregate a = {.ordinal = ordinal, .cells = (uint32_t)strlen(cells), .present = present};
    DQ_CHECK(a.cells <= 128);
    for (uint32_t k = 0; k < a.cells; k++)
        if (cells[k] == '1') {
            present[k / 64] |= 1ull << (k % 64);
            a.present_cells++;
        }
    if (l == SEQUENCE) dqi_ends_of_sequence(&ends, &done, &a, stream);
    if (l == SLOTS) dqi_ends_of_batch(&ends, &done, &a, stream, WINDOW);
    if (l == HEAPS) dqi_ends_of_heap(&ends, &done, &a, WINDOW);
}

static void are(uint64_t missing, uint64_t cut) {
    DQ_EQ(dqi_get(&done.c.extra[DQ_EXTRA_MISSING]), missing);
    DQ_EQ(dqi_get(&done.c.extra[DQ_EXTRA_EXPECTED]), missing);
    DQ_EQ(dqi_get(&done.c.extra[DQ_EXTRA_CUT]), cut);
}

static void sequence(void) {
    begin();
    leave(SEQUENCE, 0, 1, "0000"); // nothing of it came, of a window that was opened too far back
    are(0, 0);
    leave(SEQUENCE, 1, 1, "0101");
    are(1, 5);
    leave(SEQUENCE, 2, 1, "1100");
    are(1, 5);
    leave(SEQUENCE, 3, 1, "0000");
    are(1, 5);
    leave(SEQUENCE, 4, 1, "0010");
    are(9, 5);
    leave(SEQUENCE, 9, 2, "0011"); // another stream
    are(9, 8);
    dqi_ends_close(&ends, &done);
    are(9, 8);
}

// Cells of more than one word of the bitmap.
static void words(void) {
    char cells[LONG + 1] = {0};
    memset(cells, '0', LONG);
    cells[65] = cells[67] = '1';
    begin();
    leave(SEQUENCE, 0, 1, cells);
    are(1, 65);
    dqi_ends_close(&ends, &done);
    are(1, 65 + 2);
}

static void slots(void) {
    begin();
    leave(SLOTS, 7, 1, "0110"); // the first batch is cut
    are(0, 2);
    leave(SLOTS, 8, 1, "0111");
    leave(SLOTS, 9, 1, "1110");
    are(0, 2);
    leave(SLOTS, 10, 1, "1111"); // what is in front of a full one is missing
    are(2, 2);
    leave(SLOTS, 12, 1, "1000"); // they leave in any order
    leave(SLOTS, 11, 1, "1110");
    leave(SLOTS, 13, 1, "1110");
    are(2, 2);
    leave(SLOTS, 14, 1, "0110"); // 11 is WINDOW in front of 14
    are(3, 2);
    leave(SLOTS, 3, 2,
          "1110"); // another stream: what was open of 12, 13, 14 is cut, and what its first batch lacks
    are(3, 2 + 3 + 1 + 2 + 1);
    leave(SLOTS, 4, 2, "1011");
    dqi_ends_close(&ends, &done);
    are(3, 10);
}

// A batch leaves whose place is long behind the window: it is missing at once.
static void far_behind(void) {
    begin();
    leave(SLOTS, 20, 1, "1111");
    leave(SLOTS, 17, 1, "1110");
    are(1, 0);
    dqi_ends_close(&ends, &done);
    are(1, 0);
}

static void heaps(void) {
    begin();
    leave(HEAPS, 0, 0, "0101"); // the first: what is in front of its first byte is cut
    are(1, 1);
    leave(HEAPS, 1, 0, "0100");
    are(2, 1);
    leave(HEAPS, 3, 0, "1000");
    are(2, 1);
    leave(HEAPS, 2, 0, "1111"); // heap 1 is in front of it, heap 3 not
    are(4, 1);
    leave(HEAPS, 5, 0, "1111");
    are(7, 1);
    leave(HEAPS, 4, 0, "1110"); // in front of one that has left
    are(8, 1);
    leave(HEAPS, 6, 0, "1100");
    dqi_ends_close(&ends, &done);
    are(8, 3);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(sequence);
    DQ_RUN(words);
    DQ_RUN(slots);
    DQ_RUN(far_behind);
    DQ_RUN(heaps);
    return dq_done();
}
