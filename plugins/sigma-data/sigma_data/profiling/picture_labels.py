"""Find the table of labels in a folder of pictures: which column has paths, and what is to be predicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import isabs, isfile, normpath
from pathlib import Path
from typing import Any

from attrs import field, frozen

from sigma_data.pictures.decoding import ENDS
from sigma_data.pictures.folder import subfolders
from sigma_data.profiling.drafting import choose_task
from sigma_data.profiling.kinds import list_names
from sigma_data.profiling.profile import profile_table
from sigma_data.tables import open_table
from sigma_kernel import SigmaConfigError, SigmaDataError

TABLES = (".csv", ".tsv")
TARGETS = ("label", "labels", "class", "target", "category", "tags")  # names of a column to predict
SEPARATORS = ";|"  # of several labels of one picture
PATHS = 0.5  # share of cells that are paths of pictures, from which on a column holds them


@frozen
class PictureTask:
    """What to predict from pictures: ``outputs`` numbers, as ``classes``, ``labels`` that exclude none, or ``numbers``.

    ``counts`` has the pictures of each class or label. ``settings`` are those of the data set, as TOML values;
    ``folder`` is where its paths start.
    """

    kind: str
    outputs: int
    reason: str
    counts: Mapping[str, int]
    folder: str = ""
    settings: Mapping[str, Any] = field(factory=dict)
    unsure: str = ""


def find_table(root: Path, others: Sequence[str]) -> Path | None:
    """Return the table in a folder, among files that are no pictures; None if there is none, or several."""
    tables = [name for name in others if "/" not in name and name.lower().endswith(TABLES)]
    return root / tables[0] if len(tables) == 1 else None


def read_task(root: Path, place: Path, target: str | None) -> PictureTask:
    """Return what to predict by a table of paths and labels.

    Raises SigmaDataError if no column has paths, and SigmaConfigError if it is not clear what to predict.
    """
    table = open_table(place).read()
    columns = {name: table[name].to_pylist() for name in table.column_names}
    path, folder = _find_paths(root, place, columns)
    names = [name for name in columns if name != path]
    settings = {"table": place.name, "column": path}
    chosen = _choose_targets(place, names, target)
    if len(chosen) > 1:
        return _predict_columns(place, columns, chosen, folder, settings)
    (name,) = chosen
    settings = {**settings, "target": name}
    words = [cell for cell in columns[name] if isinstance(cell, str)]
    for separator in SEPARATORS:
        if any(separator in word for word in words):
            return _predict_words(words, separator, folder, settings)
    task = choose_task(profile_table(table, place.name), name)
    if not task.classes:
        return PictureTask("numbers", 1, task.reason, {}, folder, settings, task.unsure)
    counts = {str(value): count for value, count in Counter(columns[name]).items() if value is not None}
    return PictureTask("classes", task.classes, task.reason, counts, folder, settings, task.unsure)


def _find_paths(root: Path, place: Path, columns: Mapping[str, Sequence[Any]]) -> tuple[str, str]:
    """Return the column of paths, and the folder below the root in which they start."""
    for name, cells in columns.items():
        words = [cell for cell in cells[:100] if isinstance(cell, str)]
        for folder in ("", *subfolders(root)):
            there = sum(_is_picture(root / folder, word) for word in words)
            if words and there > PATHS * len(words):
                return name, folder
    raise SigmaDataError(
        f"{place}: no column has the paths of pictures below {root}. Correct them, or put the pictures of each class "
        "into a folder and move the table elsewhere."
    )


def _is_picture(root: Path, path: str) -> bool:
    """Return whether there is a picture at a path that stays in a folder."""
    inside = not isabs(path) and not normpath(path).startswith("..")
    return inside and path.lower().endswith(ENDS) and isfile(root / path)  # not so for names too long, and for a NUL


def _choose_targets(place: Path, names: Sequence[str], target: str | None) -> tuple[str, ...]:
    """Return the columns to predict: those that are named, or the only one that can be meant."""
    if target is not None:
        several = tuple(name.strip() for name in target.split(","))
        chosen = (target,) if target in names else several
        if unknown := [name for name in chosen if name not in names]:
            raise SigmaConfigError(f"{place}: there is no column {unknown[0]!r}. There are: {list_names(names)}.")
        return chosen
    likely = names if len(names) == 1 else [name for name in names if name.lower() in TARGETS]
    if len(likely) != 1:
        raise SigmaConfigError(
            f"{place}: which column is to be predicted? Name it, or several with commas: --target. There are: "
            f"{list_names(names)}."
        )
    return (likely[0],)


def _predict_columns(
    place: Path,
    columns: Mapping[str, Sequence[Any]],
    names: tuple[str, ...],
    folder: str,
    settings: Mapping[str, Any],
) -> PictureTask:
    """Return the task of several columns: labels if they hold 0 and 1 or booleans, else numbers."""
    settings = {**settings, "target": [*names]}
    for name in names:
        if any(isinstance(cell, str) for cell in columns[name]):
            raise SigmaConfigError(f"{place}: column {name!r} holds words. Predict it alone, or make it 0 and 1.")
    if all(cell in (0, 1) for name in names for cell in columns[name]):
        counts = {name: sum(map(int, columns[name])) for name in names}
        return PictureTask("labels", len(names), f"{len(names)} labels, 0 or 1 each", counts, folder, settings)
    return PictureTask("numbers", len(names), f"{len(names)} numbers", {}, folder, settings)


def _predict_words(words: Sequence[str], separator: str, folder: str, settings: Mapping[str, Any]) -> PictureTask:
    """Return the task of a column that lists several labels of each picture."""
    counts = Counter(word.strip() for cell in words for word in cell.split(separator) if word.strip())
    several = {**settings, "separator": separator}
    return PictureTask("labels", len(counts), f"{len(counts)} labels", dict(sorted(counts.items())), folder, several)
