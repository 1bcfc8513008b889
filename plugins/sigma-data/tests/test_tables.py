"""Tables of every format hold what pandas and pyarrow read from them."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from sigma_data.readers import delimited
from sigma_data.sources import local
from sigma_data.sources.file import File
from sigma_data.tables import open_table
from sigma_data.tables.text import open_text
from sigma_kernel import SigmaConfigError, SigmaDataError

TABLE = pa.table({
    "rooms": pa.array([1, 2, None, 4], pa.int64()),
    "price": pa.array([1.5, None, -2e9, 0.1], pa.float64()),
    "city": pa.array(["Z\u00fcrich", "x, y", None, "NA"]),
    "built": pa.array([dt.date(2024, 1, 1), None, dt.date(1999, 12, 31), dt.date(2000, 2, 29)]),
    "seen": pa.array([dt.datetime(2024, 1, 1, 10, 0, i) for i in range(4)], pa.timestamp("us")),
    "old": pa.array([True, False, None, True]),
})  # fmt: skip


def write_csv(table: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(table, str(path))


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


def write_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "csv": write_csv,
    "parquet": lambda table, path: pq.write_table(table, str(path)),
    "feather": lambda table, path: pyarrow.feather.write_feather(table, str(path)),
    "arrow": write_file,
    "arrows": write_stream,
    "orc": lambda table, path: pyarrow.orc.write_table(table, str(path)),
}  # fmt: skip


def numbers(rows: int) -> pa.Table:
    """Return a table of numbers and words."""
    draws = np.random.default_rng(0)
    words = np.array(["red", "green", "a \u20ac"])[draws.integers(0, 3, rows)]
    return pa.table({"a": draws.normal(size=rows), "b": draws.integers(-9, 9, rows), "c": words})


@pytest.mark.parametrize("end", WRITERS)
def test_a_table_in_any_format_has_types_values_and_gaps(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"houses.{end}"
    WRITERS[end](TABLE, path)
    opened = open_table(path)
    assert opened.schema.names == TABLE.column_names
    assert opened.name == str(path)
    assert opened.rows in (4, None)
    read = opened.read()
    assert read.cast(TABLE.schema).equals(TABLE)
    types = [str(kind).partition("[")[0] for kind in opened.schema.types]
    assert types == ["int64", "double", "string", "date32", "timestamp", "bool"]
    assert opened.place(3) == (f"{path}:5" if end == "csv" else f"{path}: row 3")


def test_a_table_of_json_lines_holds_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "houses.jsonl"
    write_json(TABLE, path)
    opened = open_table(path)
    assert opened.read().cast(TABLE.schema).equals(TABLE)
    assert opened.schema.field("built").type in (pa.date32(), pa.timestamp("us"), pa.timestamp("s"))
    pd.testing.assert_frame_equal(
        opened.read(["price", "city"]).to_pandas(), pd.read_json(path, lines=True)[["price", "city"]]
    )
    assert opened.place(2) == f"{path}:3"


@pytest.mark.parametrize("end", [*WRITERS, "jsonl"])
def test_batches_are_the_same_each_time_and_columns_can_be_chosen(tmp_path: Path, end: str) -> None:
    table, path = numbers(200_000), tmp_path / f"t.{end}"
    ({**WRITERS, "jsonl": write_json}[end])(table, path)
    opened = open_table(path)
    batches = list(opened)
    assert len(batches) > 1
    assert all(one.equals(other) for one, other in zip(batches, opened, strict=True))
    assert pa.Table.from_batches(batches).equals(table)
    assert opened.read(["c", "a"]).equals(table.select(["c", "a"]))
    assert opened.read().equals(table)


@pytest.mark.parametrize("chunk", [64, 1000, 1 << 23])
@pytest.mark.parametrize("cells", [["NA"] * 90 + ["x"] * 10, ["x"] * 10 + ["NA"] * 90])
def test_a_word_for_a_gap_is_a_word_in_a_column_of_words_however_long_the_pieces_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, cells: list[str]
) -> None:
    monkeypatch.setattr(delimited, "CHUNK", chunk)
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{word},1.5\n" for word in cells))
    assert open_table(tmp_path / "t.csv").read().to_pydict() == {"a": cells, "b": [1.5] * 100}


@pytest.mark.parametrize("chunk", [64, 1000, 1 << 23])
def test_kinds_are_those_of_all_rows_however_long_the_pieces_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(delimited, "CHUNK", chunk)
    columns = {
        "whole": [*map(str, range(300))],
        "late": ["1"] * 299 + ["1.5"],
        "words": ["1"] * 299 + ["x"],
        "gaps": [""] * 299 + ["2024-01-01"],
        "blank": ["", "NA", "?"] * 100,
        "loose": [" 1 ", "NA", " na ", "2.5", "+3", ""] * 50,
        "truths": ["tRuE", "", "false"] * 100,
        "days": ["2024-01-01"] * 299 + ["2024-01-01 10:00"],
        "long": ["1"] * 299 + ["90071992547409931"],
        "longer": ["1.5"] * 299 + ["90071992547409931"],
        "longest": ["1"] * 299 + ["9" * 30],
        "clock": ["10:00"] * 300,
    }  # fmt: skip
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]))
    opened = open_table(path)
    kinds = dict(zip(opened.schema.names, map(str, opened.schema.types), strict=True))
    assert kinds.pop("days").startswith("timestamp")
    assert kinds == {
        "whole": "int64", "late": "double", "words": "string", "gaps": "date32[day]", "blank": "double",
        "loose": "double", "truths": "bool", "long": "int64", "longer": "string", "longest": "string",
        "clock": "string",
    }  # fmt: skip
    read = opened.read().to_pydict()
    assert read["words"] == columns["words"]
    assert read["loose"] == [1, None, None, 2.5, 3, None] * 50
    assert read["truths"] == [True, None, False] * 100
    assert read["long"][-1] == 90071992547409931
    assert read["longer"] == columns["longer"]
    assert read["gaps"] == [None] * 299 + [dt.date(2024, 1, 1)]
    assert read["days"][-2:] == [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 10)]
    assert opened.place(298) == f"{path}:300"


@pytest.mark.parametrize(("text", "rows", "place"), [
    ('a,b\n"x\ny",1\nz,2\n', [("x\ny", 1), ("z", 2)], "held.csv:4"),
    ("a;b\n1,5;x\n2;y\n", [(1.5, "x"), (2.0, "y")], "held.csv:3"),
    ("a\tb\n1.234,5\tx\n2.000,0\ty\n", [(1234.5, "x"), (2000.0, "y")], "held.csv:3"),
    ("a,b\r1,x\r\r2,y\r", [(1, "x"), (2, "y")], "held.csv:4"),
    ("a,b\n\n1,x\n\n\n2,y\n", [(1, "x"), (2, "y")], "held.csv:6"),
    ("1,x\n2,y\n", [(1, "x"), (2, "y")], "held.csv:2"),
    ('a,b\n"x\ny",2024-01-01\nz,\n', [("x\ny", dt.date(2024, 1, 1)), ("z", None)], "held.csv:4"),
])  # fmt: skip
def test_texts_of_any_dialect_are_read(tmp_path: Path, text: str, rows: list[Any], place: str) -> None:
    (tmp_path / "held.csv").write_bytes(text.encode())
    opened = open_table(tmp_path / "held.csv")
    read = opened.read()
    assert list(zip(*(column.to_pylist() for column in read.columns), strict=True)) == rows
    assert opened.place(1) == f"{tmp_path / place}"


def test_the_dialect_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("1;Z\u00fcrich\n2;y\n".encode("latin-1"))
    read = open_table(tmp_path / "t.csv", delimiter=";", header=True, encoding="latin-1").read()
    assert read.to_pydict() == {"1": [2], "Z\u00fcrich": ["y"]}
    with pytest.raises(SigmaConfigError, match="there is no setting 'delimeter'"):
        open_table(tmp_path / "t.csv", delimeter=";")


# -- compression -------------------------------------------------------------------------------------------------------
def pack(path: Path, content: bytes, kind: str) -> Path:
    packed = path.with_name(f"{path.name}.{kind}")
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(path.name, content)
    elif kind.startswith("tar"):
        (path.parent / "inner").mkdir(exist_ok=True)
        path.write_bytes(content)
        with tarfile.open(packed, "w:" + kind.partition(".")[2]) as archive:
            archive.add(path, f"inner/{path.name}")
    else:
        codecs = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
        packed.write_bytes(pa.compress(content, codecs[kind], asbytes=True) if kind != "gz" else gzip.compress(content))
    return packed


@pytest.mark.parametrize("kind", ["gz", "zst", "zip", "tar", "tar.gz", "tar.xz"])
@pytest.mark.parametrize("end", ["csv", "parquet", "arrows", "orc"])
def test_a_table_in_any_format_can_be_compressed(tmp_path: Path, end: str, kind: str) -> None:
    WRITERS[end](numbers(3000), tmp_path / f"t.{end}")
    path = pack(tmp_path / f"t.{end}", (tmp_path / f"t.{end}").read_bytes(), kind)
    assert open_table(path).read().equals(numbers(3000))


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_member_of_an_archive_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"all.{kind}"
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.csv").write_text("b\n2\n")
    with zipfile.ZipFile(path, "w") if kind == "zip" else tarfile.open(path, "w") as archive:
        for name in ("a.csv", "b.csv"):
            (archive.write if kind == "zip" else archive.add)(tmp_path / name, name)
    assert open_table(path, member="b.csv").read().to_pydict() == {"b": [2]}
    assert open_table(path, member="b.csv").place(0) == f"{path}:b.csv:2"
    with pytest.raises(SigmaDataError, match=r"holds 2 files: a.csv, b.csv. Name one as `member`"):
        open_table(path)
    with pytest.raises(SigmaDataError, match=r"holds no 'c.csv'"):
        open_table(path, member="c.csv")
    with pytest.raises(SigmaConfigError, match="is no archive, and has no 'b.csv'"):
        open_table(tmp_path / "a.csv", member="b.csv")


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.zst"
    path.write_bytes(pa.compress(b"a\n" + b"1\n" * 1_000_000, "zstd", asbytes=True))
    with pytest.raises(SigmaDataError, match=r"bomb.csv.zst: unpacks to more than 100000 bytes"):
        open_table(path, limit=100_000)
    packed = b"a\n1\n"
    for _ in range(4):
        packed = gzip.compress(packed)
    path.write_bytes(packed)
    with pytest.raises(SigmaDataError, match="compressed more than 3 times"):
        open_table(path)


# -- several files -----------------------------------------------------------------------------------------------------
def test_a_partitioned_folder_is_that_of_pyarrow(tmp_path: Path) -> None:
    table = numbers(1000).append_column("year", pa.array([2023, 2024] * 500))
    pq.write_to_dataset(table, str(tmp_path / "set"), partition_cols=["year", "c"])
    opened = open_table(tmp_path / "set")
    wanted = pq.read_table(str(tmp_path / "set"))
    assert opened.rows == 1000
    frames = [
        one.to_pandas()[["a", "b", "c", "year"]].astype({"year": int, "c": str}) for one in (opened.read(), wanted)
    ]
    one, other = (frame.sort_values("a", ignore_index=True) for frame in frames)
    pd.testing.assert_frame_equal(one, other)
    assert opened.schema.field("year").type == pa.int64()
    last = opened.read(["year", "c"]).slice(999).to_pylist()[0]
    assert f"year={last['year']}" in opened.place(999)


def test_files_of_a_pattern_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "a1.csv").write_text("x,y\n1,u\n2,v\n")
    (tmp_path / "a2.csv").write_text("y,x\nw,2.5\n")
    (tmp_path / "b.csv").write_text("z\n1\n")
    opened = open_table(str(tmp_path / "a*.csv"))
    assert opened.read().to_pydict() == {"x": [1.0, 2.0, 2.5], "y": ["u", "v", "w"]}
    assert opened.place(2) == f"{tmp_path / 'a2.csv'}:2"
    with pytest.raises(SigmaDataError, match="no file has such a name"):
        open_table(str(tmp_path / "c*.csv"))


def test_a_file_that_differs_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x,y\n1,u\n")
    (tmp_path / "2.csv").write_text("x,z\n1,u\n")
    with pytest.raises(SigmaDataError, match=r"2.csv: column 'y' is in .*1.csv alone. Give files"):
        open_table(tmp_path)
    (tmp_path / "2.csv").write_text("x,y\nword,u\n")
    (tmp_path / "2.csv").write_text("x,y\n2,\n")
    assert open_table(tmp_path).read().to_pydict() == {"x": [1, 2], "y": ["u", None]}
    (tmp_path / "2.csv").write_text("x,y\nword,u\n")
    with pytest.raises(
        SigmaDataError, match=r"2.csv: column 'x' holds string; that of .*1.csv, int64. Make them alike"
    ):
        open_table(tmp_path)


def test_folders_that_name_other_keys_are_refused(tmp_path: Path) -> None:
    for name in ("year=2023", "month=1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("x\n1\n")
    with pytest.raises(SigmaDataError, match=r"its folders name \['year'\]; those of .*, \['month'\]. Name the same"):
        open_table(tmp_path)


def test_links_out_of_a_folder_are_refused_and_hidden_files_left_out(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.csv").write_text("x\n1\n")
    (tmp_path / "set" / ".hidden").write_text("?")
    (tmp_path / "set" / "_SUCCESS").write_text("?")
    (tmp_path / "secret.csv").write_text("x\n2\n")
    assert open_table(tmp_path / "set").read().to_pydict() == {"x": [1]}
    os.symlink(tmp_path / "secret.csv", tmp_path / "set" / "b.csv")
    with pytest.raises(SigmaDataError, match=r"b.csv: is a link out of the folder"):
        open_table(tmp_path / "set")


# -- databases ---------------------------------------------------------------------------------------------------------
def test_a_table_of_sqlite_is_that_of_pandas(tmp_path: Path) -> None:
    path = tmp_path / "houses.db"
    frame = numbers(70_000).to_pandas()
    with sqlite3.connect(path) as connection:
        frame.to_sql("houses", connection, index=False)
        query = "SELECT c, avg(a) AS mean FROM houses GROUP BY c ORDER BY c"
        means = pd.read_sql(query, connection)
    connection.close()
    assert open_table(path).read().equals(numbers(70_000))
    assert open_table(path).read(["b"]).equals(numbers(70_000).select(["b"]))
    for opened in (open_table(path, query=query), open_table(None, database=f"sqlite://{path}", query=query)):
        assert opened.read().to_pydict() == means.to_dict("list")
        assert opened.place(1) == f"{path}: row 1"


def test_errors_of_a_database_are_sentences(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE a (x)")
        connection.execute("CREATE TABLE b (x)")
        connection.executemany("INSERT INTO a VALUES (?)", [(1,), ("one",)])
    connection.close()
    for query, reason in {
        None: r"has 2 tables: a, b. Set `query`",
        "SELECT y FROM a": "no such column: y. Correct the query",
        "SELECT x FROM a": "column 'x' mixes int in row 0 and str in row 1. Make them alike by CAST",
        "DELETE FROM a": "readonly database. Correct the query",
    }.items():
        with pytest.raises(SigmaDataError, match=reason):
            open_table(path, query=query)
    with pytest.raises(SigmaDataError, match="there is no such file"):
        open_table(None, database=tmp_path / "b.db")
    with pytest.raises(SigmaConfigError, match="no driver is known for 'oracle'"):
        open_table("oracle://x", query="SELECT 1")
    with pytest.raises(SigmaConfigError, match="python -m pip install adbc-driver-snowflake"):
        open_table("snowflake://x", query="SELECT 1")
    with pytest.raises(SigmaConfigError, match="query: is needed"):
        open_table("postgresql://x")


# -- objects -----------------------------------------------------------------------------------------------------------
class Stream:
    """An object that is known by its interface alone."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Array:
    def __init__(self, table: pa.Table) -> None:
        self.batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.batch.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("wrap", [
    lambda table: table, lambda table: table.to_batches()[0], lambda table: table.to_reader(), Stream, Array,
    lambda table: table.to_pandas(), lambda table: pl.from_arrow(table), lambda table: table.to_pydict(),
])  # fmt: skip
def test_objects_are_tables(wrap: Callable[[pa.Table], Any]) -> None:
    opened = open_table(wrap(numbers(100)))
    assert opened.read().equals(numbers(100))
    assert opened.read().equals(numbers(100))
    assert (opened.rows, opened.place(7)) == (100, "table: row 7")


