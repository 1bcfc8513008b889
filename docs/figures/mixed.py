"""Measure steps in float32 and in mixed precision, and print a table of performance.md.

``python -m figures.mixed [NAME...]`` in the folder ``docs``: both train a recipe in turns, on one thread, without
hooks. Times are of the processor, in milliseconds: the median of rounds, and in brackets the interquartile range.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from sigma_kernel import catalogue
from sigma_run import config

NAMES = (
    "bench-mlp-large",
    "bench-mlp-small",
    "bench-deep",
    "bench-lstm",
    "bench-cnn",
    "bench-resnet",
    "bench-transformer",
)
KINDS = ("float32", "mixed")
SECONDS = 0.3  # of a round, approximately


def start_trainer(stack: ExitStack, name: str, precision: str) -> Any:
    """Return a trainer whose step is compiled."""
    settings = ["hooks={}", f"run.precision={precision}", "run.backend={type='numba', threads=1}"]
    configuration = config.load(catalogue().load("recipe", name).text, settings, name=name)
    (trainer,) = stack.enter_context(config.build(configuration)).trainers.values()
    trainer.fit(iterations=1)
    return trainer


def time_steps(trainer: Any, steps: int) -> float:
    """Return the milliseconds of a step."""
    begin = time.process_time()
    trainer.fit(iterations=steps)
    return (time.process_time() - begin) / steps * 1e3


def measure(name: str, rounds: int) -> str:
    """Return the row of a recipe."""
    with ExitStack() as stack:
        trainers = [start_trainer(stack, name, precision) for precision in KINDS]
        steps = max(1, round(SECONDS * 1e3 / time_steps(trainers[0], 1)))
        times = zip(*([time_steps(trainer, steps) for trainer in trainers] for _ in range(rounds)), strict=True)
        quartiles = [statistics.quantiles(found, n=4) for found in times]
    cells = [f"{middle:.3g} ({last - first:.1g})" for first, middle, last in quartiles]
    return f"| `{name}` | {' | '.join(cells)} | {quartiles[0][1] / quartiles[1][1]:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the recipes that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args(arguments)
    print(f"| recipe | {' | '.join(KINDS)} | ratio |\n|---|---:|---:|---:|")
    for name in options.names:
        print(measure(name, options.rounds), flush=True)


if __name__ == "__main__":
    main()
