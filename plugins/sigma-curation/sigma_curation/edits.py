"""Edit a split of the data: leave rows out, give rows other labels; the data set itself stays as it is.

The edits of a split are plain JSON values: ``{"excluded": [row, ...], "labels": [[row, {section: label}], ...]}``, both
in the order of the rows.  Rows are numbered from 0 over all blocks of the split, as they are stored, before anything is
shuffled.  A label is a raw one: the label of a class, or a value like those of its section before preprocessing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sigma_kernel.arrays import readable
from sigma_kernel.contracts import Dataset
from sigma_kernel.errors import SigmaDataError, suggest_name
from sigma_kernel.graph.node import Spec
from sigma_training.data.dataset import check_rows, read, starts_of

Edits = Mapping[str, Any]


# -- changing them -----------------------------------------------------------------------------------------------------
def exclude_rows(edits: Edits, rows: Iterable[int]) -> Edits:
    """Return edits that leave out these rows as well."""
    return _edits({*edits.get("excluded", ()), *rows}, labels_of(edits))


def include_rows(edits: Edits, rows: Iterable[int]) -> Edits:
    """Return edits that do not leave out these rows."""
    return _edits({*edits.get("excluded", ())}.difference(rows), labels_of(edits))


def relabel_rows(edits: Edits, rows: Iterable[int], label: Mapping[str, Any] | None) -> Edits:
    """Return edits that give these rows other labels, by section; with None, those of the data."""
    labels = labels_of(edits)
    for row in rows:
        labels[row] = {**labels.get(row, {}), **label} if label is not None else {}
    return _edits(edits.get("excluded", ()), labels)


def labels_of(edits: Edits) -> dict[int, Mapping[str, Any]]:
    """Return the new labels by row and section."""
    return dict(edits.get("labels", ()))


def _edits(left_out: Collection[int], labels: Mapping[int, Mapping[str, Any]]) -> Edits:
    """Return edits in their canonical form, without empty parts."""
    parts = {"excluded": sorted(left_out), "labels": [[row, labels[row]] for row in sorted(labels) if labels[row]]}
    return {name: values for name, values in parts.items() if values}


# -- the edited rows ---------------------------------------------------------------------------------------------------
class Edited(Dataset):
    """A data set with edits, on raw and encoded rows; blocks of which every row is left out are dropped.

    ``classes`` are the labels of classes by index, for sections without their own. Raises SigmaDataError for a row that
    does not exist, and if none is left.
    """

    def __init__(self, dataset: Dataset, edits: Edits, classes: Sequence[Any] = ()) -> None:
        self.dataset, self._edits, self._classes = dataset, edits, classes
        starts, labels = starts_of(dataset), labels_of(edits)
        check_rows("data", [*edits.get("excluded", ()), *labels], starts[-1])
        there = np.ones(starts[-1], bool)
        there[edits.get("excluded", [])] = False
        kept = [start + np.flatnonzero(there[start:end]) for start, end in pairwise(starts)]
        self._homes = [home for home, rows in enumerate(kept) if len(rows)]
        self._rows = [kept[home] for home in self._homes]
        self._starts, self._labels = starts, {row: label for row, label in labels.items() if there[row]}
        if not self._homes:
            raise SigmaDataError(f"data: all {starts[-1]} rows would be left out. Keep some.")

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return the sections of the data set."""
        return self.dataset.sections

    @property
    def blocks(self) -> int:
        """Return the number of blocks in which rows are left."""
        return len(self._homes)

    @property
    def open_blocks(self) -> int:
        """Return from how many blocks of the data set rows are drawn at once."""
        return self.dataset.open_blocks

    @property
    def lanes(self) -> int:
        """Return into how many lanes the rows of the data set are dealt."""
        return self.dataset.lanes

    @property
    def bytes_ahead(self) -> int | None:
        """Return how many bytes of blocks of the data set may be read ahead."""
        return self.dataset.bytes_ahead

    def rows(self, block: int) -> int:
        """Return the number of rows that are left in a block."""
        return len(self._rows[block])

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the rows that are left, with their labels."""
        home, rows = self._homes[block], self._rows[block]
        sections = dict(read(self.dataset, home))
        if len(rows) < self.dataset.rows(home):
            sections = {name: values[rows - self._starts[home]] for name, values in sections.items()}
        new = [(place, labels) for place, row in enumerate(rows.tolist()) if (labels := self._labels.get(row))]
        for section in {section for _, labels in new for section in labels}:
            sections[section] = sections[section].copy()
        for place, labels in new:
            for section, label in labels.items():
                sections[section][place] = as_stored(self.dataset, section, label, self._classes)
        return sections

    def class_names(self, section: str) -> Sequence[Any]:
        """Return the labels of the classes of the data set."""
        return self.dataset.class_names(section)

    def column_names(self, section: str) -> Sequence[str]:
        """Return the names of the columns of the data set."""
        return self.dataset.column_names(section)

    def numbers(self, block: int) -> np.ndarray:
        """Return the numbers of the rows of a block in the data set."""
        return self._rows[block]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many rows are left, left out, and left with another label."""
        rows = len(self)
        return {"rows": rows, "excluded": self._starts[-1] - rows, "relabelled": len(self._labels)}


# -- labels ------------------------------------------------------------------------------------------------------------
def as_stored(dataset: Dataset, section: str, label: Any, classes: Sequence[Any] = ()) -> Any:
    """Return a raw label as the encoded section holds it: of a class, its index.

    ``classes`` are the labels of classes of a section that holds indices.  Raises SigmaDataError for an unknown class.
    """
    own = dataset.class_names(section)
    if not own and not (classes and isinstance(label, str)):
        return label
    names = own or classes
    places = [n for n, name in enumerate(names) if name == label and isinstance(name, bool) == isinstance(label, bool)]
    places += [n for n, name in enumerate(names) if str(name) == str(label)]
    if not places:
        hint = suggest_name(str(label), map(str, names), "There are:")
        raise SigmaDataError(f"section {section!r}: {label!r:.80} is not the label of a class.{hint}")
    return places[0]


def check_stored(section: str, stored: Any, held: np.ndarray) -> None:
    """Raise SigmaDataError unless a value can be put into a section, of which ``held`` are rows."""
    value = readable(stored)
    kinds = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}.get(held.dtype.kind, "")
    fits = value.dtype.kind in kinds and value.shape == held.shape[1:]
    if fits and held.dtype.kind in "iuf":
        limits = np.iinfo(held.dtype) if held.dtype.kind != "f" else np.finfo(held.dtype)
        fits = bool((value >= limits.min).all() and (value <= limits.max).all())
    if not fits:
        what = "numbers" if held.dtype.kind != "b" else "booleans"
        shape = f", of shape {held.shape[1:]}" if held.shape[1:] else ", one for each row"
        raise SigmaDataError(f"section {section!r} holds {what}{shape} ({held.dtype}), which {stored!r:.80} is not.")