def test_values_of_plain_types_are_not_copied() -> None:
    table = numbers(1000)
    for value in (table, Stream(table)):
        batch = next(iter(open_table(value)))
        assert batch["a"].buffers()[1].address == table["a"].chunk(0).buffers()[1].address


def test_other_types_become_plain_ones() -> None:
    table = pa.table({
        "small": pa.array([1, None], pa.int8()), "unsigned": pa.array([1, 2], pa.uint64()),
        "half": pa.array([1.5, float("nan")], pa.float32()), "exact": pa.array([1, None], pa.decimal128(5, 2)),
        "word": pa.array(["x", None]).dictionary_encode(), "large": pa.array(["x", "y"], pa.large_string()),
        "view": pa.array(["x", "y"], pa.string_view()), "nothing": pa.nulls(2), "day": pa.array([0, None], pa.date64()),
        "clock": pa.array([3600, None], pa.time32("s")), "wait": pa.array([2, None], pa.duration("s")),
        "bytes": pa.array([b"x", None], pa.large_binary()), "list": pa.array([[1.0], None]),
        "inner": pa.array([{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}]),
    })  # fmt: skip
    opened = open_table(table)
    assert list(map(str, opened.schema.types)) == [
        "int64", "int64", "double", "double", "string", "string", "string", "double", "date32[day]", "string",
        "double", "binary", "list<item: double>", "int64", "string",
    ]  # fmt: skip
    read = opened.read().to_pydict()
    assert read["half"] == [1.5, None]
    assert read["word"] == ["x", None]
    assert read["wait"] == [2.0, None]
    assert (read["inner.a"], read["inner.b.c"]) == ([1, 2], ["x", None])


