"""Draws a waterfall of a running script's s:share: a line for each block, the newest at the top, frequencies from negative to positive.

    daqiri-run tone.lua
    python3 waterfall.py live waterfall.png          # in another terminal; it writes the picture at the end of the run

The data are complex samples, real and imaginary parts as floats. Blocks that the program missed are grey lines."""
import sys

import numpy as np

import daqiri_run
from picture import colours, write_png

POINTS = 256  # of a transform
LINES = 400  # of the picture; older ones are discarded


def line(samples: np.ndarray) -> np.ndarray:
    """Returns the mean power of the transforms of all pieces of samples, in dB, frequency 0 in the middle."""
    pieces = samples[:len(samples) // POINTS * POINTS].reshape(-1, POINTS) * np.hanning(POINTS)
    power = (np.abs(np.fft.fft(pieces)) ** 2).mean(axis=0)
    return 10 * np.log10(np.fft.fftshift(power) + 1e-12)


def waterfall(stream: str) -> np.ndarray:
    """Reads a stream until its end and returns its lines, the newest first."""
    lines = []
    with daqiri_run.attach(stream) as live:
        for b in live:
            lines += [np.full(POINTS, np.nan)] * min(b.missed, LINES)
            lines.append(line(b.samples().view(np.complex64)))
            del lines[:-LINES]
    return np.array(lines[::-1]).reshape(-1, POINTS)


# %%
if __name__ == "__main__":
    name, out = sys.argv[1:] if len(sys.argv) == 3 else ("live", "waterfall.png")
    picture = waterfall(name)
    write_png(out, colours(picture))
    print(f"{len(picture)} lines in {out}")
