"""Print how long tables take to read beside pandas and pyarrow, and the memory: python table_speed.py [ROWS] [COLUMNS].

Not a test: times differ between machines.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from sigma_data import CsvReader, File, Tabular
from sigma_data.tables import open_table

TIMES, TARGET = 9, "c0"


def write_table(path: Path, rows: int, columns: int) -> None:
    """Write a table of numbers and one column of words."""
    draws = np.random.default_rng(0)
    frame = pd.DataFrame(draws.normal(size=(rows, columns - 1)), columns=[f"c{i}" for i in range(columns - 1)])
    frame["colour"] = np.array(["red", "green", "blue", "black"])[draws.integers(0, 4, rows)]
    frame.to_csv(path, index=False, float_format="%.6f")


def write_gaps(path: Path, gaps: Path) -> None:
    """Write the table with one value in a hundred missing."""
    kept = np.random.default_rng(1).uniform(size=997) > 0.01
    with path.open() as lines, gaps.open("w") as out:
        out.write(next(lines))
        for i, line in enumerate(lines):
            row = line.rstrip("\n").split(",")
            out.write(",".join(cell if kept[(i * len(row) + j) % 997] else "" for j, cell in enumerate(row)) + "\n")


def compare_times(ways: Mapping[str, Callable[[], Any]]) -> None:
    """Print the median time of each way, taken in turns, and the ratio to the first."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(TIMES):
        for name, read in ways.items():
            began, worked = time.perf_counter(), time.process_time()
            read()
            seconds[name].append((time.perf_counter() - began, time.process_time() - worked))
    medians = {
        name: [statistics.median(column) for column in zip(*pairs, strict=True)] for name, pairs in seconds.items()
    }
    first = next(iter(medians.values()))
    for name, (wall, work) in medians.items():
        print(f"{name:40} {wall:6.2f} s {wall / first[0]:5.2f} x   processor {work:6.2f} s {work / first[1]:5.2f} x")


def prepare_by_pandas(path: Path) -> np.ndarray:
    """Return the standardised inputs, float32, with the words as one-hot numbers."""
    frame = pd.read_csv(path, engine="pyarrow")
    frame.pop(TARGET)
    values = pd.get_dummies(frame).to_numpy(np.float32)
    numbers = values[:, : frame.shape[1] - 1]
    numbers -= numbers.mean(axis=0)
    numbers /= numbers.std(axis=0)
    return values


def prepare(path: Path, training: float = 1.0) -> np.ndarray:
    """Return the same, of a share of the rows."""
    shares = {"training": training, **({"validation": 1 - training} if training < 1 else {})}
    parts, _ = Tabular(path, TARGET, split=shares).load()
    return parts["training"].block(0)["inputs"].astype(np.float32)


def read_peak(prepare: Callable[[Path], np.ndarray], path: Path, small: Path) -> float:
    """Return the megabytes by which the peak of a fresh process grows, after a small table; on Linux."""
    prepare(small)
    before = read_high_water()
    prepare(path)
    return (read_high_water() - before) / 1024


def read_high_water() -> int:
    """Return the kilobytes of memory that this process had at most."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


def compare_prepared(path: Path, small: Path) -> None:
    """Print the times from the file to the prepared inputs, and the memory that they take."""
    compare_times(
        {
            "pandas, to prepared inputs": lambda: prepare_by_pandas(path),
            "data set table, to prepared inputs": lambda: prepare(path),
            "data set table, 80 % of the rows": lambda: prepare(path, 0.8),
        }
    )
    for way in (prepare_by_pandas, prepare):
        with get_context("spawn").Pool(1) as pool:
            print(f"{way.__name__:40} {pool.apply(read_peak, (way, path, small)):6.0f} MB")


def compare_parquet(table: Path, path: Path) -> None:
    """Print the times of a Parquet file, with a copy of its numbers to one array."""

    def copy(rows: Any) -> np.ndarray:
        return np.column_stack([column.to_numpy() for column in rows.columns if column.type == "double"])

    pd.read_csv(table).to_parquet(path)
    compare_times(
        {
            "pyarrow.parquet.read_table, and a copy": lambda: copy(pq.read_table(path)),
            "open_table of Parquet, and a copy": lambda: copy(open_table(path).read()),
        }
    )


def main(rows: int = 500_000, columns: int = 30) -> None:
    """Write a table, read it in every way, and print the times."""
    with TemporaryDirectory() as folder:
        path, gaps = Path(folder) / "table.csv", Path(folder) / "gaps.csv"
        write_table(path, rows, columns)
        write_gaps(path, gaps)
        print(f"{rows} x {columns}, {path.stat().st_size / 1e6:.0f} MB, median of {TIMES}")
        compare_times(
            {
                "pandas.read_csv(engine='pyarrow')": lambda: pd.read_csv(path, engine="pyarrow"),
                "CsvReader": lambda: CsvReader(text=("colour",)).read(File(path)),
                "open_table": lambda: open_table(path).read(),
                "CsvReader, one value in a hundred missing": lambda: CsvReader(text=("colour",), missing="nan").read(
                    File(gaps)
                ),
            }
        )
        write_table(small := Path(folder) / "small.csv", 1000, columns)
        compare_prepared(path, small)
        compare_parquet(path, Path(folder) / "table.parquet")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
