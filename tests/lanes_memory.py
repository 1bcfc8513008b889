"""Measure what each worker reads of a table in blocks, and keeps in memory, with one lane and with one for each shard.

python -m tests.lanes_memory [MILLIONS OF ROWS]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sigma_kernel import Environment, every
from sigma_testing import Do
from tests.reliability.workers import ObservedProcesses

SHARDS, COLUMNS, PIECE = 4, 64, 100_000


def write_table(path: Path, rows: int) -> None:
    """Write a table of numbers."""
    draws = np.random.default_rng(0)
    names = [f"x{i}" for i in range(COLUMNS)]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float32()) for name in (*names, "y")])) as writer:
        for _ in range(rows // PIECE):
            values = draws.random((COLUMNS, PIECE), np.float32)
            writer.write_table(pa.table({**dict(zip(names, values, strict=True)), "y": values[0] - values[1]}))


def read_memory(process: int) -> tuple[float, float]:
    """Return the MB of mapped arrays that a process has read, and of its anonymous memory."""
    sizes = re.findall(r"\.npy\n(?:\w.*\n)*?Rss: +(\d+) kB", Path(f"/proc/{process}/smaps").read_text())
    anonymous = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert anonymous is not None
    return sum(map(int, sizes)) / 1e3, int(anonymous[1]) / 1e3


def measure(workers: int, lanes: int) -> Iterator[tuple[float, float]]:
    """Yield what the operator and each worker have read and keep after an epoch."""
    operator = ObservedProcesses(workers=workers, shards=SHARDS, at_least=workers)
    after: list[tuple[float, float]] = []

    def look(context: object) -> None:
        after.extend(read_memory(process) for process in (os.getpid(), *operator.processes()))

    with Environment("lanes", seed=0) as sigma:
        trainer = sigma.create_trainer(
            data={"type": "table", "path": "x.parquet", "target": "y", "cache": "cache", "lanes": lanes,
                  "block_rows": 16_384, "split": {"training": 1.0}},
            network="input() + dense(8) + output() + squared_difference()",
            optimiser="adam", batch_size=8192, backend="numpy", operator=operator,
            hooks={"look": Do(every=every(1, "epoch"), does=look)},
        )  # fmt: skip
        trainer.fit(epochs=1, progress=False)
    yield from after


def show(lanes: int, workers: int) -> None:
    """Print a line of the table."""
    own, *each = measure(workers, lanes)
    listed = ", ".join(f"{read:,.0f} and {kept:,.0f}" for read, kept in each)
    print(f"{lanes} lanes, {workers} workers: {listed}; operator {own[0]:,.0f} and {own[1]:,.0f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        show(*map(int, sys.argv[1:]))
        sys.exit()
    rows, command = int(float((*sys.argv[1:], 2)[0]) * 1e6), [sys.executable, "-m", "tests.lanes_memory"]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with TemporaryDirectory() as folder:
        write_table(Path(folder, "x.parquet"), rows)
        print(f"{rows * COLUMNS * 4 / 1e6:,.0f} MB of inputs; MB read of them, and MB of anonymous memory", flush=True)
        for lanes, workers in ((1, 2), (SHARDS, 1), (SHARDS, 2), (SHARDS, 4)):
            subprocess.run([*command, str(lanes), str(workers)], cwd=folder, env=environment, check=True)
