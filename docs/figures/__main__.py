"""Draw every figure but the gallery: ``python -m figures`` in the folder ``docs``."""

from __future__ import annotations

from figures import FOLDER, benchmarks, diagrams, first

DRAWN = {**diagrams.DIAGRAMS, **benchmarks.CHARTS, "first.svg": first.first}

if __name__ == "__main__":
    for name, draw in DRAWN.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
