"""The targets of saved datasets, those of all splits together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from sigma_data.arrays import NamedTargets
from sigma_data.datasets.tabular import read_targets
from sigma_data.extractors.columns import as_tuple
from sigma_data.tables.batches import reading
from sigma_huggingface.folder import open_saved
from sigma_kernel import SigmaDataError


@frozen
class Wanted:
    """What is to be predicted: the columns, what they hold, what rows without a target do; and that of groups."""

    target: str | tuple[str, ...]
    targets: str
    missing: str
    group: str = ""


@frozen(eq=False)
class SavedLabels:
    """The targets of the rows that are ``kept``, by their numbers in all parts, of which ``starts`` are the first."""

    targets: NamedTargets
    kept: np.ndarray
    starts: np.ndarray
    groups: tuple[Hashable, ...] | None

    @property
    def rows(self) -> int:
        """Return the number of rows of all parts, with those that are not kept."""
        return int(self.starts[-1])

    def select_groups(self, rows: np.ndarray) -> tuple[Hashable, ...] | None:
        """Return the groups of some kept rows; None if there are no groups."""
        return None if self.groups is None else tuple(self.groups[row] for row in rows)

    def divide(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the places among the kept rows of each part, by name; nothing without names."""
        homes = np.searchsorted(self.starts, self.kept, side="right") - 1
        return {name: np.flatnonzero(homes == part) for part, name in enumerate(names)}


def read_labels(folders: Sequence[Path], wanted: Wanted) -> SavedLabels:
    """Return the targets of saved datasets; raises SigmaDataError for those that are missing, unless dropped."""
    names = tuple(map(str, as_tuple(wanted.target)))
    tables = [open_saved(folder) for folder in folders]
    read = [*dict.fromkeys((*names, *filter(None, [wanted.group])))]
    parts = [table.read(read) for table in tables]
    with reading(str(folders[0])):
        table = pa.concat_tables(parts, promote_options="permissive")
    starts = np.cumsum([0, *map(len, parts)])

    def place(row: int) -> str:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return tables[part].place(row - int(starts[part]))

    there = np.all([np.asarray(table[name].is_valid()) for name in read], axis=0)
    kept = _keep(there, wanted, place, str(folders[0]))
    rows = table.take(kept)
    values = read_targets(rows, names, wanted.targets, lambda row: place(int(kept[row])), str(folders[0]))
    groups = tuple(rows[wanted.group].to_pylist()) if wanted.group else None
    return SavedLabels(NamedTargets(values, names), kept, starts, groups)


def _keep(there: np.ndarray, wanted: Wanted, place: Any, where: str) -> np.ndarray:
    """Return the numbers of the rows with a target."""
    if wanted.missing == "refuse" and not there.all():
        first, lost = place(int(np.flatnonzero(~there)[0])), f"in {len(there) - there.sum():,} of {len(there):,} rows"
        raise SigmaDataError(
            f"{first}: the target or the group is missing, {lost}. Fill it in, or set missing_targets = 'drop'."
        )
    if not there.any():
        raise SigmaDataError(f"{where}: no row has a target. Check the column.")
    return np.flatnonzero(there)
