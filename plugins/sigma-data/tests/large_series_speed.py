"""Print the memory and time that a series larger than memory takes: python large_series_speed.py [ROWS] [FOLDER].

The table, of 50 series, and its prepared rows are written to the folder.  Not a test: times differ between machines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from large_table_speed import GROUP, read_memory, watching

from sigma_data import Series
from sigma_kernel import Dataset

SERIES, COLUMNS, HOUR = 50, 16, 3_600_000_000  # and microseconds


def write_series(path: Path, rows: int) -> None:
    """Write hourly numbers of several series, their rows in the order of time."""
    draws, names = np.random.default_rng(0), np.array([f"s{i}" for i in range(SERIES)])
    columns = [(f"c{i}", pa.float64()) for i in range(COLUMNS)]
    schema = pa.schema([("at", pa.timestamp("us")), ("shop", pa.string()), *columns])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=["shop"]) as writer:
        for first in range(0, rows, GROUP):
            numbers = np.arange(first, min(first + GROUP, rows))
            values = draws.normal(size=(COLUMNS, len(numbers)))
            times = pa.array(numbers // SERIES * HOUR, pa.timestamp("us"))
            writer.write_table(pa.table([times, pa.array(names[numbers % SERIES]), *values], schema=schema))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Print the processor time, beside what :func:`watching` prints."""
    began = time.process_time()
    with watching(what):
        yield
    print(f"{'':46} {time.process_time() - began:8.1f} s of processor time", flush=True)


def open_training(folder: Path) -> Dataset:
    """Return the windows of the training."""
    return Series(
        folder / "series.parquet", "c0", "at", 48, 6, group="shop", cache=folder / "cache", memory="128 MB"
    )["training"]  # fmt: skip


def measure(folder: Path, rows: int) -> None:
    """Print what it takes to prepare the rows, to open them again, and to read all blocks."""
    path = folder / "series.parquet"
    if not path.exists():
        write_series(path, rows)
    print(f"{path.stat().st_size / 1e9:.1f} GB of Parquet, {rows:,} rows of {COLUMNS} numbers")
    with working("prepared"):
        open_training(folder)
    with working("opened again"):
        training = open_training(folder)
    print(f"{read_memory('RssAnon'):.0f} MB anonymous are left")
    with working(f"{training.blocks:,} blocks read"):
        total = sum(float(training.block(block)["inputs"].sum()) for block in range(training.blocks))
    print(f"{training.blocks:,} blocks of {training.rows(0)} windows; sum {total:.3f}")


if __name__ == "__main__":
    count = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    if len(sys.argv) > 2:
        measure(Path(sys.argv[2]), count)
    else:
        with TemporaryDirectory() as name:
            measure(Path(name), count)
