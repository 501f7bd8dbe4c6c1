"""Averages the spectrum of block files: mean power over all packets that arrived, which it writes as a PNG and prints.

    daqiri-run tone.lua --readers 0 --dir captures
    python3 spectrum.py captures/disk_000000.dqb spectrum.png

The data are complex samples, real and imaginary parts as floats. Slots of lost packets are left out: their samples are not zeros of the signal."""
import sys

import numpy as np

import daqiri_run
from picture import curve, write_png


def spectrum(paths) -> tuple:
    """Returns the mean power of each frequency, frequency 0 in the middle, and the number of packets that it is of."""
    total, packets = 0.0, 0
    for path in paths:
        b = daqiri_run.blocks(path)
        slots = b["data"].shape[1]
        came = daqiri_run.present(b)[:, :slots]
        samples = b["data"][came].view(np.complex64)  # a row for each packet that came
        total = total + (np.abs(np.fft.fft(samples)) ** 2).sum(axis=0)
        packets += len(samples)
    return np.fft.fftshift(total) / packets, packets


# %%
if __name__ == "__main__":
    *files, out = sys.argv[1:]
    power, packets = spectrum(files)
    write_png(out, curve(10 * np.log10(power + power.max() * 1e-9)))
    middle = len(power) // 2
    print(f"mean of {packets} packets: highest at {np.argmax(power) - middle} of {-middle} to {len(power) - middle - 1}")
