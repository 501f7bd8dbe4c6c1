#!/usr/bin/env python3
"""read_blocks.py FILE...: what block files hold; blocks() maps one without reading it. native/writer/BLOCKS.md has the format."""
import sys
import numpy as np


def blocks(path):
    """The whole blocks of a file as an array of records: batch_id, ordinal, first_ns, ..., present, data."""
    head = np.fromfile(path, np.uint8, 4096)
    assert bytes(head[:8]) == b"DQBATCH\0" and head[8:12].view("<u4")[0] == 1, path + ": no block file of version 1"
    header_bytes, stride, data_at = head[12:16].view("<u4")[0], head[16:24].view("<u8")[0], head[24:28].view("<u4")[0]
    slots, slot_bytes, bits, present_at = (int(head[at:at + 4].view("<u4")[0]) for at in (28, 32, 64, 68))
    record = np.dtype({"names": ["batch_id", "ordinal", "first_ns", "last_ns", "packets", "present_cells", "flags", "fill", "present", "data"],
                       "formats": ["<u8", "<u8", "<i8", "<i8", "<u4", "<u4", "<u4", "<i4", (np.uint8, (bits + 7) // 8), (np.uint8, (slots, slot_bytes))],
                       "offsets": [8, 16, 24, 32, 40, 44, 48, 52, present_at, int(data_at)], "itemsize": int(stride)})
    count = (np.memmap(path, np.uint8, "r").size - int(header_bytes)) // int(stride)
    return np.memmap(path, record, "r", int(header_bytes), count) if count else np.zeros(0, record)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        b = blocks(name)
        print(name, b["data"].shape, "batches", b["batch_id"].tolist(), "cells present", b["present_cells"].tolist())
