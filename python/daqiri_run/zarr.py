"""Completes Zarr arrays of s:write_zarr whose writer was killed: python3 -m daqiri_run.zarr PREFIX_000000.zarr"""
import contextlib
import fcntl
import glob
import json
import os
import re
import struct
import sys

import numpy as np

from . import blocks

_NONE = 2**64 - 1  # offset and length of a block that a shard does not have
_LISTED = 2048  # gaps that the metadata list one by one


def _table():
    for c in range(256):
        for _ in range(8):
            c = c >> 1 ^ 0x82F63B78 * (c & 1)
        yield c


_CRC = tuple(_table())


def _crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = c >> 8 ^ _CRC[(c ^ byte) & 255]
    return c ^ 0xFFFFFFFF


def _files(prefix, first):
    """Returns the block files of the array with this number: those up to the number of the next array."""
    def numbered(suffix):
        found = ((re.fullmatch(r"_(\d{6,})", n[len(prefix):-len(suffix)]), n) for n in glob.glob(glob.escape(prefix) + "_*" + suffix))
        return sorted((int(m[1]), n) for m, n in found if m)
    end = min((n for n, _ in numbered(".zarr") if n > first), default=_NONE)
    return [name for n, name in numbered(".dqb") if first <= n < end]


@contextlib.contextmanager
def _claimed(prefix):
    """Holds the lock of a prefix, which its writer holds during a run."""
    folder, name = os.path.split(prefix)
    lock = os.path.join(folder, f".{name}.lock")
    with open(lock, "a", encoding="utf-8") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise BlockingIOError(e.errno, "a run still writes files with this prefix", prefix) from None
        try:
            yield
        finally:
            if os.fstat(f.fileno()).st_size == 0:
                os.unlink(lock)


def _index(b, at, each):
    """Returns the index of a shard of `each` blocks: those of b, which are at these positions in the shard."""
    entries = np.full((each, 2), _NONE, "<u8")
    stride, data_at = b.dtype.itemsize, b.dtype.fields["data"][1]
    entries[at, 0] = b.offset + stride * np.arange(len(b), dtype="u8") + data_at
    entries[at, 1] = b.dtype["data"].itemsize
    data = entries.tobytes()
    return data + struct.pack("<I", _crc32c(data))


def _complete(name, b, index):
    with open(name, "r+b") as f:
        f.truncate(b.offset + len(b) * b.dtype.itemsize)
        f.seek(0, 2)
        f.write(index)


def _list(attributes, key, gaps):
    attributes[key] = [[int(first), int(n)] for first, n in gaps[:_LISTED]]
    attributes["unlisted_gaps"] += max(0, len(gaps) - _LISTED)


def repair(path):
    """Completes the Zarr array PREFIX_INDEX.zarr, whose writer was killed or had no space for an index: adds the index to each block file that
    lacks one, links the file, and corrects the shape and the gaps in zarr.json. Returns the names of these files. A block that the writer did not
    complete is removed from its file. BlockingIOError: a run still writes the array. ValueError: a file is not a part of the array."""
    path = path.rstrip("/")
    name = re.fullmatch(r"(.*)_(\d{6,})\.zarr", path)
    if not name:
        raise ValueError(f"{path} is not a valid name of an array (expected PREFIX_INDEX.zarr)")
    with _claimed(name[1]):
        return _repair(path, _files(name[1], int(name[2])))


def _repair(path, names):
    with open(os.path.join(path, "zarr.json"), encoding="utf-8") as f:
        meta = json.load(f)
    each, attributes = meta["chunk_grid"]["configuration"]["chunk_shape"][0], meta["attributes"]
    repaired, count, missing, incomplete = [], 0, [], []
    for name in names:
        b = blocks(name)
        if len(b) == 0:
            continue
        at = b["ordinal"].astype("i8") - attributes["first_ordinal"]
        shard = int(at[0]) // each
        if at[0] < count or (np.diff(at) <= 0).any() or int(at[-1]) // each != shard:
            raise ValueError(f"{name} is not a valid part of {path}: its blocks belong elsewhere")
        key = os.path.join(path, ".".join(["c", str(shard)] + ["0"] * (len(meta["shape"]) - 1)))
        if not os.path.lexists(key):
            _complete(name, b, _index(b, at - shard * each, each))
            os.symlink("../" + os.path.basename(name), key)
            repaired.append(name)
        with open(name, "rb") as f:
            cells = struct.unpack_from("<I", f.read(40), 36)[0]
        before = np.concatenate([[count - 1], at[:-1]])
        missing += [(p + 1, q - p - 1) for p, q in zip(before, at) if q - p > 1]
        incomplete += [(p, cells - n) for p, n in zip(at, b["present_cells"]) if n != cells]
        count = int(at[-1]) + 1
    meta["shape"][0] = max(count, meta["shape"][0])
    attributes["unlisted_gaps"] = 0
    _list(attributes, "missing_blocks", missing)
    _list(attributes, "incomplete_blocks", incomplete)
    fresh = os.path.join(path, f"zarr.json.{os.getpid()}.new")
    with open(fresh, "w", encoding="utf-8") as f:
        json.dump(meta, f)
    os.replace(fresh, os.path.join(path, "zarr.json"))
    return repaired


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python3 -m daqiri_run.zarr PREFIX_INDEX.zarr...")
    for array in sys.argv[1:]:
        print(f"{array}: completed {len(repair(array))} files")
