"""Inputs and targets from the tables that come with this package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files

import numpy as np

from sigma_data.arrays import Titled
from sigma_data.readers.csv import CsvReader
from sigma_data.sources import local


def read_shipped_table(name: str) -> Mapping[str, np.ndarray]:
    """Return the columns of a file that comes with this package."""
    with as_file(files("sigma_data") / "files" / name) as path:
        return CsvReader().read(local(path))


def features(columns: Mapping[str, np.ndarray]) -> Titled:
    """Return all columns except ``target`` as one array, float32, one row per sample, with their names."""
    inputs = {name: values for name, values in columns.items() if name != "target"}
    stacked = np.stack([*inputs.values()], axis=1, dtype=np.float32, casting="same_kind")
    return Titled(stacked, tuple(inputs))