@pytest.mark.parametrize("wrap", [dict, pd.DataFrame])
def test_words_that_are_no_valid_text_are_refused_with_column_and_row(wrap: Callable[[Any], Any]) -> None:
    days = pd.to_datetime(["2020-01-01"] * 3)
    held = {
        "a": pd.Series(["x", "y", None], dtype=object),
        "t": days,
        "b": pd.Series([None, "x", "y\ud800"], dtype=object),
    }
    reason = r"table: column 'b': row 2 holds 'y\\ud800', which is no valid text. Correct it, such as by text.encode"
    with pytest.raises(SigmaDataError, match=reason):
        open_table(wrap(held))
    with pytest.raises(SigmaDataError, match=r"column 'b': row 1 holds '\\udcff', which is no valid text"):
        open_table({"a": ["x", "y"], "b": np.array(["x", "\udcff"])})
    with pytest.raises(SigmaDataError, match=r"table: the name of column 'b\\ud800' is no valid text. Rename it."):
        open_table({"a": [1.0], "b\ud800": [2.0]})
    with pytest.raises(SigmaDataError, match=r"table: cannot be read .*surrogates not allowed"):
        open_table({"a": [["x"], ["\ud800"]]})


def test_objects_that_are_no_tables_are_refused() -> None:
    for value, reason in [
        (3, "cannot read a int"),
        (pa.table([pa.array([1])] * 2, ["a", "a"]), "2 columns are called 'a'"),
        (pa.table({"a": pa.array([2**64 - 1], pa.uint64())}), "cannot be read"),
    ]:
        with pytest.raises(SigmaDataError, match=reason):
            open_table(value).read()


