"""Queries of databases that are read in blocks: equal to those in memory, and never stale."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import Tabular
from sigma_data.prepared import opening, preparing, queries
from sigma_data.prepared.entries import list_entries
from sigma_data.tables import open_table, sql
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError

QUERY = "SELECT size, city, price FROM houses WHERE size > 80"


def write(path: Path, seed: int = 0, rows: int = 300) -> Path:
    draws = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": draws.normal(100, 30, rows), "city": draws.choice(["Bern", "Zug"], rows)})
    frame["price"] = (frame["size"] * 3 + draws.normal(size=rows)).where(draws.random(rows) < 0.95)
    with closing(sqlite3.connect(path)) as connection, connection:
        frame.to_sql("houses", connection, index=False, if_exists="replace")
    return path


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a database of SQLite, which a driver of ADBC reads at its address, too; batches are small."""
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(preparing, "AT_ONCE", 200)
    monkeypatch.setattr(sql, "ROWS", 32)
    monkeypatch.setattr(queries, "GROUP", 50)
    monkeypatch.setitem(sql.SCHEMES, "file", "adbc_driver_sqlite")
    return write(tmp_path / "houses.db")


PLACES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "path": lambda path: {"query": QUERY},
    "database": lambda path: {"query": QUERY, "database": str(path)},
    "address": lambda path: {"query": QUERY, "database": f"sqlite://{path}"},
    "adbc": lambda path: {"query": QUERY, "database": f"file://{path}"},
    "volatile": lambda path: {"query": QUERY + " AND random() IS NOT NULL"},
    "only table": lambda path: {},
}
COPIED = {"adbc", "volatile"}


def read(path: Path, form: dict[str, Any], block_rows: int | None = 16) -> Tabular:
    how: dict[str, Any] = {"block_rows": block_rows, "block_dtype": "float64", "missing_targets": "drop"}
    return Tabular(path, "price", format=form, **how)


