"""Print how fast a table larger than memory trains beside one in memory: python large_table_speed.py [GB] [FOLDER].

The table, of so many GB of Parquet, and its prepared blocks are written to the folder.  Not a test: times differ
between machines.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sigma_data import Tabular
from sigma_kernel import Environment
from sigma_kernel.contracts import Trainer

COLUMNS, BATCH, HIDDEN = 96, 256, 320
ROUND, ROUNDS = 400, 9  # iterations of a round
GROUP = 1 << 16  # rows
LAYER = f"dense({HIDDEN}, activation='relu')"
NETWORK = f"input() + {LAYER} + {LAYER} + output() + squared_difference()"


def write_table(path: Path, rows: int) -> None:
    """Write random numbers, and a target that depends on them."""
    draws = np.random.default_rng(0)
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(COLUMNS)] + [("y", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, rows, GROUP):
            values = draws.normal(size=(COLUMNS, min(GROUP, rows - first)))
            writer.write_table(pa.table([*values, values[:8].sum(axis=0)], schema=schema), row_group_size=GROUP)


def read_memory(name: str) -> float:
    """Return an amount of memory of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(name))


@contextmanager
def watching(what: str) -> Iterator[None]:
    """Print the seconds, and the most anonymous memory meanwhile."""
    most, done, began = [0.0], Event(), time.perf_counter()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], read_memory("RssAnon"))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print(f"{what:46} {time.perf_counter() - began:8.1f} s   at most {most[0]:6.0f} MB anonymous", flush=True)


def create(sigma: Environment, name: str, data: Tabular) -> Trainer:
    """Return a trainer on a table, after its first burst."""
    trainer = sigma.create_trainer(name, data=data, network=NETWORK, batch_size=BATCH, optimiser="adam", hooks={})
    sigma.prepare()
    trainer.fit(iterations=ROUND, progress=False)
    return trainer


def time_round(trainer: Trainer) -> float:
    """Return the milliseconds of an iteration."""
    began = time.perf_counter()
    trainer.fit(iterations=ROUND, progress=False)
    return 1000 * (time.perf_counter() - began) / ROUND


def measure(folder: Path, size: float) -> None:
    """Print times of preparation, of an epoch, and of iterations in turns."""
    rows = int(size * 1e9 / (8 * (COLUMNS + 1)))
    large, small = folder / "large.parquet", folder / "small.parquet"
    if not large.exists():
        write_table(large, rows)
        write_table(small, 100_000)
    print(f"{large.stat().st_size / 1e9:.1f} GB of Parquet, {rows:,} rows of {COLUMNS} numbers")
    how = {"cache": folder / "cache", "memory": "128 MB"}
    with Environment("large", seed=0) as first, Environment("small", seed=0) as second:
        with watching("prepared, and the first iterations"):
            trainer = create(first, "large", Tabular(large, "y", **how))
        with watching("the rest of the first epoch"):
            trainer.fit(epochs=1, progress=False)
        held = create(second, "small", Tabular(small, "y"))
        pairs = [(time_round(trainer), time_round(held)) for _ in range(ROUNDS)]
    medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
    ratio = statistics.median(small / large for large, small in pairs)
    print(f"{medians[0]:.3f} ms an iteration in blocks, {medians[1]:.3f} ms in memory: {ratio:.2f} of its rate")


if __name__ == "__main__":
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    if len(sys.argv) > 2:
        measure(Path(sys.argv[2]), size)
    else:
        with TemporaryDirectory() as folder:
            measure(Path(folder), size)