# -- bad input ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("end", [*WRITERS, "jsonl", "csv.gz", "csv.zst"])
def test_truncated_files_end_in_one_error_with_the_file(tmp_path: Path, told: Callable[..., str], end: str) -> None:
    table, path = numbers(3000), tmp_path / f"t.{end}"
    {**WRITERS, "jsonl": write_json}[end.partition(".")[0]](table, path)
    content = path.read_bytes()
    if "." in end:
        content = pack(tmp_path / "t.csv", content, end.partition(".")[2]).read_bytes()
    for share in (0.001, 0.1, 0.5, 0.9, 0.999):
        path.write_bytes(content[: int(len(content) * share)])
        error = told(lambda: open_table(path).read())
        # the end of a text looks like any other line, and a stream may end behind any batch
        assert str(path) in error or (end in ("csv", "arrows") and error == "held: nothing")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(numbers(200_000), path)
    opened = open_table(path)
    batches = iter(opened)
    next(batches)
    pq.write_table(numbers(200_001), path)
    with pytest.raises(SigmaDataError, match=r"t.parquet: has changed while it was read"):
        list(batches)
    with pytest.raises(SigmaDataError, match="has changed"):
        opened.read()


@pytest.mark.parametrize(("name", "content", "reason"), [
    ("empty.csv", b"", "empty.csv: the file is empty"),
    ("header.csv", b"a,b\n", "header.csv: there is no row of values"),
    ("zero.csv", b"a,b\n1,\x002\n", "zero.csv: holds a zero byte"),
    ("mixed.csv", b"a,b\nx,1\n" + "\u00e4,2\n".encode() * 20_000 + b"\xff,3\n",
     r"mixed.csv:\d+: in or soon after this line, the text is not valid utf-8"),
    ("short.csv", b"a,b\n1,2\n3\n", r"short.csv:3: 1 values instead of 2. Correct this line, or `delimiter`\.$"),
    ("best.TXT", b"It was the best of times, it was\nthe worst of times\n",
     r'best.TXT:2: .* If it is running text, write dataset = "texts" and folder = \'.*best.TXT\' in a configuration.'),
    ("wide.csv", b",".join(b"%d" % i for i in range(200_000)) + b"\n",
     "wide.csv: has 200000 columns, more than 100000"),
    ("deep.jsonl", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deep.jsonl:1: holds fields within fields"),
    ("deep.json", b"[" * 100_000 + b"]" * 100_000, "deep.json:1: holds fields within fields"),
    ("broken.jsonl", b'{"a": 1}\n{"a": }\n', r"broken.jsonl:2: is not JSON"),
    ("list.jsonl", b'{"a": 1}\n[1]\n', r"list.jsonl:2: is not an object"),
    ("mixed.jsonl", b'{"a": 1}\n{"a": "x"}\n', r"mixed.jsonl:1.*changed from number to string"),
    ("merged.jsonl", b'{"a": 1.5}\n{"a": 90071992547409931}\n', r"merged.jsonl:1.*beyond 2\*\*53"),
    ("numbers.json", b"[1, 2]", "numbers.json: holds a list of other things than objects"),
    ("damaged.parquet", b"PAR1" + bytes(100) + b"PAR1", "damaged.parquet: cannot be read"),
    ("damaged.orc", b"ORC" + bytes(100), "damaged.orc: cannot be read"),
    ("damaged.arrow", b"ARROW1\0\0" + bytes(100), "damaged.arrow: cannot be read"),
    ("damaged.db", b"SQLite format 3\0" + bytes(100), "damaged.db: .*Correct the query, or check the file"),
    ("old.feather", b"FEA1" + bytes(100), "old.feather: is in the first version of Feather. Write it again"),
    ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "picture.png: holds a zero byte"),
])  # fmt: skip
def test_bad_files_end_in_one_error_with_file_and_place(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SigmaDataError, match=reason):
        open_table(tmp_path / name).read()


