"""Queries of databases that are read in blocks."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from attrs import define, field, frozen

from sigma_data.pictures.progress import DecodingProgress, report
from sigma_data.prepared.entries import PreparedEntry
from sigma_data.prepared.files import NUMBER, Original, describe_files
from sigma_data.prepared.remote import COPY, CopiedFile, is_prepared
from sigma_data.sources.file import File
from sigma_kernel import SigmaDataError

SQLITE = b"SQLite format 3\0"
GROUP = 1 << 17  # rows of a group of a copy, so that equal rows make equal files


def is_database(place: Any, form: Mapping[str, Any]) -> bool:
    """Return whether a place is a file of SQLite."""
    path = place.path if isinstance(place, File) else place
    if not isinstance(path, Path) or not path.is_file() or form.get("format") is not None:
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def find_query(place: Any, query: str | None, cache: Path | None) -> Original | None:
    """Return the rows of a query; None if there is no such file.

    Rows of a file of SQLite are those of its content and the query.  Of other databases, and of queries whose values
    depend on anything else, only the rows themselves tell whether they have changed.
    """
    sql: Any = import_module("sigma_data.tables.sql")
    database = place.path if isinstance(place, File) else place
    path = sql.find_database(database)
    if path is None:
        return CopiedQuery(database, query, sql.name_query(database, query), cache)
    if not path.is_file():
        return None
    return CopiedQuery(path, query, str(path), cache) if sql.is_volatile(path, query) else StoredQuery(path, query)


@frozen(eq=False)
class StoredQuery:
    """A query of a file of SQLite, by default its only table."""

    path: Path
    query: str | None
    is_copied: ClassVar[bool] = False

    def describe(self) -> Sequence[Any]:
        """Return what tells the content of the database from another one, and the version that reads it."""
        sql: Any = import_module("sigma_data.tables.sql")
        main, *logs = describe_files(sql.list_database_files(self.path))
        changing = 3  # the time of the last change of the file's status, which readers of a log change
        logs = [[*log[:changing], *log[changing + 1 :]] for log in logs]
        return [sqlite3.sqlite_version, self.query, main, logs]

    def count_bytes(self) -> int:
        """Return the bytes of the numbers."""
        cells: int = import_module("sigma_data.tables.sql").count_cells(self.path, self.query)
        return cells * NUMBER

    def copy_to(self, entry: PreparedEntry) -> None:
        """Do nothing: the file is read where it is."""

    def list_files(self, entry: PreparedEntry) -> Sequence[Path]:
        """Return the file."""
        return (self.path,)

    def open(self, entry: PreparedEntry) -> Any:
        """Return the rows as record batches."""
        return import_module("sigma_data.tables.sql").open_query(self.path, self.query)


@define(eq=False)
class CopiedQuery:
    """A query whose rows are copied to the cache whenever the data are read, and named by what they are.

    The query is executed once; its rows come in batches.
    """

    database: str | Path
    query: str | None
    name: str
    cache: Path | None
    is_copied: ClassVar[bool] = True
    _digest: str = field(default="", init=False)
    _copy: PreparedEntry = field(init=False)  # before it is known what it holds

    @_copy.default
    def _name_copy(self) -> PreparedEntry:
        return PreparedEntry.in_folder(self.cache, hashlib.sha256(uuid4().bytes).hexdigest())

    def describe(self) -> Sequence[Any]:
        """Return a hash of the rows, which are copied to the cache for it."""
        if not self._digest:
            self._digest = self._copy_rows()
        return ["rows", self._digest]

    def _copy_rows(self) -> str:
        """Copy the rows to an entry of their own, of which an error leaves nothing; return a hash of the copy."""
        try:
            return self._write()
        except BaseException:
            self._copy.remove()
            raise

    def _write(self) -> str:
        report(f"{self.name}: is copied to {self._copy.folder}.")
        parquet: Any = import_module("pyarrow.parquet")
        sql, streaming = (import_module(f"sigma_data.{name}") for name in ("tables.sql", "streaming"))
        with self._copy.hold_lock():
            self._copy.write({"source": self.name})
            with sql.stream_query(self.database, self.query) as rows, self._copy.replacing(COPY) as part:
                progress = DecodingProgress(self.name, rows.rows or 0, "rows copied")
                with parquet.ParquetWriter(part, rows.schema) as writer:
                    for table in streaming.regroup(iter(rows), GROUP):
                        writer.write_table(table.combine_chunks(), GROUP)
                        progress.advance(table.num_rows)
            with (self._copy.folder / COPY).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()

    def count_bytes(self) -> int:
        """Return the bytes of the numbers; 0 where the database does not count the rows of the query."""
        cells: int = import_module("sigma_data.tables.sql").count_cells(self.database, self.query)
        return cells * NUMBER

    def copy_to(self, entry: PreparedEntry) -> None:
        """Move the copy to an entry, unless that needs none; raise SigmaDataError if the rows are others by now."""
        path = entry.folder / COPY
        with entry.hold_lock():
            if not is_prepared(entry) and not path.exists():
                if not self._copy.folder.exists() and self._copy_rows() != self._digest:
                    self._copy.remove()
                    raise SigmaDataError(f"{self.name}: has other rows than before. Start again.")
                os.replace(self._copy.folder / COPY, path)
        if self._copy.folder.exists():
            self._copy.remove()

    def list_files(self, entry: PreparedEntry) -> Sequence[Path]:
        """Return the copy."""
        return (entry.folder / COPY,)

    def open(self, entry: PreparedEntry) -> Any:
        """Return the rows of the copy."""
        return import_module("sigma_data.tables.parquet").open_parquet(CopiedFile(entry.folder / COPY, self.name))
