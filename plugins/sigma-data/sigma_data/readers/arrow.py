"""Parse CSV tables with Arrow, on several cores."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from sigma_data.readers.pieces import Columns, TableLayout

pa: Any = import_module("pyarrow")  # by name, as it is optional
csv: Any = import_module("pyarrow.csv")


def by_arrow(rows: Sequence[str], layout: TableLayout) -> Columns:
    """Parse lines with Arrow; raises ValueError if it cannot."""
    names = [str(i) for i in range(len(layout.kinds))]
    wanted = {name: kind for name, kind in zip(names, layout.kinds, strict=True) if kind is not None}
    table = csv.read_csv(
        pa.BufferReader("\n".join([*rows, ""]).encode()),
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=False, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={name: pa.string() if words else pa.float64() for name, words in wanted.items()},
            include_columns=[*wanted],
            null_values=[],
        ),
    )
    return {
        int(name): table[name].to_pylist() if words else np.array(table[name].to_numpy())
        for name, words in wanted.items()
    }
