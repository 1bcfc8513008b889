"""A made-up table in the shape of UCI's Parkinson's data, for the tests and the gallery: ``python voices.py FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

MEASURES = (
    "MDVP:Fo(Hz)", "MDVP:Fhi(Hz)", "MDVP:Flo(Hz)", "MDVP:Jitter(%)", "MDVP:Jitter(Abs)", "MDVP:RAP", "MDVP:PPQ",
    "Jitter:DDP", "MDVP:Shimmer", "MDVP:Shimmer(dB)", "Shimmer:APQ3", "Shimmer:APQ5", "MDVP:APQ", "Shimmer:DDA",
    "NHR", "HNR", "RPDE", "DFA", "spread1", "spread2", "D2", "PPE",
)  # fmt: skip
STATUS = MEASURES.index("RPDE")  # it stands between measures
PERSONS, HEALTHY, ROWS = 32, 8, 195


def table(seed: int = 0) -> str:
    """Return 195 recordings of 32 persons, 24 of them ill: what a person has in common, and what a recording adds."""
    draw = np.random.default_rng(seed)
    ill = draw.permutation(np.arange(PERSONS) >= HEALTHY)
    scales = 10.0 ** draw.uniform(-4, 2, len(MEASURES))
    towards = draw.normal(size=len(MEASURES))
    usual = draw.normal(size=(PERSONS, len(MEASURES))) + 0.6 * np.outer(2 * ill - 1, towards)
    lines = [",".join(["name", *MEASURES[:STATUS], "status", *MEASURES[STATUS:]])]
    for row in range(ROWS):
        person, number = row % PERSONS, row // PERSONS + 1
        values = [f"{x:.6g}" for x in scales * (usual[person] + 0.4 * draw.normal(size=len(MEASURES)))]
        name = f"phon_R01_S{person + 1:02}_{number}"
        lines.append(",".join([name, *values[:STATUS], str(int(ill[person])), *values[STATUS:]]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(table(), encoding="utf-8")
