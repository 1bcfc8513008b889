"""Gather the rows that rules examine: from files, folders of pictures, and data sets in splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from sigma_data.datasets.image_folder import ImageFolder
from sigma_data.datasets.picture_set import PictureSet
from sigma_data.datasets.tabular import Tabular
from sigma_data.derived import strip_views
from sigma_data.examining.alike import LEAST, shrink
from sigma_data.examining.goals import describe_targets
from sigma_data.examining.rows import ExaminedColumn, ExaminedRows, hash_matrix
from sigma_data.examining.tables import CELLS, QUICK, find_table, gather_file, gather_table
from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.folder import list_pictures
from sigma_data.pictures.rows import Pictures
from sigma_data.prepared.blocks import RowBlocks
from sigma_data.sampling import mix
from sigma_data.tables import open_table
from sigma_kernel import Dataset

WIDEST = 1000  # columns of a section that are looked at one by one
ASIDE = ("targets", "weights")  # sections that are no inputs
STEPS = "lengths"  # the section of sequences that are padded

SIZE: Any = (2 * LEAST, 2 * LEAST)  # to which pictures of a folder are brought

Place = Callable[[int], str]


# -- files -------------------------------------------------------------------------------------------------------------
def gather_place(place: Path) -> ExaminedRows:
    """Return the rows of a table, or the pictures of a folder or an archive."""
    if (place.is_dir() or is_archive(place)) and list_pictures(place).pictures:
        return gather_pictures(ImageFolder(place, size=SIZE, fit="stretch", broken="skip"))
    return gather_file(open_table(place))


def gather_pictures(data: PictureSet) -> ExaminedRows:
    """Return the pictures of a data set, which may have splits of its own."""
    if data.list_splits():
        return gather(data, {name: part.encode("targets", 0) for name, part in data.items()})
    every = data.all_rows()[0].encode("targets", 0)
    return evolve(gather(data, {"training": every}), splits={})


# -- splits ------------------------------------------------------------------------------------------------------------
def gather(data: Any, splits: Mapping[str, Dataset], quick: bool = False) -> ExaminedRows:
    """Return the rows of a data set in splits: of a table all columns, of others what the sections hold."""
    kept = {name: split for name, split in splits.items() if not split.drawn_anew}
    ordered = {name: kept[name] for name in sorted(kept, key=lambda name: name != "training")}
    if not ordered:
        return ExaminedRows("data", np.zeros(0, np.uint64))
    sentences = _ask(ordered)
    if isinstance(data, Tabular) and (table := find_table(ordered)) is not None:
        rows = gather_table(data, table, ordered, quick)
        return evolve(rows, sentences=(*sentences, *rows.sentences))
    blocks = any(isinstance(strip_views(split), RowBlocks) for split in ordered.values())
    rows = _gather_sections(ordered, most=QUICK if quick else CELLS if blocks else None)
    total, examined = sum(map(len, ordered.values())), len(rows.keys)
    if examined < total and not quick:
        sentences = (*sentences, f"there are {total:,} rows, of which {examined:,} are examined.")
    grouped = getattr(data, "group", None) not in (None, "")
    return evolve(rows, place=_find_places(data, ordered, rows.splits), sentences=sentences, grouped=grouped)


def _ask(splits: Mapping[str, Dataset]) -> tuple[str, ...]:
    """Return what the data set says itself."""
    if "training" not in splits:
        return ()
    training, others = splits["training"], {name: split for name, split in splits.items() if name != "training"}
    classes = [name for name, spec in training.sections.items() if name not in ASIDE[1:] and not spec.shape]
    return tuple(training.findings([name for name in classes if name not in ("inputs", STEPS)], others))


def _gather_sections(splits: Mapping[str, Dataset], most: int | None) -> ExaminedRows:
    """Return the rows of splits, one after another; with ``most``, of large ones the first, of so many cells in all."""
    first = next(iter(splits.values()))
    width = sum(int(np.prod(spec.shape)) or 1 for spec in first.sections.values())
    share = None if most is None else max(1, most // (width * len(splits)))
    parts = {name: _read_split(split, share) for name, split in splits.items()}
    starts = np.cumsum([0, *(len(part["keys"]) for part in parts.values())])
    ranges = {name: np.arange(starts[i], starts[i + 1]) for i, name in enumerate(parts)}
    whole = {
        name: np.concatenate([part[name] for part in parts.values()])
        for name in parts[next(iter(parts))]
        if all(name in part for part in parts.values())
    }
    names = [*first.column_names("inputs")]
    matrix = whole.get("columns", np.zeros((len(whole["keys"]), 0)))
    names = names if len(names) == matrix.shape[1] else [f"inputs[{i}]" for i in range(matrix.shape[1])]
    columns = {str(name): ExaminedColumn(str(name), matrix[:, i]) for i, name in enumerate(names)}
    return ExaminedRows(
        "data", whole["keys"], columns, [*columns], splits=ranges, pictures=whole.get("pictures"),
        **describe_targets(whole.get("goal"), first),
    )  # fmt: skip


def _read_split(split: Dataset, most: int | None) -> dict[str, np.ndarray]:
    """Return keys, targets, columns and thumbnails of the rows of a split."""
    parts: list[dict[str, np.ndarray]] = []
    rows = 0
    for number in range(split.blocks):
        block = split.block(number)
        parts.append(
            _read_block({name: values[: None if most is None else most - rows] for name, values in block.items()})
        )
        rows += len(parts[-1]["keys"])
        if most is not None and rows >= most:
            break
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _read_block(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    sections = {name: values for name, values in block.items() if name not in ASIDE and values.dtype.kind in "fiub"}
    keys = np.zeros(len(next(iter(block.values()))), np.uint64)
    for values in sections.values():
        keys = mix(keys + hash_matrix(values))
    read = {"keys": keys} | ({"goal": block["targets"]} if "targets" in block else {})
    inputs = sections.get("inputs", np.zeros(0))
    if inputs.ndim == 2 and inputs.shape[1] <= WIDEST and len(sections) == 1:
        read["columns"] = inputs.astype(np.float64)
    if (
        STEPS not in block
        and inputs.ndim in (3, 4)
        and min(inputs.shape[-2:]) >= LEAST
        and inputs.shape[1:-2] in ((), (1,), (3,))
    ):
        read["pictures"] = shrink(inputs)
    return read


def _find_places(data: Any, splits: Mapping[str, Dataset], rows: Mapping[str, np.ndarray]) -> Place:
    """Return how a row is called: by the path of a picture, or by its number in a split."""
    names = [f"{name}: row {{}}".format for name in rows]
    starts = [int(part[0]) if len(part) else 0 for part in rows.values()]
    paths, numbers = list[str](), np.zeros(0, int)
    parts = [split for split in map(strip_views, splits.values()) if isinstance(split, Pictures)]
    if isinstance(data, PictureSet) and len(parts) == len(splits):
        paths, numbers = data.paths, np.concatenate([rows for part in parts for rows in part.rows_of_labels])

    def place(row: int) -> str:
        if paths:
            return paths[int(numbers[row])]
        at = int(np.searchsorted(starts, row, side="right")) - 1
        return names[at](row - starts[at])

    return place
