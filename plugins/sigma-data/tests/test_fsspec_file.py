from __future__ import annotations

import gzip
import io
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from sigma_data import BytesReader, Compressed, CsvReader, FsspecFile, Records, Tabular
from sigma_data.tables import open_table
from sigma_kernel import SigmaConfigError, SigmaDataError, SigmaPluginError, Source
from sigma_testing import SourceSuite

TABLE = pa.table({"a": [i / 3 for i in range(20)], "kind": ["xy"[i % 2] for i in range(20)]})


@pytest.fixture(autouse=True)
def _empty_memory():
    fsspec.filesystem("memory").store.clear()


def put(path: str, content: bytes) -> str:
    with fsspec.open(f"memory://{path}", "wb") as file:
        file.write(content)
    return f"memory://{path}"


class TestFsspecFile(SourceSuite):
    def make(self) -> Source:
        return FsspecFile(put("x.bin", b"some bytes"))

    def make_missing(self) -> Source:
        return FsspecFile("memory://none.bin")


@pytest.mark.parametrize("digits", [None, sha256(b"some bytes").hexdigest().upper()])
def test_a_file_in_memory_is_read(digits):
    source = FsspecFile(put("folder/x.bin", b"some bytes"), sha256=digits)
    for _ in range(2):
        with source.open() as stream:
            assert stream.read() == b"some bytes"
            assert stream.seek(5) == 5
            assert stream.read() == b"bytes"