def read_rows(part: Dataset) -> dict[str, np.ndarray]:
    blocks = [part.block(number) for number in range(part.blocks)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def check_equal(prepared: Tabular, held: Tabular) -> None:
    for part in held:
        assert prepared[part].blocks > 1
        own, wanted = read_rows(prepared[part]), read_rows(held[part])
        assert own.keys() == wanted.keys()
        for name in wanted:
            np.testing.assert_array_equal(own[name], wanted[name])
    assert prepared.learned == held.learned


@pytest.mark.parametrize("name", PLACES)
def test_it_has_the_rows_that_it_has_in_memory_and_is_prepared_once(name, database, monkeypatch):
    form = PLACES[name](database)
    held = read(database, form, None)
    assert held["training"].blocks == 1
    check_equal(read(database, form), held)
    monkeypatch.setattr(preparing, "fit_columns", None)
    check_equal(read(database, form), held)
    (entry,) = list_entries()
    assert not {path.name for path in entry.folder.iterdir()} & {"copy", "rows.parquet"}


@pytest.mark.parametrize("name", PLACES)
def test_a_database_that_changes_is_prepared_again(name, database):
    form = PLACES[name](database)
    for seed in (0, 1, 2):
        write(database, seed)
        check_equal(read(database, form), read(database, form, None))
    assert len(list_entries()) == 3


@pytest.mark.parametrize("name", sorted(COPIED))
def test_the_same_rows_of_a_database_that_changed_are_not_prepared_again(name, database, monkeypatch):
    form = PLACES[name](database)
    read(database, form)["training"]
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE other (x)")
    monkeypatch.setattr(preparing, "fit_columns", None)
    assert read(database, form)["training"].blocks > 1


def test_what_is_in_the_log_of_a_database_counts(database):
    form = PLACES["path"](database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        for size in (1000.0, 2000.0):
            with connection:
                connection.execute("UPDATE houses SET size = ? WHERE rowid = 1", (size,))
            source = open_table(database, **form)
            check_equal(read(database, form), read(database, form, None))
            assert source.read()["size"][0].as_py() == size
        with connection:
            connection.execute("UPDATE houses SET size = 7 WHERE rowid = 1")
        with pytest.raises(SigmaDataError, match="has changed while it was read"):
            source.read()
    assert len(list_entries()) == 2


@pytest.mark.parametrize(
    ("query", "is_copied"),
    [
        ("SELECT size, city, price FROM houses", False),
        ("SELECT abs(size) AS size, upper(city) AS city, price FROM houses", False),
        ("SELECT size, city, price, date('now') AS day FROM houses", True),
        ("SELECT size, city, price FROM houses WHERE current_timestamp > '2020'", True),
        ("SELECT size, city, price FROM recent", True),  # a view
    ],
)
def test_a_query_that_depends_on_more_than_the_database_is_copied(database, query, is_copied):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE VIEW recent AS SELECT * FROM houses ORDER BY abs(random()) < 0")
    assert isinstance(queries.find_query(database, query, None), queries.CopiedQuery) is is_copied
    assert read(database, {"query": query})["training"].blocks > 1


@pytest.mark.parametrize("name", PLACES)
def test_a_query_of_many_numbers_is_read_in_blocks_without_a_setting(name, database, monkeypatch):
    form = PLACES[name](database)
    rows = open_table(database, **form).read()
    for large, is_large in ((rows.num_rows * 3 * 8, False), (rows.num_rows * 3 * 8 - 1, True)):
        monkeypatch.setattr(opening, "LARGE", large)
        assert (read(database, form, None)["training"].open_blocks > 1) is is_large


def test_a_query_whose_rows_are_not_counted_is_in_memory(database, monkeypatch):
    monkeypatch.setattr(opening, "LARGE", 1)
    form = {"query": "PRAGMA table_info(houses)"}
    assert Tabular(database, "cid", format=form)["training"].blocks == 1


def test_an_interrupted_copy_leaves_nothing(database, monkeypatch):
    class Interrupted(queries.DecodingProgress):
        def advance(self, count: int = 1) -> None:
            raise KeyboardInterrupt

    form = PLACES["adbc"](database)
    with monkeypatch.context() as patch:
        patch.setattr(queries, "DecodingProgress", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            read(database, form)["training"]
    assert not list_entries()
    check_equal(read(database, form), read(database, form, None))


def test_a_full_disk_is_no_fault_of_the_database(database, monkeypatch):
    form = PLACES["adbc"](database)

    def fill(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.ParquetWriter.write_table", fill)
        with pytest.raises(SigmaDataError, match="prepared rows cannot be kept: No space left on device. Make room"):
            read(database, form)["training"]
    assert not list_entries()


def test_rows_are_aligned_with_those_of_the_training(database, tmp_path):
    training = read(write(tmp_path / "other.db", 5), {})["training"]
    for name in ("adbc", "path"):
        form = PLACES[name](database)
        for _ in range(2):
            own = read(database, form)["training"].align(training)
            wanted = read(database, form, None)["training"].align(read(tmp_path / "other.db", {}, None)["training"])
            np.testing.assert_array_equal(read_rows(own)["inputs"], wanted.block(0)["inputs"])


def test_rows_that_are_others_when_they_are_needed_again_are_refused(database, tmp_path):
    training = read(write(tmp_path / "other.db", 5), {})["training"]
    rows = read(database, PLACES["adbc"](database))["training"]
    write(database, 3)
    with pytest.raises(SigmaDataError, match="file: SELECT size, city, price .* has other rows than before. Start"):
        rows.align(training)


@pytest.mark.parametrize("block_rows", [None, 16])
def test_errors_of_queries_are_sentences(database, block_rows):
    for form, reason in (
        ({"query": "SELECT y FROM houses"}, r"houses.db: no such column: y. Correct the query"),
        ({"query": "SELECT y FROM houses", "database": f"file://{database}"}, "file: SELECT y FROM houses: .*y.* Corr"),
        ({"query": QUERY, "database": "gone.db"}, "gone.db: there is no such file"),
    ):
        with pytest.raises(SigmaDataError, match=reason):
            read(database, form, block_rows)["training"]
    with pytest.raises(SigmaConfigError, match="no driver is known for 'oracle'"):
        read(database, {"query": QUERY, "database": "oracle://x"}, block_rows)["training"]
