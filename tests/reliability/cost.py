"""Measure the cost of saving, compared with a plain write and fsync of the same bytes.

::

    python tests/reliability/cost.py [MEGABYTES] [FOLDER]

Prints medians of 11 alternating rounds: seconds of a plain write, of a checkpoint, their ratio; and how long the
writer blocks the training thread, which hands over arrays that are already copied.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sigma_kernel.contracts.storing import Checkpoint, Retention
from sigma_store.checkpoints.store import write
from sigma_store.checkpoints.writer import Saver

ROUNDS = 11


def plain(path: Path, data: bytes) -> None:
    """Write and sync bytes to a file."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def timed(act: Callable[..., Any], *given: Any) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    act(*given)
    return time.perf_counter() - began


def main(megabytes: int, parent: str | None) -> None:
    """Measure and print."""
    draw = np.random.default_rng(0)
    arrays = {f"layers.{n}": draw.integers(0, 256, megabytes * 100_000, dtype=np.uint8) for n in range(10)}
    state, data = Checkpoint(arrays, {}), b"".join(value.tobytes() for value in arrays.values())
    seconds: dict[str, list[float]] = {"plain write": [], "checkpoint": [], "held": []}
    with TemporaryDirectory(dir=parent) as folder:
        home, file = Path(folder), Path(folder) / "plain"
        for number in range(ROUNDS):
            seconds["plain write"].append(timed(plain, file, data))
            file.unlink()  # so that neither waits for the previous round
            seconds["checkpoint"].append(timed(write, home / str(number), state))
            shutil.rmtree(home / str(number))
            saver = Saver(home / "beside", sys.exit, retention=Retention(last=1))
            seconds["held"].append(timed(saver.save, number, state))
            saver.flush()
    for name, values in seconds.items():
        print(f"{name:12} {median(values):8.4f} s  ({min(values):.4f} to {max(values):.4f})")
    ratios = [b / a for a, b in zip(seconds["plain write"], seconds["checkpoint"], strict=True)]
    print(f"{'ratio':12} {median(ratios):8.2f}    ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, sys.argv[2] if len(sys.argv) > 2 else None)
