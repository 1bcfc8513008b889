"""A made-up table in the shape of that of the recipe ``parkinsons``, whose own has to be downloaded."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np


@cache
def table() -> Path:
    """Return a file of 6 recordings of each of 32 persons, three quarters of them with the disease."""
    random = np.random.default_rng(0)
    lines = [",".join(["name", *(f"measure{i}" for i in range(22)), "status"])]
    for person in range(32):
        ill = int(person % 4 > 0)
        voice = random.normal(size=22) / 2 + ill
        for recording in range(6):
            measures = voice + random.normal(size=22) / 2
            numbers = ",".join(f"{x:.6f}" for x in measures)
            lines.append(f"phon_R01_S{person:02}_{recording + 1},{numbers},{ill}")
    path = Path(tempfile.mkdtemp()) / "parkinsons.data"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
