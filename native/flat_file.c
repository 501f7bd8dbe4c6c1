// flat_file.c: the bytes of packets as one stream: what a file is for that a program reads as an array.
// Packets may be longer than a block (a reordered one); pieces of them go out as blocks fill.
#include "flat_file.h"
#include "burst.h"
#include "pcap_file.h"

#define PIECE (256u << 10) // bytes: a block always has room for one

int dqi_flat_add(dqi_flat_file *f, const dq_burst *b, uint32_t i, dqi_file_tally *tally) {
    uint32_t len = dqi_packet_len(b, i), total = len > f->skip ? len - f->skip : 0, at = 0;
    for (;;) {
        uint32_t n = total - at < PIECE ? total - at : PIECE;
        int err = 0;
        uint8_t *to = dqi_block_room(&f->file, n, tally, &err);
        if (!to) return err;
        dqi_gather(b, i, f->skip + at, to, n);
        at += n;
        if (at == total) {
            dqi_block_commit(&f->file, n, total, true, false);
            return 0;
        }
        dqi_block_extend(&f->file, n);
    }
}
