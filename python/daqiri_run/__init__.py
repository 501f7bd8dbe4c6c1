"""Reads the files of daqiri-run as memory-mapped numpy arrays: block files (native/writer/BLOCKS.md) and raw ones; and the blocks of
running scripts without a copy."""
from __future__ import annotations

import math
import os
from typing import Any, Optional, Sequence, Union

import numpy as np

__all__ = ["Block", "Live", "Run", "attach", "blocks", "hdf5", "present", "raw", "run"]

# The elements of a block file by its field dtype; of 4-bit integers and bf16, which numpy lacks, what holds them.
_ELEMENTS = {0: "u1", 1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<f2", 6: "<u2", 7: "<f4", 8: "<f8"}

_LONGEST = 2**31 - 1  # bytes of a record of numpy


_Path = Union[str, "os.PathLike[str]"]


def _number(head: bytes, at: int, kind: str) -> int:
    return int(np.frombuffer(head, kind, 1, at)[0])


def _layout(path: _Path, head: bytes) -> dict[str, int]:
    """Returns the header of a block file as a dict with the names of BLOCKS.md. Raises ValueError if it is not one, or contradicts itself."""
    if len(head) < 168 or head[:8] != b"DQBATCH\0" or _number(head, 8, "<u4") != 1:
        raise ValueError(f"{path}: no block file of version 1")
    h = {name: _number(head, at, kind) for name, at, kind in (
        ("header_bytes", 12, "<u4"), ("block_bytes", 16, "<u8"), ("block_header_bytes", 24, "<u4"), ("slots", 28, "<u4"), ("slot_bytes", 32, "<u4"),
        ("dtype", 44, "<u4"), ("present_bits", 64, "<u4"), ("present_at", 68, "<u4"), ("extra_at", 72, "<u4"))}
    data_at, element = h["block_header_bytes"], np.dtype(_ELEMENTS.get(h["dtype"], "V0"))
    extra_end = h["extra_at"] + 8 * h["slots"] if h["extra_at"] else 0
    if (h["header_bytes"] < 168 or element.itemsize == 0 or h["slot_bytes"] % element.itemsize or not 0 < h["slots"] * h["slot_bytes"] <= h["block_bytes"] - data_at
            or min(h["present_at"], h["extra_at"] or 64) < 64 or max(64, h["present_at"] + (h["present_bits"] + 7) // 8, extra_end) > data_at):
        raise ValueError(f"{path}: a damaged block file: its header contradicts itself")
    if h["block_bytes"] > _LONGEST:
        raise ValueError(f"{path}: blocks of {h['block_bytes']} bytes, and numpy's records have at most {_LONGEST}")
    return h


def blocks(path: _Path) -> np.ndarray:
    """The whole blocks of a block file: an array of records with batch_id, ordinal, first_ns, last_ns, packets, present_cells, flags,
    fill, present (bits), and data, of shape (slots, elements). A file that still grows has those that are complete by now.
    ValueError: it is not a block file of version 1, or a damaged one."""
    with open(path, "rb") as f:
        h = _layout(path, f.read(4096))
        header, stride, slots = h["header_bytes"], h["block_bytes"], h["slots"]
        count = max(0, (f.seek(0, 2) - header) // stride)
    element = np.dtype(_ELEMENTS[h["dtype"]])
    fields = [("batch_id", "<u8", 8), ("ordinal", "<u8", 16), ("first_ns", "<i8", 24), ("last_ns", "<i8", 32), ("packets", "<u4", 40),
              ("present_cells", "<u4", 44), ("flags", "<u4", 48), ("fill", "<i4", 52), ("present", (np.uint8, ((h["present_bits"] + 7) // 8,)), h["present_at"]),
              ("data", (element, (slots, h["slot_bytes"] // element.itemsize)), h["block_header_bytes"])]
    if h["extra_at"]:
        fields.append(("extra", ("<u8", (slots,)), h["extra_at"]))
    record = _record(fields, stride)
    if count == 0:
        return np.zeros(0, record)
    begins = np.memmap(path, _record([("magic", "S8", 0)], stride), "r", header, (count,))["magic"]
    if not (begins == b"BATCH").all():
        raise ValueError(f"{path}: a damaged block file: block {int(np.argmax(begins != b'BATCH'))} does not begin as one")
    return np.memmap(path, record, "r", header, (count,))


def _record(fields: list[tuple[str, Any, int]], itemsize: int) -> np.dtype:
    names, formats, offsets = zip(*fields)
    return np.dtype({"names": list(names), "formats": list(formats), "offsets": list(offsets), "itemsize": itemsize})


def present(b: np.ndarray) -> np.ndarray:
    """Which cells came, by block: booleans of shape (blocks, 8 * bytes of the bitmap); those behind the last cell are False."""
    return np.unpackbits(np.asarray(b["present"]), axis=-1, bitorder="little").astype(bool)


def hdf5(path: _Path, out: Optional[str] = None) -> str:
    """Creates an HDF5 file beside a block file, by h5py, and returns its name: out, or path with .h5 in place of .dqb. Its data set "data" has the data
    of all whole blocks, of shape (blocks, slots, elements), and reads them from the block file, whose absolute name it has. The other fields of blocks()
    and the cells of present() are data sets of their own. FileExistsError: out is there. ValueError: as blocks(), or there is no whole block."""
    import h5py
    b = blocks(path)
    if len(b) == 0:
        raise ValueError(f"{path}: there is no whole block")
    out = os.path.splitext(path)[0] + ".h5" if out is None else out
    stride, at = b.dtype.itemsize, b.dtype.fields["data"][1]
    data, source = b.dtype["data"], os.path.abspath(path)
    parts = [(source, b.offset + k * stride + at, data.itemsize) for k in range(len(b))]
    fresh = f"{out}.{os.getpid()}.new"
    try:
        with h5py.File(fresh, "x") as f:
            f.create_dataset("data", (len(b), *data.shape), data.base, external=parts)
            for name in b.dtype.names:
                if name not in ("data", "present"):
                    f[name] = np.ascontiguousarray(b[name])
            f["present"] = present(b)
        os.link(fresh, out)  # never replaces a file
    finally:
        if os.path.exists(fresh):
            os.unlink(fresh)
    return out


def raw(path: _Path, dtype: Any = "u1", shape: Union[int, Sequence[int]] = (-1,), offset: int = 0) -> np.ndarray:
    """A raw file as an array of a type and shape, one part of which may be -1: as many as the file has whole.
    ValueError: the shape has more than one such part, one beside a part of 0, or a negative one; elements have no bytes or are objects; the file is
    shorter than that."""
    element = np.dtype(dtype)
    if element.itemsize == 0 or element.hasobject:
        raise ValueError(f"dtype {element}: its elements are no bytes of a file")
    shape = tuple(shape) if hasattr(shape, "__len__") else (shape,)
    if shape.count(-1) > 1:
        raise ValueError(f"shape {shape}: one part at most is -1")
    if -1 in shape and 0 in shape:
        raise ValueError(f"shape {shape}: beside a part of 0 none is -1")
    if offset < 0 or any(n < -1 for n in shape):
        raise ValueError(f"shape {shape}, offset {offset}: they are not negative")
    with open(path, "rb") as f:
        size = f.seek(0, 2) - offset
    if size < 0:
        raise ValueError(f"{path}: it ends before byte {offset}")
    if -1 in shape:
        rest = element.itemsize * int(np.prod([n for n in shape if n != -1], dtype=np.int64))
        shape = tuple(size // rest if n == -1 else n for n in shape)
    if 0 in shape:
        return np.zeros(shape, element)
    if element.itemsize * math.prod(shape) > size:
        raise ValueError(f"{path}: it has {size} bytes behind byte {offset}, which are less than a shape of {shape}")
    return np.memmap(path, element, "r", offset, shape)


from .live import Block, Live, Run, attach, run  # noqa: E402 - it uses the names above
