"""Tables in databases: SQLite by the standard library, others by a driver of ADBC."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from sigma_data.sources.file import File
from sigma_data.tables.batches import ROWS, RecordBatches, plain_batches, plain_schema, reading
from sigma_data.tables.objects import open_object
from sigma_kernel import SigmaConfigError, SigmaDataError

SCHEMES = {"postgresql": "adbc_driver_postgresql", "postgres": "adbc_driver_postgresql",
           "snowflake": "adbc_driver_snowflake", "grpc": "adbc_driver_flightsql"}  # fmt: skip
TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"


def open_query(database: str | Path, query: str | None = None) -> RecordBatches:
    """Return the rows of a query, by default of the only table; ``database`` is the path of a file or an address."""
    scheme, mark, _ = str(database).partition("://")
    if mark and scheme != "sqlite":
        return _open_adbc(str(database), scheme, query)
    path = Path(str(database).removeprefix("sqlite://"))
    with File(path).open():  # raises for one that is not there
        return _open_sqlite(path, query)


def _open_sqlite(path: Path, query: str | None) -> RecordBatches:
    name = str(path)
    try:
        with reading(name), closing(_connect(path)) as connection:
            query = query or f'SELECT * FROM "{_only_table(connection, name)}"'
            names, types, rows = _look(connection.execute(query), name)
    except sqlite3.Error as error:
        raise SigmaDataError(f"{name}: {error}. Correct the query, or check the file.") from None
    schema = plain_schema(pa.schema(list(zip(names, types, strict=True))), name)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        try:
            with closing(_connect(path)) as connection:
                cursor = connection.execute(query)
                batches = (_as_table(part, names, types) for part in iter(lambda: cursor.fetchmany(ROWS), []))
                yield from plain_batches(batches, schema, columns)
        except sqlite3.Error as error:
            raise SigmaDataError(f"{name}: {error}. Check the file.") from None

    return RecordBatches(name, schema, rows, start, lambda row: f"{name}: row {row}", _stamper(path))


def _stamper(path: Path) -> Callable[[], tuple[int, int]]:
    return lambda: (path.stat().st_size, path.stat().st_mtime_ns)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _only_table(connection: sqlite3.Connection, name: str) -> str:
    names = [row[0] for row in connection.execute(TABLES)]
    if len(names) != 1:
        shown = ", ".join(names[:12]) or "none"
        raise SigmaDataError(f"{name}: has {len(names)} tables: {shown}. Set `query`, such as 'SELECT * FROM ...'.")
    return str(names[0]).replace('"', '""')


def _look(cursor: sqlite3.Cursor, name: str) -> tuple[list[str], list[Any], int]:
    """Return the names and types of the columns of a query, and the number of its rows."""
    if cursor.description is None:
        raise SigmaDataError(f"{name}: the query returns no rows. Give one that begins with SELECT.")
    names = [str(column[0]) for column in cursor.description]
    there: list[dict[type, int]] = [{} for _ in names]
    rows = 0
    while part := cursor.fetchmany(ROWS):
        for kinds, column in zip(there, zip(*part, strict=True), strict=True):
            for kind in {*map(type, column)} - {*kinds}:
                kinds[kind] = rows + [*map(type, column)].index(kind)
        rows += len(part)
    return names, [_type_of(kinds, column, name) for kinds, column in zip(there, names, strict=True)], rows


def _type_of(kinds: dict[type, int], column: str, name: str) -> Any:
    held = {kind: row for kind, row in kinds.items() if kind is not type(None)}
    if held.keys() <= {int, float}:
        return pa.int64() if held.keys() == {int} else pa.float64()
    if len(held) > 1:
        shown = " and ".join(f"{kind.__name__} in row {row}" for kind, row in sorted(held.items(), key=lambda x: x[1]))
        raise SigmaDataError(f"{name}: column {column!r} mixes {shown}. Make them alike by CAST in `query`.")
    return pa.string() if str in held else pa.binary()


def _as_table(rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[Any]) -> Any:
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.table(columns, names=list(names))


def _open_adbc(address: str, scheme: str, query: str | None) -> RecordBatches:
    driver = SCHEMES.get(scheme)
    if driver is None:
        raise SigmaConfigError(f"database: no driver is known for {scheme!r}, only for {', '.join(SCHEMES)}.")
    if query is None:
        raise SigmaConfigError("query: is needed for this database. Set it, such as 'SELECT * FROM houses'.")
    if find_spec(driver) is None:
        package = driver.replace("_", "-")
        raise SigmaConfigError(f"database: {scheme} needs a driver. Install it: python -m pip install {package}")
    name = f"{scheme}: {query:.60}"
    with reading(name), import_module(f"{driver}.dbapi").connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        table = cursor.fetch_arrow_table()
    return open_object(table, name)
