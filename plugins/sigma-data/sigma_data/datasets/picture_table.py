"""Read tables of paths and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from sigma_data.arrays import Arrays, NamedTargets
from sigma_data.datasets.csv_target import CsvTarget, missing_values
from sigma_data.frames import cells, check_names, columns_of
from sigma_data.labels import Labels, in_order
from sigma_data.pictures.folder import list_pictures, pictures_at
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.readers.csv import CsvReader, separator
from sigma_data.readers.figures import Figures
from sigma_data.sources import local
from sigma_kernel import SigmaDataError


@frozen
class LabelTable:
    """A table with the paths of pictures and their labels: a file, or a data frame.

    Several columns of a ``target`` are numbers, such as 0 and 1 for labels that a picture may have together. With a
    ``separator``, one column holds several words, and the targets are a column of 0 and 1 for each.
    """

    table: Any
    column: str
    target: tuple[str, ...]
    targets: str
    separator: str

    def read(self) -> tuple[list[str], NamedTargets]:
        """Return the path and the target of each row, ordered by path; raises SigmaDataError for what is missing."""
        lines, columns = self._columns()
        name = str(self.table) if self._is_file else "table"
        check_names(columns, [self.column, *self.target], tuple(columns), name)
        paths = cells(columns[self.column], f"{name}: column {self.column!r}").astype(np.dtypes.StringDType()).tolist()
        if "" in paths:
            raise SigmaDataError(f"{name}:{lines[paths.index('')]}: there is no path. Fill it in, or drop the row.")
        order = np.array(sorted(range(len(paths)), key=paths.__getitem__), np.intp)
        words = {label: cells(columns[label], f"{name}: column {label!r}")[order] for label in self.target}
        ordered = [paths[row] for row in order]
        if self.separator:
            return ordered, self._separate([*words.values()], name)
        return ordered, NamedTargets(self._targets(words, lines[order], name), self.target)

    @property
    def _is_file(self) -> bool:
        return isinstance(self.table, str | Path)

    def _columns(self) -> tuple[np.ndarray, Mapping[str, Any]]:
        """Return the number of the line of each row, and the columns by name."""
        if self._is_file:
            source = local(Path(self.table))
            names = (self.column, *self.target)
            delimiter = separator(source, "utf-8-sig")
            return CsvReader(names, names, delimiter=delimiter, missing="nan").table(source)
        columns = columns_of(self.table, "table")
        return np.arange(len(next(iter(columns.values()), ()))), columns

    def _targets(self, columns: Mapping[str, np.ndarray], lines: np.ndarray, name: str) -> np.ndarray | Labels:
        target = CsvTarget(Path(name), [*columns], self.targets, Figures(".", None))
        parsed = [
            target.parse(values, lines, f"column {label!r}: the target") if values.dtype.kind == "T" else values
            for label, values in columns.items()
        ]
        gaps = np.any([missing_values(values) for values in parsed], axis=0)
        if gaps.any():
            raise SigmaDataError(f"{name}:{lines[gaps.argmax()]}: a label is missing. Fill it in, or drop the row.")
        return target.labels(parsed, lines)

    def _separate(self, columns: Sequence[np.ndarray], name: str) -> NamedTargets:
        if len(columns) != 1 or columns[0].dtype.kind != "T":
            raise SigmaDataError(f"{name}: a separator needs one `target`, a column of words. Name that.")
        rows = [{word.strip() for word in cell.split(self.separator)} - {""} for cell in columns[0].tolist()]
        names = in_order(word for words in rows for word in words)
        if not names:
            raise SigmaDataError(f"{name}: there is no label. Check the column of the `target`.")
        places, matrix = {word: i for i, word in enumerate(names)}, np.zeros((len(rows), len(names)), np.float32)
        for row, words in enumerate(rows):
            matrix[row, [places[word] for word in words]] = 1
        return NamedTargets(matrix, names)


def read_listed(root: Path, table: LabelTable) -> LabelledPictures:
    """Return the pictures that a table lists; raises SigmaDataError for paths that leave the folder."""
    if not root.is_dir():
        list_pictures(root)  # raises the error
    paths, targets = table.read()
    return LabelledPictures(pictures_at(root, paths), Arrays(targets=targets), {})
