"""Reads the files of daqiri-run as memory-mapped numpy arrays: block files (native/writer/BLOCKS.md) and raw ones."""
import numpy as np

__all__ = ["blocks", "present", "raw"]

# The elements of a block file by its field dtype; of 4-bit integers and bf16, which numpy lacks, what holds them.
_ELEMENTS = {0: "u1", 1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<f2", 6: "<u2", 7: "<f4", 8: "<f8"}


def _number(head, at, kind):
    return int(np.frombuffer(head, kind, 1, at)[0])


def blocks(path):
    """The whole blocks of a block file: an array of records with batch_id, ordinal, first_ns, last_ns, packets, present_cells, flags,
    fill, present (bits), and data, of shape (slots, elements). A file that still grows has those that are complete by now.
    ValueError: it is no block file of version 1."""
    with open(path, "rb") as f:
        head = f.read(4096)
    if len(head) < 168 or head[:8] != b"DQBATCH\0" or _number(head, 8, "<u4") != 1:
        raise ValueError(f"{path}: no block file of version 1")
    header, stride, data_at = _number(head, 12, "<u4"), _number(head, 16, "<u8"), _number(head, 24, "<u4")
    slots, slot_bytes, kind = _number(head, 28, "<u4"), _number(head, 32, "<u4"), _number(head, 44, "<u4")
    bits, present_at, extra_at = _number(head, 64, "<u4"), _number(head, 68, "<u4"), _number(head, 72, "<u4")
    element = np.dtype(_ELEMENTS[kind])
    fields = [("batch_id", "<u8", 8), ("ordinal", "<u8", 16), ("first_ns", "<i8", 24), ("last_ns", "<i8", 32), ("packets", "<u4", 40),
              ("present_cells", "<u4", 44), ("flags", "<u4", 48), ("fill", "<i4", 52), ("present", (np.uint8, ((bits + 7) // 8,)), present_at),
              ("data", (element, (slots, slot_bytes // element.itemsize)), data_at)]
    if extra_at:
        fields.append(("extra", ("<u8", (slots,)), extra_at))
    names, formats, offsets = zip(*fields)
    record = np.dtype({"names": list(names), "formats": list(formats), "offsets": list(offsets), "itemsize": stride})
    with open(path, "rb") as f:
        count = (f.seek(0, 2) - header) // stride
    return np.memmap(path, record, "r", header, (count,)) if count > 0 else np.zeros(0, record)


def present(b):
    """Which cells came, by block: booleans of shape (blocks, 8 * bytes of the bitmap); those behind the last cell are False."""
    return np.unpackbits(np.asarray(b["present"]), axis=-1, bitorder="little").astype(bool)


def raw(path, dtype="u1", shape=(-1,), offset=0):
    """A raw file as an array of a type and shape, one part of which may be -1: as many as the file has whole.
    ValueError: the shape has more than one such part, or one beside a part of 0."""
    element = np.dtype(dtype)
    shape = tuple(shape) if hasattr(shape, "__len__") else (shape,)
    if shape.count(-1) > 1:
        raise ValueError(f"shape {shape}: one part at most is -1")
    if -1 in shape and 0 in shape:
        raise ValueError(f"shape {shape}: beside a part of 0 none is -1")
    with open(path, "rb") as f:
        size = f.seek(0, 2) - offset
    if -1 in shape:
        rest = element.itemsize * int(np.prod([n for n in shape if n != -1], dtype=np.int64))
        shape = tuple(size // rest if n == -1 else n for n in shape)
    if 0 in shape:
        return np.zeros(shape, element)
    return np.memmap(path, element, "r", offset, shape)
