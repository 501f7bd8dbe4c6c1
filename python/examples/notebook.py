"""Runs a script, reads its blocks while they come, and then the final summary: cells for an editor with notebooks, or a program.

    python3 notebook.py [daqiri-run]"""
# %%
import os
import sys

import numpy as np

import daqiri_run

here = os.path.dirname(os.path.abspath(__file__))
program = sys.argv[1] if len(sys.argv) > 1 else "daqiri-run"

# %% Start the script, with arguments, and take its blocks. Arrays that are kept are copies.
power, batches = [], []
with daqiri_run.run(os.path.join(here, "tone.lua"), program=program, cycles=-25, blocks=32) as run:
    for b in run:
        power.append(float((np.abs(b.samples().view(np.complex64)) ** 2).mean()))
        batches.append(b.batch_id)

# %% What was received
print(f"{len(batches)} blocks, mean power {np.mean(power):.0f}")

# %% The final summary has a line for each queue and stage: each packet is accounted for.
for line in run.summary["sessions"][0]["ledger"]["lines"]:
    print(f"{line['name']:>8} {line['kind']:<8} in {line['in']:>6} out {line['out']:>6}")
print(f"exit code {run.returncode}")
