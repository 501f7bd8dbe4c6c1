"""Writes arrays as PNG files. It needs numpy alone."""
import struct
import zlib

import numpy as np


def colours(values: np.ndarray) -> np.ndarray:
    """Maps values to colours, of shape (rows, columns, 3): the darkest to the lowest of 100, the brightest to the highest. Values that are not finite are
    grey."""
    finite = np.isfinite(values)
    low, high = np.percentile(values[finite], (1, 100)) if finite.any() else (0.0, 1.0)
    x = np.clip((np.where(finite, values, low) - low) / max(high - low, 1e-30), 0, 1)[..., None]
    stops = np.array([[0, 0, 0], [60, 20, 120], [200, 60, 80], [250, 170, 30], [255, 255, 220]], float)
    at = np.minimum((x * 4).astype(int), 3)
    image = stops[at[..., 0]] * (1 - (4 * x - at)) + stops[at[..., 0] + 1] * (4 * x - at)
    image[~finite] = 128
    return image.astype(np.uint8)


def curve(values: np.ndarray, height: int = 200) -> np.ndarray:
    """Draws finite values as a curve, one column each, the highest at the top. The colours are black on white."""
    low, high = values.min(), values.max()
    rows = np.round((height - 1) * (1 - (values - low) / max(high - low, 1e-30))).astype(int)
    image = np.full((height, len(values), 3), 255, np.uint8)
    for column, row in enumerate(rows):
        before = rows[max(column - 1, 0)]
        image[min(row, before):max(row, before) + 1, column] = 0
    return image


def write_png(path: str, image: np.ndarray) -> None:
    """Writes an image of shape (rows, columns, 3), red, green and blue of 8 bits each."""
    rows, columns, _ = image.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + image[row].tobytes() for row in range(rows))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
