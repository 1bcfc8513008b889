"""Write tables in parts: CSV, Parquet and JSON lines, by Arrow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plain import strict
from sigma_training.optional import optional

Write = Callable[[Any], None]  # appends a table of Arrow

NAMED = "predictions as a table"  # what needs Arrow


def check_place(path: Path, force: bool, option: str = "") -> None:
    """Raise SigmaConfigError unless a table can be written to this file: its extension, its folder, no other file."""
    if path.suffix.lower() not in WRITERS:
        raise SigmaConfigError(f"{option}{path}: must be a {', '.join([*WRITERS][:-1])} or {[*WRITERS][-1]} file.")
    if not path.parent.is_dir():
        raise SigmaConfigError(f"{option}{path}: {str(path.parent)!r} is not a directory. Create it first.")
    if path.is_dir() or (path.exists() and not force):
        raise SigmaConfigError(f"{option}{path}: already exists. Pass --force to replace it, or another name.")


@contextmanager
def new_table(path: Path, force: bool = False) -> Iterator[Write]:
    """Return a function that appends tables to a new file, which is in its place once all are written.

    Until then it is in a folder beside it, which is deleted after an error.  Raises SigmaConfigError if it cannot be
    written.
    """
    check_place(path, force)
    read = list[OSError]()  # errors of what reads and predicts
    try:
        with TemporaryDirectory(prefix=".sigma-", dir=path.parent) as folder:
            part = Path(folder) / path.name
            with WRITERS[path.suffix.lower()](part) as write:
                try:
                    yield partial(_write_part, path, write)
                except OSError as error:
                    read.append(error)
                    raise
            _sync(part)
            check_place(path, force)  # nobody has written it meanwhile
            part.replace(path)
    except OSError as error:
        if error in read:
            raise
        raise _fail_to_write(path, error) from error


def _write_part(path: Path, write: Write, table: Any) -> None:
    try:
        write(table)
    except OSError as error:
        raise _fail_to_write(path, error) from error


def _fail_to_write(path: Path, error: OSError) -> SigmaConfigError:
    reason = error.strerror or str(error).partition("\n")[0]
    return SigmaConfigError(f"{path}: cannot be written: {reason}. Free space there.")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _write_arrow(path: Path, begin: Callable[[Path, Any], Any]) -> Iterator[Write]:
    """Write by a writer of Arrow, which begins with the first table, as that has the types of the columns."""
    writers: list[Any] = []

    def append(table: Any) -> None:
        if not writers:
            writers.append(begin(path, table.schema))
        writers[0].write_table(table)

    try:
        yield append
    finally:
        for writer in writers:
            writer.close()


def drop_unwritable(table: Any, path: Path, keep: Sequence[str]) -> Any:
    """Return a table without the columns that a file of CSV cannot hold, except those that are named to be kept."""
    if path.suffix.lower() != ".csv":
        return table
    return table.select([column.name for column in table.schema if column.name in keep or _fits_csv(column.type)])


def _fits_csv(kind: Any) -> bool:
    types = optional(NAMED, "pyarrow").types
    return not (types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def _begin_csv(path: Path, schema: Any) -> Any:
    for column in schema:
        if not _fits_csv(column.type):
            raise SigmaConfigError(
                f"--keep {column.name}: holds {column.type}, for which CSV has no form. Save a .parquet file."
            )
    return optional(NAMED, "pyarrow.csv").CSVWriter(path, schema)


def _begin_parquet(path: Path, schema: Any) -> Any:
    return optional(NAMED, "pyarrow.parquet").ParquetWriter(path, schema, compression="zstd")


@contextmanager
def _write_lines(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def append(table: Any) -> None:
            for row in table.to_pylist():
                file.write(json.dumps(strict(row), ensure_ascii=False, default=_to_text) + "\n")

        yield append


def _to_text(value: Any) -> str:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


WRITERS: dict[str, Callable[[Path], AbstractContextManager[Write]]] = {
    ".csv": partial(_write_arrow, begin=_begin_csv),
    ".parquet": partial(_write_arrow, begin=_begin_parquet),
    ".jsonl": _write_lines,
}  # by extension
