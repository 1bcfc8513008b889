"""Read what ``save_to_disk`` of Hugging Face's library ``datasets`` writes: files of Arrow, described in JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sigma_data import File
from sigma_data.tables import RecordBatches, open_table
from sigma_data.tables.folder import open_files
from sigma_kernel import SigmaDataError

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
LONGEST = 1 << 24  # bytes of a description
FILES = ("Image", "Audio")  # kinds of columns with a file in each row
NAMES = {"train": "training", "valid": "validation", "val": "validation", "dev": "validation"}


def is_saved(folder: Path) -> bool:
    """Return whether a folder holds a dataset."""
    return (folder / STATE).is_file()


def holds_datasets(folder: Path) -> bool:
    """Return whether a folder holds a dataset, or a dictionary of these."""
    return is_saved(folder) or (folder / SPLITS).is_file()


def is_single(folder: Path) -> bool:
    """Return whether a folder holds one dataset; raises SigmaDataError for a dictionary of several."""
    if not is_saved(folder) and (names := list_splits(folder)):
        raise SigmaDataError(
            f"{folder}: holds several datasets: {', '.join(names)}. Predict from one of them, such as "
            f"{folder / names[-1]}."
        )
    return is_saved(folder)


def list_splits(folder: Path) -> list[str]:
    """Return the names of the splits of a saved dictionary of datasets; none for a single dataset."""
    if not (folder / SPLITS).exists():
        return []
    names: Any = read_json(folder / SPLITS).get("splits")
    if not _are_names(names):
        raise SigmaDataError(f"{folder / SPLITS}: names no splits. Save the dataset again.")
    for name in names:
        _check_name(folder, name)
    return [*names]


def split_saved(folder: Path) -> dict[str, Path]:
    """Return the folder of each split of a saved dictionary, that for training first; none for a single dataset.

    Raises SigmaDataError without one for training, and for several of one name.
    """
    listed = list_splits(folder)
    names = {NAMES.get(name, name): folder / name for name in listed}
    if len(names) < len(listed):
        twice = Counter(NAMES.get(name, name) for name in listed).most_common(1)[0][0]
        raise SigmaDataError(f"{folder}: several splits are {twice!r}. Rename all but one.")
    if listed and "training" not in names:
        raise SigmaDataError(f"{folder}: has no split 'train', only {', '.join(names)}. Rename one.")
    return {"training": names["training"], **names} if listed else {}


def open_saved(folder: Path) -> RecordBatches:
    """Return the rows of a saved dataset, without pictures and sounds; classes are their names."""
    files = list_files(folder)
    table = open_files(files, folder, str(folder), lambda path: open_table(File(path), format="stream"))
    return _name_classes(_without_files(table, folder), read_classes(folder))


def _without_files(table: RecordBatches, folder: Path) -> RecordBatches:
    """Return a table without columns of pictures and sounds, of which bytes and path are columns each."""
    files = {name for kind in FILES for name in find_columns(folder, kind)}
    names = [name for name in table.schema.names if name not in files and name.rpartition(".")[0] not in files]
    if len(names) == len(table.schema.names):
        return table
    schema = pa.schema([table.schema.field(name) for name in names])

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        return table.start(names if columns is None else columns)

    return RecordBatches(table.name, schema, table.rows, start, table.locate, table.stamp)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of JSON."""
    with File(path).open() as stream:
        text = stream.read(LONGEST + 1)
    try:
        value = json.loads(text) if len(text) <= LONGEST else None
    except (ValueError, RecursionError) as error:
        raise SigmaDataError(f"{path}: is not JSON: {error}. Save the dataset again.") from None
    if not isinstance(value, dict):
        raise SigmaDataError(f"{path}: is no object of JSON, or too long. Save the dataset again.")
    return value


def list_files(folder: Path) -> list[Path]:
    """Return the files of Arrow of a saved dataset, in the order of its rows."""
    if not folder.is_dir():
        raise SigmaDataError(f"{folder}: there is no such folder. Check the path.")
    if not is_saved(folder):
        raise SigmaDataError(f"{folder}: holds no dataset, as it has no {STATE}. Save one with save_to_disk.")
    state = read_json(folder / STATE)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise SigmaDataError(f"{folder}: selects rows by a file of indices. Save the dataset again.")
    files = state.get("_data_files")
    names: list[Any] = [file.get("filename") if isinstance(file, dict) else None for file in _as_list(files)]
    if not _are_names(names):
        raise SigmaDataError(f"{folder / STATE}: names no files. Save the dataset again.")
    return [_check_name(folder, name) for name in names]


def _check_name(folder: Path, name: str) -> Path:
    """Return the path of a name in a folder; raises SigmaDataError for one that leaves it."""
    path = folder / name
    if Path(name).name != name or "\0" in name or not path.resolve().is_relative_to(folder.resolve()):
        raise SigmaDataError(f"{folder}: {name!r} leaves the folder. Save the dataset again.")
    return path


def read_features(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the description says of each column; nothing of those that it does not describe."""
    features = read_json(folder / INFO).get("features") if (folder / INFO).exists() else None
    held = features.items() if isinstance(features, dict) else ()
    return {column: about for column, about in held if isinstance(about, dict)}


def find_columns(folder: Path, kind: str) -> list[str]:
    """Return the columns of a kind of features, such as ``Image``."""
    return [column for column, about in read_features(folder).items() if about.get("_type") == kind]


def read_classes(folder: Path) -> dict[str, list[str]]:
    """Return the names of the classes of each column that is a ``ClassLabel``."""
    features = read_features(folder)
    classes: dict[str, Any] = {name: features[name].get("names") for name in find_columns(folder, "ClassLabel")}
    for column, names in classes.items():
        if not _are_names(names):
            raise SigmaDataError(f"{folder / INFO}: the classes of column {column!r} have no names. Save it again.")
    return classes


def _are_names(values: Any) -> bool:
    return bool(values) and all(isinstance(value, str) for value in _as_list(values, [None]))


def _as_list(value: Any, otherwise: Sequence[Any] = ()) -> Sequence[Any]:
    return value if isinstance(value, list) else otherwise


def _name_classes(table: RecordBatches, classes: Mapping[str, Sequence[str]]) -> RecordBatches:
    """Return a table with the names of classes in the place of their numbers; -1 is missing."""
    names = {column: pa.array(names, pa.string()) for column, names in classes.items() if column in table.schema.names}

    def rename(column: str, values: Any, row: int) -> Any:
        numbers = pc.if_else(pc.equal(values, -1), pa.scalar(None, values.type), values)
        outside = pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, len(names[column])))
        if pc.any(outside).as_py():
            at = row + pc.index(outside, True).as_py()
            raise SigmaDataError(
                f"{table.place(at)}: column {column!r} holds {values[at - row]}, which is none of {len(names[column])} "
                "classes. Save the dataset again."
            )
        return names[column].take(numbers)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        row = 0
        for batch in table.start(columns):
            arrays = [rename(name, batch[name], row) if name in names else batch[name] for name in batch.schema.names]
            yield pa.record_batch(arrays, schema=pa.schema([schema.field(name) for name in batch.schema.names]))
            row += batch.num_rows

    schema = pa.schema([(field.name, pa.string() if field.name in names else field.type) for field in table.schema])
    return RecordBatches(table.name, schema, table.rows, start, table.locate, table.stamp)
