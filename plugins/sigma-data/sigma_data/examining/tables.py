"""Gather the rows of tables: of files, and of data sets whose columns are encoded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from sigma_data.arrays import Arrays
from sigma_data.datasets.tabular import EncodedRows, Tabular
from sigma_data.derived import strip_views
from sigma_data.examining.goals import describe_targets
from sigma_data.examining.rows import ExaminedColumn, ExaminedRows, hash_columns
from sigma_data.profiling.encoders import choose_for
from sigma_data.profiling.kinds import infer_kind
from sigma_data.subset import Subset
from sigma_kernel import Dataset, SigmaDataError

MOST = 1 << 20  # rows of a table that are examined
CELLS = 1 << 26  # cells that are held, 512 MB
QUICK = 1 << 24  # cells that a quick examination reads


# -- files -------------------------------------------------------------------------------------------------------------
def gather_file(source: Any) -> ExaminedRows:
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
def find_table(splits: Mapping[str, Dataset]) -> EncodedRows | None:
    """Return the table from which all splits are drawn; None for other data."""
    tables = [_find_encoded(strip_views(split)) for split in splits.values()]
    return tables[0] if all(table is not None for table in tables) else None


def _find_encoded(split: Dataset) -> EncodedRows | None:
    """Return the inputs of a split with the table that they were encoded from."""
    if not isinstance(split, Subset) or not isinstance(split.dataset, Arrays):
        return None
    inputs = split.dataset.column_sections.get("inputs")
    return inputs if isinstance(inputs, EncodedRows) else None


def gather_table(data: Tabular, encoded: EncodedRows, splits: Mapping[str, Any], quick: bool) -> ExaminedRows:
    """Return the rows of splits as their table has them, with places in its file.

    Of many rows, the first of each split are taken, in proportion. Columns that are left out are read from the file,
    unless ``quick``.
    """
    roles, table = encoded.roles, encoded.rows
    table = table if quick or not roles.excluded else _add_columns(table, data.read_excluded(), encoded.where)
    plain: dict[str, Any] = {name: strip_views(split) for name, split in splits.items()}
    held = {name: split.rows_of_dataset for name, split in plain.items()}
    total, most = sum(map(len, held.values())), min(MOST, max(1, (QUICK if quick else CELLS) // table.num_columns))
    held = {name: rows[: max(1, min(len(rows), len(rows) * most // total))] for name, rows in held.items()}
    chosen = np.unique(np.concatenate([*held.values()]))
    parts = {name: np.searchsorted(chosen, rows) for name, rows in held.items()}
    table = table if len(chosen) == table.num_rows else table.take(chosen)
    columns = {name: read_column(name, table[name]) for name in table.column_names}
    first = next(iter(splits.values()))
    read = {name for extractor in first.tables.values() for name in getattr(extractor, "names", ())}
    inputs = [name for name in roles.inputs if name in read]
    notes = [] if quick or total <= most else [f"there are {total:,} rows, of which {len(chosen):,} are examined."]
    goals = describe_targets(_read_targets(splits, parts), first)
    goals["target_keys"] = hash_columns([columns[name].values for name in roles.targets], len(chosen))
    return ExaminedRows(
        encoded.where, hash_columns([columns[name].values for name in inputs], len(chosen)), columns, inputs,
        target=roles.targets[0], splits=parts, place=lambda row: encoded.place(int(chosen[row])),
        leave_out='write {} = "exclude" below [data.columns].', grouped=bool(roles.group), sentences=notes, **goals,
    )  # fmt: skip


def _add_columns(table: Any, others: Any, where: str) -> Any:
    """Return a table with columns of another one of the same rows; raise SigmaDataError if it has others by now."""
    if others.num_rows != table.num_rows:
        raise SigmaDataError(f"{where}: has changed since it was read. Start again when it is complete.")
    for name in (name for name in others.column_names if name not in table.column_names):
        table = table.append_column(name, others[name])
    return table


def _read_targets(splits: Mapping[str, Any], parts: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the targets of the rows of all splits, in the order of the table; None if there is no such section."""
    values = [splits[name].column("targets") for name in parts]
    if any(each is None for each in values):
        return None
    held = np.concatenate([each[: len(rows)] for each, rows in zip(values, parts.values(), strict=True)])
    targets = np.empty_like(held)
    targets[np.concatenate([*parts.values()])] = held
    return targets
