"""Measure compile times and peak memory of the recipes, and write the table of performance.md.

``python -m figures.compiling [NAME...]`` in the folder ``docs``, on a quiet machine: each recipe, and a network of 400
dense layers, runs in processes of its own, with an empty cache of compiled programs and then with that of the first.
MNIST is downloaded, unless ``--mnist FOLDER`` has its IDX files.
``cold`` and ``warm`` are seconds from the start of Python to the end of the first iteration, in processor time and by
the clock.  Memory is the peak of an epoch of Sigma, warm, and of the same model in PyTorch on the same arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figures import FOLDER, files

PAGE = FOLDER.parent / "performance.md"
BEGIN, END = "<!-- compiling: begin -->\n", "<!-- compiling: end -->\n"
LAYERS, DEEP = "400 dense layers", FOLDER.parents[1] / "tests" / "reliability"


def used() -> list[float]:
    """Return the seconds of the processor and of the clock since the start of this process."""
    started = float(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    return [time.process_time(), time.clock_gettime(time.CLOCK_BOOTTIME) - started]


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_sigma(name: str, path: str, *settings: str) -> dict[str, Any]:
    """Train an iteration, then the rest of an epoch; keep the rows for PyTorch."""
    import numpy as np

    from sigma_kernel import catalogue
    from sigma_run import config

    text = catalogue().load("recipe", name).text
    with config.build(
        config.load(text, ["run.seed=0", "hooks={}", "run.backend=numba", *settings], name=name)
    ) as environment:
        (trainer,) = environment.trainers.values()
        trainer.fit(iterations=1)
        seconds = used()
        trainer.fit(epochs=1)
        found = {"seconds": seconds, "memory": peak()}
        feed = trainer.session.setup.feed
        np.savez(path, batch_size=feed.batch_size, **feed.prepare(feed.dataset.block(0)))
    return found


def in_torch(name: str, path: str) -> dict[str, Any]:
    """Train an epoch on the same rows."""
    import numpy as np
    import torch

    from figures.in_torch import ROWS

    row = next(row for key, row in ROWS.items() if key.partition(",")[0] == name)
    if row.train:
        return {"memory": 0.0}  # its loop is not the usual one
    with np.load(path) as rows:
        size = int(rows["batch_size"])
        x, y = (torch.tensor(rows[section]) for section in ("inputs", row.targets))
    x, y = (one.long() if one.dtype == torch.int32 else one for one in (x, y))
    module = row.model()
    optimiser = row.optimiser([p for p in module.parameters() if p.requires_grad])
    for at in range(0, len(x), size):
        optimiser.zero_grad()
        row.loss(module(x[at : at + size]), y[at : at + size]).backward()
        optimiser.step()
    return {"memory": peak()}


def measured(cache: str, *arguments: str) -> dict[str, Any]:
    """Return what a process of its own measures."""
    command, environment = [sys.executable, "-m", "figures.compiling", *arguments], dict(os.environ)
    environment |= {"SIGMA_NUMBA_CACHE": cache, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=FOLDER.parent, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def of(name: str, mnist: str | None) -> list[str]:
    """Return the row of a recipe, or of many layers."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.npz"
        if name == LAYERS:
            code = "import deep, json; print(json.dumps([deep.measured('layers', 400, 1, {!r})[::-1] for _ in 'cw']))"
            done = subprocess.run(
                [sys.executable, "-c", code.format(folder)], cwd=DEEP, capture_output=True, check=True
            )
            return _cells(name, *json.loads(done.stdout))
        cold, warm = (measured(folder, "sigma", name, path, *files.settings(name, mnist)) for _ in range(2))
        torch = measured(folder, "torch", name, path)
        memory = [f"{one['memory']:.0f} MB" if one["memory"] else "" for one in (warm, torch)]
    return _cells(name, cold["seconds"], warm["seconds"], *memory)


def _cells(name: str, cold: list[float], warm: list[float], *memory: str) -> list[str]:
    seconds = [f"{value:.2g}" if value < 10 else f"{value:.1f}" for value in (*cold, *warm)]
    return [f"`{name}`" if memory else name, *seconds, *(memory or ("", ""))]


def insert(page: str, rows: Sequence[Sequence[str]]) -> str:
    """Return the page with new rows in its table, in the place of those of the same names."""
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    head = ["recipe", "cold, processor", "cold, clock", "warm, processor", "warm, clock", "memory", "of PyTorch"]
    old = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")][2:]
    known = {row[0].strip(): [cell.strip() for cell in row] for row in old} | {row[0]: row for row in rows}
    lines = [f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *(known[key] for key in sorted(known)))]
    return f"{before}{BEGIN}\n{''.join(lines)}\n{END}{after}"


def main() -> None:
    """Measure, and replace the rows of the page."""
    if sys.argv[1:2] in (["sigma"], ["torch"]):
        print(json.dumps({"sigma": in_sigma, "torch": in_torch}[sys.argv[1]](*sys.argv[2:])))
        return
    from figures.gallery import names  # not in the processes that are measured

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[LAYERS, *(name for name in names() if "bench" not in name)])
    parser.add_argument("--mnist", help="the folder of MNIST's four IDX files, or of a part of them")
    given = parser.parse_args()
    rows = [of(name, given.mnist) for name in given.names]
    PAGE.write_text(insert(PAGE.read_text("utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
