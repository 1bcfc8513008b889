"""Gather the rows that rules examine: from files, folders of pictures, and data sets in splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from sigma_data.datasets.image_folder import ImageFolder
from sigma_data.datasets.tabular import Tabular
from sigma_data.derived import strip_views
from sigma_data.examining.alike import LEAST, shrink
from sigma_data.examining.rows import ExaminedColumn, ExaminedRows, hash_columns, hash_matrix
from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.folder import list_pictures
from sigma_data.pictures.labelled import split_folders
from sigma_data.pictures.rows import Pictures
from sigma_data.profiling.encoders import choose_for
from sigma_data.profiling.kinds import infer_kind
from sigma_data.sampling import mix
from sigma_data.subset import Subset
from sigma_data.tables import open_table
from sigma_kernel import Dataset

MOST = 1 << 20  # rows of a table that are examined
CELLS = 1 << 26  # cells that are held, 512 MB
QUICK = 1 << 24  # cells that a quick examination reads
WIDEST = 1000  # columns of a section that are looked at one by one
CLASSES = 4  # rows for each distinct whole number, from which on these are classes
ASIDE = ("targets", "weights")  # sections that are no inputs

SIZE: Any = (2 * LEAST, 2 * LEAST)  # to which pictures of a folder are brought

Place = Callable[[int], str]


# -- files -------------------------------------------------------------------------------------------------------------
def gather_place(place: Path) -> ExaminedRows:
    """Return the rows of a table, or the pictures of a folder or an archive."""
    if (place.is_dir() or is_archive(place)) and list_pictures(place).pictures:
        return _gather_folder(ImageFolder(place, size=SIZE, fit="stretch", broken="skip"))
    return _gather_file(open_table(place))


def _gather_folder(data: ImageFolder) -> ExaminedRows:
    """Return the pictures of a folder; its folders may be splits."""
    if split_folders(data.folder):
        return gather(data, {name: part.encode("targets", 0) for name, part in data.items()})
    every = data.all_rows()[0].encode("targets", 0)
    return evolve(gather(data, {"training": every}), splits={})


def _gather_file(source: Any) -> ExaminedRows:
    """Return the first rows of a table; its inputs are the columns that the data set ``table`` would take."""
    table, most = _read_first(source)
    columns = {name: read_column(name, table[name]) for name in table.column_names}
    inputs = [name for name in columns if choose_for(infer_kind(name, table[name]), table[name]) is not None]
    keys = hash_columns([column.values for column in columns.values()], table.num_rows)
    notes = [f"there are more than {most:,} rows, of which the first {most:,} are examined."] if most else []
    return ExaminedRows(source.name, keys, columns, inputs, place=source.place, sentences=notes)


def _read_first(source: Any) -> tuple[Any, int]:
    """Return at most MOST rows and CELLS of a table, as one of Arrow, and how many if there are more, else 0."""
    pa, rows = import_module("pyarrow"), 0
    parts: list[Any] = []
    most = min(MOST, max(1, CELLS // len(source.schema.names)))
    for batch in source:
        if rows == most:
            return pa.Table.from_batches(parts, source.schema), most
        parts.append(batch.slice(0, most - rows))
        rows += len(parts[-1])
        if len(parts[-1]) < len(batch):
            return pa.Table.from_batches(parts, source.schema), most
    return pa.Table.from_batches(parts, source.schema), 0


def read_column(name: str, column: Any) -> ExaminedColumn:
    """Return a column of Arrow, in chunks, as numbers, or as codes of its values."""
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = pc.cast(pc.cast(column, pa.timestamp("us")), pa.int64())
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.int8())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers = pc.fill_null(pc.cast(column, pa.float64(), safe=False), float("nan"))
        return ExaminedColumn(name, np.asarray(numbers, np.float64))
    if not pa.types.is_string(kind):
        column = pa.chunked_array([[None if cell is None else repr(cell) for cell in column.to_pylist()]], pa.string())
    codes = pc.dictionary_encode(column).combine_chunks()
    values = np.asarray(pc.fill_null(codes.indices, -1).to_numpy(zero_copy_only=False), np.int64)
    return ExaminedColumn(name, values, codes.dictionary.to_pylist())


# -- splits ------------------------------------------------------------------------------------------------------------
def gather(data: Any, splits: Mapping[str, Dataset], quick: bool = False) -> ExaminedRows:
    """Return the rows of a data set in splits: of a table all columns, of others what the sections hold."""
    kept = {name: split for name, split in splits.items() if not split.drawn_anew}
    ordered = {name: kept[name] for name in sorted(kept, key=lambda name: name != "training")}
    if not ordered:
        return ExaminedRows("data", np.zeros(0, np.uint64))
    rows = _gather_sections(ordered, most=QUICK if quick else None)
    plain = {name: strip_views(split) for name, split in ordered.items()}
    rows = evolve(rows, place=_find_places(data, plain, rows.splits), sentences=_ask(ordered))
    if isinstance(data, Tabular) and all(isinstance(split, Subset) for split in plain.values()):
        return _add_table(data, plain, rows)
    return evolve(rows, grouped=getattr(data, "group", None) not in (None, ""))


def _ask(splits: Mapping[str, Dataset]) -> tuple[str, ...]:
    """Return what the data set says itself."""
    if "training" not in splits:
        return ()
    training, others = splits["training"], {name: split for name, split in splits.items() if name != "training"}
    classes = [name for name, spec in training.sections.items() if name not in ASIDE[1:] and not spec.shape]
    return tuple(training.findings([name for name in classes if name != "inputs"], others))


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
    goal, labels = _read_goal(whole.get("goal"), first.class_names("targets"))
    indicators = _read_indicators(whole.get("goal"))
    if indicators is not None:
        labels = getattr(first, "learned", {}).get("targets", {}).get("targets", ())
    return ExaminedRows(
        "data", whole["keys"], columns, [*columns], goal=goal, indicators=indicators, labels=labels, splits=ranges,
        pictures=whole.get("pictures"), target_keys=hash_matrix(whole["goal"]) if "goal" in whole else None,
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
    if inputs.ndim in (3, 4) and min(inputs.shape[-2:]) >= LEAST and inputs.shape[1:-2] in ((), (1,), (3,)):
        read["pictures"] = shrink(inputs)
    return read


def _read_goal(values: np.ndarray | None, labels: Sequence[Any]) -> tuple[np.ndarray | None, Sequence[Any]]:
    """Return targets as class indices or as numbers, one for each row, with the labels; None for others."""
    if values is None or values.size != len(values):
        return None, ()
    flat = values.reshape(-1)
    whole = values.ndim == 1 and flat.dtype.kind in "iu"
    if whole and (len(labels) or len(np.unique(flat)) * CLASSES <= len(flat)):
        return flat.astype(np.int64), labels
    return flat.astype(np.float64), ()


def _read_indicators(values: np.ndarray | None) -> np.ndarray | None:
    """Return targets as labels, several a row, that it has or not; None if they are others."""
    if values is None or values.ndim != 2 or values.shape[1] < 2 or not ((values == 0) | (values == 1)).all():
        return None
    return np.asarray(values, bool)


def _find_places(data: Any, splits: Mapping[str, Dataset], rows: Mapping[str, np.ndarray]) -> Place:
    """Return how a row is called: by the path of a picture, or by its number in a split."""
    names = [f"{name}: row {{}}".format for name in rows]
    starts = [int(part[0]) if len(part) else 0 for part in rows.values()]
    paths, numbers = list[str](), np.zeros(0, int)
    parts = [split for split in splits.values() if isinstance(split, Pictures)]
    if isinstance(data, ImageFolder) and len(parts) == len(splits):
        paths, numbers = data.paths, np.concatenate([rows for part in parts for rows in part.rows_of_labels])

    def place(row: int) -> str:
        if paths:
            return paths[int(numbers[row])]
        at = int(np.searchsorted(starts, row, side="right")) - 1
        return names[at](row - starts[at])

    return place


def _add_table(data: Tabular, splits: Mapping[str, Any], rows: ExaminedRows) -> ExaminedRows:
    """Return the rows as the table has them, with all of its columns, and with places in its file."""
    table, numbers, roles, source = data.read_examined()
    columns = {name: read_column(name, table[name]) for name in table.column_names}
    read = {name for extractor in splits["training"].tables.values() for name in getattr(extractor, "names", ())}
    inputs = [name for name in roles.inputs if name in read]
    parts = {name: splits[name].rows_of_dataset[: len(part)] for name, part in rows.splits.items()}
    goal = None
    if rows.goal is not None:
        goal = np.full(table.num_rows, -1 if rows.goal.dtype.kind == "i" else np.nan, rows.goal.dtype)
        for name, part in rows.splits.items():
            goal[parts[name]] = rows.goal[part]
    indicators = None
    if rows.indicators is not None:
        indicators = np.zeros((table.num_rows, rows.indicators.shape[1]), bool)
        for name, part in rows.splits.items():
            indicators[parts[name]] = rows.indicators[part]
    return evolve(
        rows, name=source.name, keys=hash_columns([columns[name].values for name in inputs], table.num_rows),
        columns=columns, inputs=inputs, target=roles.targets[0], goal=goal, indicators=indicators, splits=parts,
        target_keys=hash_columns([columns[name].values for name in roles.targets], table.num_rows),
        place=lambda row: source.place(int(numbers[row])), leave_out='write {} = "exclude" below [data.columns].',
        grouped=bool(roles.group),
    )  # fmt: skip
