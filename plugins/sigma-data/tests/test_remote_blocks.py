"""Tables in files that are not local, read in blocks: copied once, never stale, equal to those in memory."""

from __future__ import annotations

import errno
import gzip
import io
import os
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from sigma_data import FsspecFile, Tabular, Url
from sigma_data.prepared import opening, preparing, remote
from sigma_data.prepared.entries import list_entries
from sigma_data.prepared.remote import COPY
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError

ADDRESS = "memory://houses"


def make_frame(seed: int = 0) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": draws.normal(100, 30, 200), "city": draws.choice(["Bern", "Zug"], 200)})
    frame["price"] = frame["size"] * 3 + draws.normal(size=200)
    return frame


def write_parquet(frame: pd.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.to_parquet(content, row_group_size=30)
    return content.getvalue()


def write_csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def write_zip(frame: pd.DataFrame) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("read.me", "no table")
        archive.writestr("houses.csv", write_csv(frame))
    return content.getvalue()


WRITERS: dict[str, tuple[Callable[[pd.DataFrame], bytes], dict[str, Any]]] = {
    "parquet": (write_parquet, {}),
    "csv": (write_csv, {}),
    "gzip": (lambda frame: gzip.compress(write_csv(frame)), {}),
    "zip": (write_zip, {"member": "houses.csv"}),
    "jsonl": (lambda frame: frame.to_json(orient="records", lines=True).encode(), {}),
}


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.filesystem("memory").store.clear()
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path / "cache"))


def put(content: bytes) -> str:
    with fsspec.open(ADDRESS, "wb") as file:
        file.write(content)
    return ADDRESS


def read(sha256: str | None = None, block_rows: int | None = 16, **settings: Any) -> Tabular:
    source = FsspecFile(ADDRESS, sha256=sha256)
    return Tabular(source, "price", block_rows=block_rows, block_dtype="float64", **settings)


