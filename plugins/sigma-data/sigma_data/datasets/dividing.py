"""Divide the training split of data that have splits, but none for validation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_data.splitting import split
from sigma_kernel import SigmaConfigError


def list_parts(names: Iterable[str], shares: Mapping[str, float]) -> list[str]:
    """Return the names of all splits, those of ``shares`` in the place of ``training`` if there is no ``validation``.

    Raises SigmaConfigError for a name that is in both.
    """
    parts = [*names]
    if not parts or "validation" in parts:
        return parts
    others = [name for name in parts if name != "training"]
    if twice := [name for name in others if name in shares]:
        raise SigmaConfigError(f"split: the data have a split {twice[0]!r} already. Leave it out.")
    return [*shares, *others]


def divide_training(
    parts: Mapping[str, np.ndarray],
    labels: Arrays,
    how: Divided,
    find_groups: Callable[[np.ndarray], Sequence[Hashable] | None],
) -> Mapping[str, np.ndarray]:
    """Return the rows of each split, those of the training divided if there are none for validation.

    ``labels`` are those of all rows; groups are found for those of the training.
    """
    names = list_parts(parts, how.split)
    if not parts or "validation" in parts:
        return parts
    rows = parts["training"]
    targets = labels.encode("targets", 0).arrays["targets"]
    divided = split(
        Arrays(row=rows, targets=targets[rows]), how.split, how.split_by, how.seed, groups=find_groups(rows)
    )
    by_name = {**parts, **{name: part.block(0)["row"] for name, part in divided.items()}}
    return {name: by_name[name] for name in names}
