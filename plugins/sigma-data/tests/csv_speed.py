"""Print how long a table takes to read, in seconds of processor time: python csv_speed.py [ROWS] [COLUMNS].

Not a test: times differ between machines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sigma_data import Csv, CsvReader, File
from sigma_data.readers import pieces
from sigma_kernel import Source


def seconds(read: Callable[[], Any]) -> float:
    """Return the processor time of one call."""
    began = time.process_time()
    read()
    return time.process_time() - began


def with_gaps(path: Path) -> Source:
    """Return the table with one value in a hundred missing."""
    kept = np.random.default_rng(1).uniform(size=997) > 0.01
    cells = path.read_text().split("\n")
    table = [cells[0]]
    for i, line in enumerate(cells[1:-1]):
        row = line.split(",")
        table.append(",".join(cell if kept[(i * len(row) + j) % 997] else "" for j, cell in enumerate(row)))
    path.with_name("gaps.csv").write_text("\n".join([*table, ""]))
    return File(path.with_name("gaps.csv"))


def main(rows: int = 500_000, columns: int = 30) -> None:
    """Write a table of numbers, read it in every way, and print the times."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        values = np.random.default_rng(0).normal(size=(rows, columns))
        np.savetxt(path, values, "%.6f", ",", header=",".join(f"c{i}" for i in range(columns)), comments="")
        source, last = File(path), columns - 1
        names, holed = [str(i) for i in range(columns)], with_gaps(path)
        print(f"{rows} x {columns}, {path.stat().st_size / 1e6:.0f} MB")
        print(f"numpy.loadtxt         {seconds(lambda: np.loadtxt(path, delimiter=',', skiprows=1)):6.2f} s")
        for library in ("numpy", "arrow") if find_spec("pyarrow") else ("numpy",):
            pieces._library.cache_clear()
            if library == "numpy":
                pieces.find_spec = lambda name: None
            print(f"CsvReader, {library:10} {seconds(lambda: CsvReader().read(source)):6.2f} s")
            print(f"Csv, {library:16} {seconds(lambda: Csv(path, f'c{last}').all_rows()):6.2f} s")
            print(f"with gaps, {library:10} {seconds(lambda: CsvReader(missing='nan').read(holed)):6.2f} s")
            pieces.find_spec = find_spec
        careful = CsvReader(header=True)
        print(
            f"CsvReader, with care  {seconds(lambda: careful._carefully(source, names, range(columns), set())):6.2f} s"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
