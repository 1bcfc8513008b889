"""Tables in databases: SQLite by the standard library, others by a driver of ADBC."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
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
VOLATILE = {
    "random", "randomblob", "changes", "total_changes", "last_insert_rowid", "current_date", "current_time",
    "current_timestamp", "date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff",
}  # fmt: skip # functions of SQLite
TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"


def open_query(database: str | Path, query: str | None = None) -> RecordBatches:
    """Return the rows of a query, by default of the only table; ``database`` is the path of a file or an address."""
    path = find_database(database)
    if path is not None:
        return _open_sqlite(path, query)
    with open_adbc(str(database), query) as rows:
        return open_object(rows.read(), rows.name)


def find_database(database: str | Path) -> Path | None:
    """Return the path of a database of SQLite; None for an address of another one."""
    scheme, mark, _ = str(database).partition("://")
    return None if mark and scheme != "sqlite" else Path(str(database).removeprefix("sqlite://"))


@contextmanager
def stream_query(database: str | Path, query: str | None) -> Iterator[RecordBatches]:
    """Return the rows of a query that is executed once, to be read once."""
    path = find_database(database)
    if path is None:
        with open_adbc(str(database), query) as rows:
            yield rows
    else:
        yield _open_sqlite(path, query)


# -- SQLite ------------------------------------------------------------------------------------------------------------
@contextmanager
def _connecting(path: Path, remedy: str = "Correct the query, or check the file.") -> Iterator[sqlite3.Connection]:
    """Return a connection that reads; errors become a SigmaDataError."""
    with File(path).open():  # raises for one that is not there
        pass
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise SigmaDataError(f"{path}: {error}. {remedy}") from None


def _open_sqlite(path: Path, query: str | None) -> RecordBatches:
    name = str(path)
    with reading(name), _connecting(path) as connection:
        query = query or _select_only_table(connection, name)
        names, types, rows = _look(connection.execute(query), name)
    schema = plain_schema(pa.schema(list(zip(names, types, strict=True))), name)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        with _connecting(path, "Check the file.") as connection:
            cursor = connection.execute(query)
            batches = (_as_table(part, names, types) for part in iter(lambda: cursor.fetchmany(ROWS), []))
            yield from plain_batches(batches, schema, columns)

    return RecordBatches(name, schema, rows, start, lambda row: f"{name}: row {row}", lambda: stamp_files(path))


def list_database_files(path: Path) -> list[Path]:
    """Return the files of a database of SQLite: itself, and the log of what was written and is not in it yet."""
    log = path.with_name(path.name + "-wal")
    return [path, log] if log.exists() and log.stat().st_size else [path]


def stamp_files(path: Path) -> list[tuple[int, int]]:
    """Return what differs after a change of a database of SQLite."""
    states = [file.stat() for file in list_database_files(path)]
    return [(state.st_size, state.st_mtime_ns) for state in states]


def is_volatile(path: Path, query: str | None) -> bool:
    """Return whether a query of SQLite calls a function that returns other values for the same database.

    Errors are left to who reads the rows.
    """
    called = set[str]()

    def note(action: int, _: str | None, function: str | None, *more: Any) -> int:
        if action == sqlite3.SQLITE_FUNCTION:
            called.add(str(function).lower())
        return sqlite3.SQLITE_OK

    with suppress(SigmaDataError), _connecting(path) as connection:
        query = query or _select_only_table(connection, str(path))
        connection.set_authorizer(note)
        connection.execute(f"EXPLAIN {query}")
    return not called.isdisjoint(VOLATILE)


def count_cells(database: str | Path, query: str | None) -> int:
    """Return how many cells a query has; 0 where a database does not count the rows of this one."""
    path = find_database(database)
    with suppress(SigmaDataError):
        if path is None:
            with _executing(str(database), query) as cursor:
                return _count_cells(cursor, str(query))
        with _connecting(path) as connection:
            return _count_cells(connection.cursor(), query or _select_only_table(connection, str(path)))
    return 0


def _count_cells(cursor: Any, query: str) -> int:
    query = query.strip().rstrip(";")
    cursor.execute(f"SELECT count(*) FROM ({query}) AS counted")
    (rows,) = cursor.fetchone()
    cursor.execute(f"SELECT * FROM ({query}) AS counted LIMIT 0")
    return int(rows) * len(cursor.description)


def _select_only_table(connection: sqlite3.Connection, name: str) -> str:
    names = [row[0] for row in connection.execute(TABLES)]
    if len(names) != 1:
        shown = ", ".join(names[:12]) or "none"
        raise SigmaDataError(f"{name}: has {len(names)} tables: {shown}. Set `query`, such as 'SELECT * FROM ...'.")
    table = str(names[0]).replace('"', '""')
    return f'SELECT * FROM "{table}"'


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


# -- ADBC --------------------------------------------------------------------------------------------------------------
@contextmanager
def open_adbc(address: str, query: str | None) -> Iterator[RecordBatches]:
    """Return the rows of a query, which can be read once, while the connection is open."""
    with _executing(address, query) as cursor:
        name = name_query(address, query)
        with reading(name):
            cursor.execute(query)
            reader = cursor.fetch_record_batch()
        schema = plain_schema(reader.schema, name)

        def start(columns: Sequence[str] | None) -> Iterator[Any]:
            return plain_batches(reader, schema, columns)

        yield RecordBatches(name, schema, None, start, lambda row: f"{name}: row {row}")


def name_query(address: str, query: str | None) -> str:
    """Return a name of a query for people, without a password."""
    return f"{address.partition('://')[0]}: {query or '':.60}"


@contextmanager
def _executing(address: str, query: str | None) -> Iterator[Any]:
    """Return a cursor of a driver of ADBC; its errors become a SigmaDataError."""
    scheme = address.partition("://")[0]
    driver = SCHEMES.get(scheme)
    if driver is None:
        raise SigmaConfigError(f"database: no driver is known for {scheme!r}, only for {', '.join(SCHEMES)}.")
    if query is None:
        raise SigmaConfigError("query: is needed for this database. Set it, such as 'SELECT * FROM houses'.")
    if find_spec(driver) is None:
        package = driver.replace("_", "-")
        raise SigmaConfigError(f"database: {scheme} needs a driver. Install it: python -m pip install {package}")
    module = import_module(f"{driver}.dbapi")
    try:
        with module.connect(address) as connection, connection.cursor() as cursor:
            yield cursor
    except module.Error as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
        raise SigmaDataError(f"{name_query(address, query)}: {reason}. Correct the query, or the address.") from None