def read_rows(part: Dataset) -> dict[str, np.ndarray]:
    blocks = [part.block(number) for number in range(part.blocks)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each reading of the place is added."""
    paths, open_file = list[str](), MemoryFileSystem._open

    def count(self: Any, path: str, *given: Any, **more: Any) -> Any:
        paths.append(path)
        return open_file(self, path, *given, **more)

    monkeypatch.setattr(MemoryFileSystem, "_open", count)
    return paths


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("has_hash", [False, True])
def test_it_has_the_rows_that_it_has_in_memory_and_is_read_once(name, has_hash, opened):
    write, form = WRITERS[name]
    put(content := write(make_frame()))
    digest = sha256(content).hexdigest() if has_hash else None
    held = read(digest, None, format=form)
    expected = {part: read_rows(held[part]) for part in held}
    for times in (1, 0):
        opened.clear()
        prepared = read(digest, format=form)
        for part in prepared:
            assert prepared[part].blocks > 1
            rows = read_rows(prepared[part])
            assert rows.keys() == expected[part].keys()
            for section, values in rows.items():
                np.testing.assert_array_equal(values, expected[part][section])
        assert prepared.learned == held.learned
        assert len(opened) == times
    assert {path.name for path in list_entries()[0].folder.iterdir()} == {
        "entry.json", "aside.parquet", f"{b'inputs'.hex()}.npy",
    }  # fmt: skip


def test_another_content_is_prepared_again():
    put(write_csv(make_frame()))
    first = read_rows(read()["training"])["inputs"]
    put(write_csv(make_frame(1)))
    assert not np.array_equal(read_rows(read()["training"])["inputs"], first)
    assert len(list_entries()) == 2


def test_a_content_that_changes_while_it_is_copied_is_refused(monkeypatch):
    put(write_csv(make_frame()))
    with monkeypatch.context() as patch:
        patch.setattr(remote, "report", lambda _: put(write_csv(make_frame(1))))
        with pytest.raises(SigmaDataError, match="houses: has changed while it was copied. Start again"):
            read()["training"]
    assert not any(list_entries()[0].folder.iterdir())


def test_a_content_that_changes_while_it_is_prepared_is_refused(monkeypatch):
    put(write_csv(make_frame()))
    encode = preparing.EncodedBatch.from_batch

    def change(*given: Any) -> Any:
        put(write_csv(make_frame(1)))
        return encode(*given)

    monkeypatch.setattr(preparing.EncodedBatch, "from_batch", change)
    with pytest.raises(SigmaDataError, match="has changed while it was prepared"):
        read()["training"]


def test_an_interrupted_preparation_goes_on_with_the_copy(monkeypatch, opened):
    put(write_csv(make_frame()))
    opened.clear()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparing.EncodedBatch, "from_batch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            read()["training"]
    assert (list_entries()[0].folder / COPY).exists()
    read()["training"]
    assert len(opened) == 1


def test_a_copy_that_was_interrupted_is_begun_again(monkeypatch):
    put(write_csv(make_frame()))
    with monkeypatch.context() as patch:
        patch.setattr(FsspecFile, "open", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            read()["training"]
    assert len(read_rows(read()["training"])["inputs"]) == 160


def test_a_damaged_entry_is_made_from_the_place_again():
    put(write_csv(make_frame()))
    expected = read_rows(read()["training"])["inputs"]
    (list_entries()[0].folder / f"{b'inputs'.hex()}.npy").unlink()
    np.testing.assert_array_equal(read_rows(read()["training"])["inputs"], expected)


def test_errors_name_the_place():
    frame = make_frame()
    frame.loc[7, "price"] = np.nan
    put(write_csv(frame))
    with pytest.raises(SigmaDataError, match="^memory://houses:9: the target"):
        read()["training"]


def test_a_place_that_tells_nothing_of_the_content_needs_a_hash(monkeypatch):
    put(content := write_csv(make_frame()))
    monkeypatch.setattr(MemoryFileSystem, "info", lambda self, path, **_: {"name": path, "size": 3, "type": "file"})
    with pytest.raises(SigmaConfigError, match="block_rows: only tables in files and databases .* give the sha256"):
        read()["training"]
    assert read(sha256(content).hexdigest())["training"].blocks > 1
    assert read(block_rows=None)["training"].blocks == 1


@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_a_large_one_is_read_in_blocks_without_a_setting(name, monkeypatch):
    put(WRITERS[name][0](make_frame()))
    assert not list_entries()
    assert read(block_rows=None)["training"].blocks == 1
    monkeypatch.setattr(opening, "LARGE", 1000)
    assert read_rows(read(block_rows=None)["training"])["inputs"].shape == (160, 3)
    assert len(list_entries()) == 1


@pytest.mark.parametrize(("name", "times"), [("parquet", 2), ("csv", 1)])
def test_whether_one_with_a_hash_is_large_takes_no_transfer_of_all(name, times, monkeypatch, opened):
    put(content := WRITERS[name][0](make_frame()))
    monkeypatch.setattr(FsspecFile, "_copy", None)
    source = FsspecFile(ADDRESS, sha256=sha256(content).hexdigest())
    for large, is_large in ((1 << 30, False), (1000, True)):
        opened.clear()
        monkeypatch.setattr(opening, "LARGE", large)
        assert (opening.find_block_files(source, {}, None) is not None) is is_large
        assert len(opened) == times  # the first bytes, and the end of Parquet


def test_a_small_file_of_many_numbers_is_large(monkeypatch):
    put(pd.DataFrame({"size": np.zeros(200_000, np.int8), "price": 1.0}).to_parquet())
    assert FsspecFile(ADDRESS).size < 200_000 / 10
    for large, is_large in ((200_000 * 2 * 8, False), (200_000 * 2 * 8 - 1, True)):
        monkeypatch.setattr(opening, "LARGE", large)
        assert (opening.find_block_files(FsspecFile(ADDRESS), {}, None) is not None) is is_large


def test_a_file_whose_size_is_unknown_is_looked_into(monkeypatch, opened):
    put(WRITERS["parquet"][0](make_frame()))
    monkeypatch.setattr(opening, "LARGE", 1000)
    monkeypatch.setattr(FsspecFile, "size", 0)
    assert opening.find_block_files(FsspecFile(ADDRESS), {}, None) is not None
    put(WRITERS["csv"][0](make_frame()))
    assert opening.find_block_files(FsspecFile(ADDRESS), {}, None) is None


def test_a_file_that_is_no_stream_of_any_place_is_counted(monkeypatch):
    put(WRITERS["parquet"][0](make_frame()))
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFile.seekable", lambda self: False)
    assert opening.find_block_files(FsspecFile(ADDRESS), {}, None) is None


def test_a_damaged_file_is_an_error_that_names_it():
    put(WRITERS["parquet"][0](make_frame())[:-20])
    with pytest.raises(SigmaDataError, match="memory://houses: cannot be read"):
        read(block_rows=None)["training"]


def test_a_full_disk_is_no_fault_of_the_place(monkeypatch):
    put(write_csv(make_frame()))

    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda *_, **__: Full())
        with pytest.raises(SigmaDataError, match="prepared rows cannot be kept: No space left on device. Make room"):
            read()["training"]
    assert len(read_rows(read()["training"])["inputs"]) == 160


# -- downloads ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def url(server: Any, tmp_path: Path) -> Callable[..., Url]:
    """Return a function that lets the server have a content, and returns its source."""

    def serve(content: bytes, path: str = "/houses") -> Url:
        server.files[path] = content
        return Url(server.address + path, sha256(content).hexdigest(), cache=tmp_path / "downloads")

    return serve


def read_url(source: Url, block_rows: int | None = 16, **settings: Any) -> Tabular:
    return Tabular(source, "price", block_rows=block_rows, block_dtype="float64", **settings)


@pytest.mark.parametrize("name", WRITERS)
def test_a_download_has_the_rows_that_it_has_in_memory_and_is_needed_once(name, url, server, tmp_path):
    write, form = WRITERS[name]
    source = url(write(make_frame()))
    held = read_url(source, None, format=form)
    expected = {part: read_rows(held[part]) for part in held}
    for _ in range(2):
        prepared = read_url(source, format=form)
        for part in prepared:
            assert prepared[part].blocks > 1
            for section, values in read_rows(prepared[part]).items():
                np.testing.assert_array_equal(values, expected[part][section])
        assert prepared.learned == held.learned
        assert len(server.asked) == 1
        assert COPY not in {path.name for path in list_entries()[0].folder.iterdir()}  # there is one copy
        for path in (tmp_path / "downloads").iterdir():
            path.unlink()


def test_a_large_download_is_read_in_blocks_without_a_setting(url, monkeypatch):
    for name in ("parquet", "csv"):
        source = url(WRITERS[name][0](make_frame()), f"/houses.{name}")
        monkeypatch.setattr(opening, "LARGE", 1 << 30)
        assert read_url(source, None)["training"].blocks == 1
        monkeypatch.setattr(opening, "LARGE", 1000)
        assert read_url(source, None)["training"].open_blocks == 16


def test_another_content_of_an_address_is_another_entry(url):
    for seed in range(2):
        source = url(write_csv(make_frame(seed)), f"/{seed}")
        expected = read_rows(read_url(source, None)["training"])["inputs"]
        np.testing.assert_array_equal(read_rows(read_url(source)["training"])["inputs"], expected)
    assert len(list_entries()) == 2


def test_errors_of_a_download_name_the_address(url):
    frame = make_frame()
    frame.loc[7, "price"] = np.nan
    source = url(write_csv(frame))
    with pytest.raises(SigmaDataError, match=f"^{source.url}:9: the target"):
        read_url(source)["training"]
