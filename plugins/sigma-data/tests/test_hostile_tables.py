"""Hostile tables of every format: each ends in one error with its file, in little time and memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sqlite3
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from sigma_data.tables import open_table
from sigma_kernel import SigmaDataError

LIMIT = 1 << 20
SECONDS = 2.0  # of processor time


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", content)
    return packed.getvalue()


def tarred(content: bytes, mode: str = "w:gz") -> bytes:
    packed, info = io.BytesIO(), tarfile.TarInfo("t.csv")
    info.size = len(content)
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress,
    "zst": lambda content: pa.compress(content, "zstd", asbytes=True),
    "zip": zipped, "tar.gz": tarred, "tar.bz2": lambda content: tarred(content, "w:bz2"),
    "tar.xz": lambda content: tarred(content, "w:xz"), "gz.gz": lambda content: gzip.compress(gzip.compress(content)),
    "zip.gz": lambda content: gzip.compress(zipped(content)),
}  # fmt: skip


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """Return a function that reads a file, and returns the error in which that ends, in time."""

    def read(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        began = time.process_time()
        with pytest.raises(SigmaDataError) as error:
            open_table(tmp_path / name, limit=LIMIT).read()
        assert time.process_time() - began < SECONDS
        assert str(error.value).startswith(f"{tmp_path}/{name}")
        return str(error.value)

    return read


@pytest.mark.parametrize("kind", PACK)
def test_bombs_of_every_compression_stop_at_the_limit(refused, kind):
    content = PACK[kind](b"a,b\n" + b"1,2\n" * (1 << 19))
    assert len(content) < LIMIT
    tracemalloc.start()
    try:
        assert f"unpacks to more than {LIMIT} bytes" in refused(f"t.csv.{kind}", content)
        assert tracemalloc.get_traced_memory()[1] < LIMIT + (64 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", PACK)
def test_what_is_packed_is_read(tmp_path, kind):
    (tmp_path / "t").write_bytes(PACK[kind](b"a,b\n1,2\n"))
    assert open_table(tmp_path / "t", limit=LIMIT).read().to_pylist() == [{"a": 1, "b": 2}]


def test_an_archive_with_a_member_without_a_name_is_refused(refused):
    content = zipped(b"a\n1\n").replace(b"t.csv", b"\0.csv")  # zipfile cuts names at a zero byte
    assert "cannot be unpacked" in refused("t.zip", content)


WIDE = 10**6


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", ",".join(f"c{i}" for i in range(WIDE)) + "\n" + ",".join("1" * WIDE)),
        ("t.tsv", "\t".join("1" * WIDE) + "\n"),
        ("t.jsonl", json.dumps(dict.fromkeys(map(str, range(WIDE // 10)), 1)) + "\n"),
        ("t.json", json.dumps([dict.fromkeys(map(str, range(WIDE // 10)), 1)])),
    ],
)
def test_a_million_columns_are_refused(refused, name, content):
    assert "columns, more than 100000" in (text := refused(name, content.encode())) or "different fields" in text


def test_an_arrow_file_of_too_many_columns_is_refused(refused):
    out, schema = io.BytesIO(), pa.schema([(str(i), pa.int8()) for i in range(WIDE // 5)])
    with pa.ipc.new_stream(out, schema):
        pass
    assert "has 200000 columns, more than 100000" in refused("t.arrows", out.getvalue())


def test_objects_of_different_fields_are_refused_before_their_table_is_filled(refused):
    rows = "".join(f'{{"c{i}": 1}}\n' for i in range(300_000))
    assert "300000 objects have more than 10000 different fields" in refused("t.jsonl", rows.encode())
    rows = "".join('{"a": 1}\n' for i in range(50_000)) + "".join(f'{{"c{i}": 1}}\n' for i in range(5000))
    assert "55000 objects have 5001 different fields" in refused("t.jsonl", rows.encode())


def test_fields_of_several_pieces_are_counted_together(refused, monkeypatch):
    monkeypatch.setattr("sigma_data.tables.json_lines.CHUNK", 1 << 12)
    rows = "".join(f'{{"c{i}": 1}}\n' for i in range(8000))
    assert "different fields. Give them the same fields" in refused("t.jsonl", rows.encode())


def test_objects_whose_fields_are_all_there_are_read(tmp_path):
    rows = [{f"c{j}": i * j for j in range(100)} for i in range(3000)]
    rows[1500]["extra"] = 1
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert open_table(tmp_path / "t.jsonl").read()["extra"].null_count == 2999


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", b"a,b\n1,2\n3,\x004\n", "holds a zero byte"),
        ("t.tsv", b"a\tb\n1\t2\n\x003\t4\n", "holds a zero byte"),
        ("t.jsonl", b'{"a": 1}\n{"a": \x00}\n', "t.jsonl:2: is not JSON"),
        ("t.jsonl", b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n", "holds fields within fields"),
        ("t.json", b'[{"a": ' * 50_000, "holds fields within fields"),
        ("t.json", b'[{"a": 1},', "is not JSON"),
    ],
)
def test_zero_bytes_and_deep_objects_are_refused(refused, name, content, reason):
    assert reason in refused(name, content)


def test_links_out_of_a_folder_are_refused(tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (tmp_path / "set" / "more").mkdir(parents=True)
    (tmp_path / "set" / "a.csv").write_text("a\n1\n")
    for link, target in (("b.csv", tmp_path / "secret.csv"), ("more/c.csv", Path("../../secret.csv"))):
        os.symlink(target, tmp_path / "set" / link)
        with pytest.raises(SigmaDataError, match=rf"{link}: is a link out of the folder .*set\. Give the files"):
            open_table(tmp_path / "set")
        (tmp_path / "set" / link).unlink()
    assert open_table(tmp_path / "set").read().num_rows == 1


def sink(write: Callable[[io.BytesIO], object]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def write_ipc(table: pa.Table, new: Callable[..., pa.RecordBatchWriter]) -> bytes:
    def write(out: io.BytesIO) -> None:
        with new(out, table.schema) as writer:
            writer.write_table(table)

    return sink(write)


def write_database(table: pa.Table, folder: Path) -> bytes:
    path = folder / "made.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in table["a"].to_pylist()])
    connection.commit()
    connection.close()
    return path.read_bytes()


WRITERS: dict[str, Callable[[pa.Table, Path], bytes]] = {
    "csv": lambda table, _: sink(lambda out: pyarrow.csv.write_csv(table, out)),
    "csv.gz": lambda table, _: gzip.compress(sink(lambda out: pyarrow.csv.write_csv(table, out))),
    "csv.zip": lambda table, _: zipped(sink(lambda out: pyarrow.csv.write_csv(table, out))),
    "jsonl": lambda table, _: "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode(),
    "parquet": lambda table, _: sink(lambda out: pq.write_table(table, out)),
    "arrow": lambda table, _: write_ipc(table, pa.ipc.new_file),
    "arrows": lambda table, _: write_ipc(table, pa.ipc.new_stream),
    "orc": lambda table, _: sink(lambda out: pyarrow.orc.write_table(table, out)),
    "db": write_database,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_that_changes_while_it_is_read_is_refused_whatever_its_format(tmp_path, name):
    path = tmp_path / f"t.{name}"
    path.write_bytes(WRITERS[name](pa.table({"a": range(100)}), tmp_path))
    table = open_table(path)
    assert table.read().num_rows == 100
    path.write_bytes(WRITERS[name](pa.table({"a": range(200)}), tmp_path))
    with pytest.raises(SigmaDataError, match=rf"t\.{name}: has changed while it was read"):
        table.read()
