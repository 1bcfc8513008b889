"""Describe the rows of a run, to recognise them when its data are read again.

Columns and classes are matched by name (:meth:`Dataset.align`, :meth:`Dataset.encode`).  Rows have numbers, by which
data are split, edited and resumed in the middle of an epoch: they must be the same rows, in the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from math import prod
from typing import Any

import numpy as np

from sigma_kernel.contracts import Dataset
from sigma_training.data.dataset import read

MOST = 2**26  # bytes of a split that are read for its digest; of more, evenly spaced rows or blocks


def describe_rows(splits: Mapping[str, Dataset], samples: Mapping[str, Any], used: Collection[str]) -> dict[str, str]:
    """Return the number of rows of each split, and a digest of the sections that are ``used``.

    ``samples`` has the shape and the dtype of sections.  Rows without stable numbers, as of a generator, are left out.
    """
    dtypes = {name: samples[name][1] for name in sorted(used) if name in samples}
    return {name: f"{len(rows)} {_digest(rows, dtypes)}" for name, rows in splits.items() if rows.has_row_numbers}


def changed_rows(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return what has changed, for each split whose rows are not those that were described."""
    return {name: _change(name, then[name], now[name]) for name in now if then.get(name, now[name]) != now[name]}


def _change(name: str, *described: str) -> str:
    then, now = (text.partition(" ")[0] for text in described)
    how = f"{then} then, {now} now" if then != now else f"{now} as before, with other values or in another order"
    return f"the rows of {name!r} have changed since the training: {how}"


def _digest(rows: Dataset, dtypes: Mapping[str, str]) -> str:
    """Return a digest of the values of sections, as numbers of these dtypes where that loses nothing."""
    size = len(rows) * sum(prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in rows.sections.values())
    digest, step = hashlib.sha256(), max(1, -(-size // MOST))
    for number in range(0, rows.blocks, step if rows.blocks > 1 else 1):
        block = read(rows, number)
        for name in (section for section in dtypes if section in block):
            values = block[name] if rows.blocks > 1 else block[name][::step]
            digest.update(_content(values, dtypes[name]))
    return digest.hexdigest()[:32]


def _content(values: np.ndarray, dtype: str) -> Any:
    """Return the bytes of values, as numbers of a dtype where that loses at most digits; texts whatever the longest is.

    Earlier versions read tables as floats of 32 bits: the rows of their runs are known by these.
    """
    if values.dtype.kind not in "biuf":
        return "\0".join(map(str, values.reshape(-1).tolist())).encode("utf-8", "surrogatepass")
    if dtype.startswith(("bool", "int", "uint", "float")):
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype(dtype, copy=False)
        digits = values.dtype.kind == cast.dtype.kind == "f"
        values = cast if digits or np.array_equal(cast, values) else values
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