def test_a_local_file_is_read_by_its_address(tmp_path: Path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    source = Compressed(FsspecFile(f"file://{tmp_path}/x.csv.gz"))
    assert {name: values.tolist() for name, values in CsvReader().read(source).items()} == {"a": [1.0], "b": [2.0]}


def test_a_compressed_file_whose_hash_is_checked_is_read():
    content = gzip.compress(b"a,b\n1,2\n")
    source = FsspecFile(put("x.csv.gz", content), sha256=sha256(content).hexdigest())
    assert open_table(source).read().to_pydict() == {"a": [1], "b": [2]}


def test_what_tells_one_content_from_another():
    first = FsspecFile(put("x.bin", b"some bytes"))
    identity = first.identify()
    assert identity is not None
    assert identity == first.identify()
    assert first.size == 10
    put("x.bin", b"other bytes")
    assert first.identify() != identity
    assert FsspecFile(first.address, sha256="A" * 64).identify() == [["sha256", "a" * 64]]
    gone = FsspecFile("memory://none.bin")
    assert gone.identify() is None
    assert gone.size == 0


def write_tar(content: bytes) -> bytes:
    """Return an archive as reproducible builds write it, without times."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("folder/x.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def write_zip(content: bytes, name: str = "folder/x.csv") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("address", "write"),
    [
        ("tar://folder/x.csv::memory://x.tar", write_tar),
        ("zip://folder/x.csv::memory://x.tar", write_zip),
        ("tar://folder/x.csv::simplecache::memory://x.tar", write_tar),
        ("tar://folder/x.csv::zip://x.tar::memory://x.tar", lambda content: write_zip(write_tar(content), "x.tar")),
    ],
)
def test_of_a_member_of_an_archive_the_archive_counts(address, write, monkeypatch):
    put("x.tar", write(b"a\n1\n"))
    source = FsspecFile(address)
    first = source.identify()
    assert first == source.identify()
    assert source.stamp() == source.stamp() is not None
    put("x.tar", write(b"a\n2\n"))
    assert None not in (first, source.identify())
    assert source.identify() != first
    monkeypatch.setattr(MemoryFileSystem, "info", lambda self, path, **_: {"name": path, "size": 3, "type": "file"})
    checked = "zip://" in address  # whose members have a checksum
    assert (source.identify() is not None) is checked
    assert (source.stamp() is not None) is checked


def test_the_options_of_an_archive_are_those_of_its_place(tmp_path: Path):
    (tmp_path / "x.tar").write_bytes(write_tar(b"a\n1\n"))
    options = {"dir": {"path": str(tmp_path)}}
    source = FsspecFile("tar://folder/x.csv::dir://x.tar::file://", options)
    first = source.identify()
    assert first == source.identify()
    assert first is not None
    (tmp_path / "x.tar").write_bytes(write_tar(b"a\n2\n") + bytes(512))
    assert source.identify() not in (first, None)


@pytest.mark.parametrize("name", ["modificationTime", "modify", "LastModified", "ETag", "mtime"])
def test_times_and_hashes_have_many_names(name, monkeypatch):
    monkeypatch.setattr(MemoryFileSystem, "info", lambda self, path, **_: {"size": 3, "accessTime": 1, name: 2})
    assert FsspecFile("memory://x").identify() == [[name, "2"], ["size", "3"]]


@pytest.mark.parametrize("has_blocks", [False, True])
@pytest.mark.parametrize("write", [write_tar, write_zip])
def test_tables_in_archives_are_read(write, has_blocks, tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path))
    content = "".join(["a,y\n", *(f"{i}.5,{i}.25\n" for i in range(100))]).encode()
    put("x", write(content))
    source = FsspecFile(f"{write.__name__[-3:]}://folder/x.csv::memory://x")
    assert len(Tabular(source, "y", block_rows=16 if has_blocks else None)["training"]) == 80


def test_places_within_places_are_read(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("folder/x.bin", bytes(range(6)))
    source = FsspecFile(f"zip://folder/x.bin::file://{tmp_path}/x.zip")
    np.testing.assert_array_equal(BytesReader(3).read(source)["records"], [[0, 1, 2], [3, 4, 5]])


def test_another_hash_is_refused_before_anything_is_used():
    source = FsspecFile(put("x.bin", b"some bytes"), sha256="0" * 64)
    with pytest.raises(SigmaDataError, match=r"^memory://x\.bin: has the SHA-256 [0-9a-f]{64}, not 0{64}\. The file"):
        Records(source, BytesReader(1)).all_rows()
    short = FsspecFile("memory://x.bin", sha256=sha256(b"some bytes").hexdigest(), limit=5)
    with pytest.raises(SigmaDataError, match=r"has more than 5 bytes\. If that is right, raise `limit`"):
        short.open().__enter__()


@pytest.mark.parametrize(
    ("address", "kind", "text"),
    [
        ("memory://none.csv", SigmaDataError, r"^memory://none\.csv: there is no such file\. Check the address"),
        ("nowhere://x", SigmaDataError, r"^nowhere://x: cannot be read: Protocol not known: nowhere\. Check address"),
        ("memory://", SigmaDataError, r"^memory://: cannot be read|^memory://: there is no"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_address(address, kind, text):
    with pytest.raises(kind, match=text):
        FsspecFile(address).open().__enter__()


def test_a_place_whose_library_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(SigmaPluginError, match=r"^s3://bucket/x: Install s3fs"):
        FsspecFile("s3://bucket/x").open().__enter__()
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(SigmaPluginError, match=r'pip install "sigma-data\[places\]"'):
        FsspecFile("memory://x").open().__enter__()


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"address": "x.csv"}, SigmaConfigError, "names no place"),
        ({"address": "s3://x", "sha256": "12"}, SigmaDataError, "sha256: '12' is not the hash of a file"),
    ],
)
def test_settings_are_checked(settings, error, text):
    with pytest.raises(error, match=text):
        FsspecFile(**settings)


def test_an_error_while_a_file_is_read_names_its_address():
    with (
        pytest.raises(SigmaDataError, match=r"^memory://x: cannot be read: connection lost\. Check"),
        FsspecFile(put("x", b"abc")).open() as _,
    ):
        raise ConnectionError("connection lost")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_tables_are_read_from_any_place(name):
    out = pa.BufferOutputStream()
    if "parquet" in name:
        pyarrow.parquet.write_table(TABLE, out)
    else:
        pa.csv.write_csv(TABLE, out)
    content = out.getvalue().to_pybytes()
    address = put(name, gzip.compress(content) if name.endswith("gz") else content)
    assert open_table(address).read().equals(TABLE)
    data = Tabular(FsspecFile(address), "kind")
    assert len(data["training"]) == 16
    assert data.classes == ("x", "y")


def test_a_file_that_changes_while_it_is_read_is_refused():
    table = open_table(put("x.csv", b"a\n1\n"))
    put("x.csv", b"a\n1\n2\n")
    with pytest.raises(SigmaDataError, match=r"^memory://x\.csv: has changed while it was read"):
        table.read()
