"""Several files as one table: folders, partitions ``key=value``, and patterns of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from sigma_data.tables.batches import RecordBatches, plain_schema
from sigma_data.tables.cells import join_kinds
from sigma_kernel import SigmaDataError

MOST = 100_000  # files
NULL = "__HIVE_DEFAULT_PARTITION__"

Keys = dict[str, str | None]


def list_files(folder: Path) -> list[Path]:
    """Return the files in a folder and those within it, sorted; hidden ones and those of ``_`` are left out."""
    files = []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith((".", "_")) for part in inner):
            _check_within(path, folder)
            files.append(path)
        if len(files) > MOST:
            raise SigmaDataError(f"{folder}: holds more than {MOST} files. Merge some.")
    if not files:
        raise SigmaDataError(f"{folder}: holds no file. Check the path.")
    return files


def _check_within(path: Path, folder: Path) -> None:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise SigmaDataError(f"{path}: is a link out of the folder {folder}. Give the files themselves.")


def keys_of(path: Path, folder: Path) -> Keys:
    """Return the values that the names of folders give: ``year=2024/city=Paris``."""
    parts = [part.partition("=") for part in path.relative_to(folder).parts[:-1] if "=" in part]
    return {unquote(key): None if value == NULL else unquote(value) for key, _, value in parts}


def open_files(
    files: Sequence[Path], folder: Path, name: str, open_one: Callable[[Path], RecordBatches]
) -> RecordBatches:
    """Return the rows of all files, in order; SigmaDataError if the columns of one differ from those of the first."""
    tables = [open_one(path) for path in files]
    keys = [keys_of(path, folder) for path in files]
    schema = _join_schemas(tables, keys, name)
    counts = [table.rows for table in tables]
    rows = None if None in counts else sum(count or 0 for count in counts)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        wanted = schema if columns is None else pa.schema([schema.field(column) for column in columns])
        for table, own in zip(tables, keys, strict=True):
            yield from _adapt(table, own, wanted)

    def locate(row: int) -> str:
        left = row
        for table in tables:
            count = table.rows if table.rows is not None else sum(batch.num_rows for batch in table)
            if left < count:
                return table.place(left)
            left -= count
        return f"{name}: row {row}"

    return RecordBatches(name, schema, rows, start, locate, lambda: [table.stamp() for table in tables])


def _adapt(table: RecordBatches, keys: Keys, schema: Any) -> Iterator[Any]:
    there = [name for name in schema.names if name not in keys]
    for batch in table if len(there) == len(table.schema) else table.read(there or table.schema.names[:1]).to_batches():
        columns = [
            pa.repeat(pa.scalar(keys[column.name], pa.string()), batch.num_rows).cast(column.type)
            if column.name in keys
            else _cast(batch[column.name], column.type)
            for column in schema
        ]
        yield pa.record_batch(columns, schema=schema)


def _cast(column: Any, kind: Any) -> Any:
    return pa.nulls(len(column), kind) if column.null_count == len(column) else column.cast(kind)


def _join_schemas(tables: Sequence[RecordBatches], keys: Sequence[Keys], name: str) -> Any:
    first = tables[0]
    kinds = {column.name: column.type for column in first.schema}
    for table, own in zip(tables, keys, strict=True):
        if {*table.schema.names} != {*kinds}:
            odd = sorted({*table.schema.names} ^ {*kinds})[0]
            raise SigmaDataError(
                f"{table.name}: column {odd!r} is in {first.name if odd in kinds else table.name} alone. Give files "
                "with the same columns."
            )
        if own.keys() != keys[0].keys() or own.keys() & kinds.keys():
            raise SigmaDataError(
                f"{table.name}: its folders name {sorted(own)}; those of {first.name}, {sorted(keys[0])}. "
                "Name the same keys."
            )
        for column in table.schema:
            joined = join_kinds(kinds[column.name], column.type)
            if joined == pa.string() and not joined == kinds[column.name] == column.type:
                joined = _join_with_gaps(table, first, column, kinds[column.name])
            kinds[column.name] = joined
    fields = [*kinds.items(), *((key, _key_type([own[key] for own in keys])) for key in keys[0])]
    return plain_schema(pa.schema(fields), name)


def _join_with_gaps(table: RecordBatches, first: RecordBatches, column: Any, other: Any) -> Any:
    """Return the type of a column that has no value in the one or in the other file; SigmaDataError if it has."""
    if _is_blank(table, column):
        return other
    if _is_blank(first, first.schema.field(column.name)):
        return column.type
    raise SigmaDataError(
        f"{table.name}: column {column.name!r} holds {column.type}; that of {first.name}, {other}. Make them alike."
    )


def _is_blank(table: RecordBatches, column: Any) -> bool:
    return bool(column.type == pa.float64() and not len(table.read([column.name])[column.name].drop_null()))


def _key_type(values: Sequence[str | None]) -> Any:
    present = [value for value in values if value is not None]
    whole = all(re.fullmatch(r"0|-?[1-9]\d{0,17}", value, re.ASCII) for value in present)
    return pa.int64() if whole else pa.string()