def test_a_format_and_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(numbers(3), path)
    for settings, reason in [
        ({"format": "parket"}, "format: there is no 'parket'. Did you mean 'parquet'?"),
        ({"delimiter": ";"}, "delimiter: .*t.parquet is no delimited text, but parquet"),
        ({"query": "SELECT 1"}, "query: .*t.parquet is no database"),
    ]:
        with pytest.raises(SigmaConfigError, match=reason):
            open_table(path, **settings)
    with pytest.raises(SigmaDataError, match="there is no column 'd'"):
        open_table(path).read(["d"])
    assert open_table(File(path)).read().equals(numbers(3))


@pytest.mark.parametrize("chunk", [64, 1 << 23])
def test_identifiers_keep_leading_zeros_after_pieces_of_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(delimited, "CHUNK", chunk)
    cells = [f"{i}.5" for i in range(200)] + [f"{i:06}" for i in range(200)]
    (tmp_path / "t.csv").write_text("id,x\n" + "".join(f"{cell},1\n" for cell in cells))
    assert open_text(local(tmp_path / "t.csv"), exact=["id"]).read(["id"]).to_pydict() == {"id": cells}


def test_lines_that_end_in_returns_are_no_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\r" + b"1,2\r" * 60_000)
    assert open_table(tmp_path / "t.csv").read().num_rows == 60_000


@pytest.mark.parametrize("cells", [[" ", "\u00a0"], [" NA", "NA"], ["", " "]])
def test_a_column_of_blanks_has_no_values(tmp_path: Path, cells: list[str]) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"1,{cell}\n" for cell in cells))
    assert open_table(tmp_path / "t.csv").read(["b"])["b"].null_count == 2
