"""Tables that are read in blocks: equal to those in memory, prepared once, whatever happens meanwhile."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from sigma_data import Shares, Tabular
from sigma_data.encoders.number import NumberEncoder
from sigma_data.encoders.target_mean import TargetMeanEncoder
from sigma_data.examining import gathering
from sigma_data.prepared import code, entries, opening, preparing
from sigma_data.prepared.blocks import RowBlocks
from sigma_data.prepared.entries import PreparedEntry, list_entries
from sigma_data.prepared.preparing import PreparedTable
from sigma_data.tables import open_table
from sigma_data.tables.batches import RecordBatches
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite

N = 240


def make_frame(rows: int = N) -> pd.DataFrame:
    draws = np.random.default_rng(5)
    gaps = draws.random(rows) < 0.1
    return pd.DataFrame(
        {
            "name": [f"house {i}" for i in range(rows)],
            "size": np.where(gaps, np.nan, draws.normal(100, 30, rows).round(3)),
            "city": draws.choice(["Bern", "Zug", "Basel"], rows),
            "sold": pd.to_datetime("2020-01-01") + pd.to_timedelta(draws.integers(0, 900, rows), "D"),
            "agent": draws.choice([f"a{i}" for i in range(12)], rows),
            "weight": 1.0 + draws.integers(0, 3, rows),
            "garden": draws.random(rows) < 0.5,
            "price": draws.normal(500, 50, rows),
            "kind": draws.choice(["flat", "house", " hut"], rows),
            "rooms": draws.integers(1, 5, rows),
        }
    )


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False)


def write_folder(frame: pd.DataFrame, path: Path) -> None:
    path.mkdir()
    for i in range(3):
        frame[i * 80 : (i + 1) * 80].to_parquet(path / f"{i}.parquet")


WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "houses.parquet": lambda frame, path: frame.to_parquet(path, row_group_size=50),
    "houses.csv": write_csv,
    "houses.csv.gz": write_csv,
    "houses.feather": lambda frame, path: pyarrow.feather.write_feather(pa.Table.from_pandas(frame), str(path)),
    "houses.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True, date_format="iso"),
    "houses": write_folder,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"target": "price"},
    "words": {"target": "kind"},
    "whole": {"target": "rooms", "targets": "classes"},
    "booleans": {"target": "garden", "split_by": "stratified"},
    "several": {"target": {"price": "price", "kind": "kind"}, "exclude": "rooms"},
    "time": {"target": "price", "time": "sold", "split_by": "block", "weights": "weight"},
    "group": {"target": "kind", "group": "agent", "exclude": ("name", 1)},
    "fold": {"target": "price", "fold": {"number": 1, "of": 3}},
    "means": {"target": "kind", "columns": {"agent": TargetMeanEncoder(folds=3), "city": "exclude"}},
    "sections": {"target": "price", "columns": {"agent": {"type": "index", "section": "agents"}}},
    "parts": {"target": "price", "split": {"training": 0.5, "test": 0.2}, "time": "sold"},
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let tables be prepared in a folder of the test, some rows at once."""
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(preparing, "AT_ONCE", 2000)
    return tmp_path / "cache" / "tables"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    make_frame().to_parquet(tmp_path / "houses.parquet")
    return tmp_path / "houses.parquet"


def in_blocks(path: Path, rows: int = 7, **settings: Any) -> Tabular:
    return Tabular(path, **{"target": "price", "block_dtype": "float64", "block_rows": rows, **settings})


def read_all(dataset: Dataset) -> dict[str, np.ndarray]:
    blocks = [dataset.block(number) for number in range(dataset.blocks)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def check_equal(prepared: Dataset, held: Dataset) -> None:
    """Compare all that data sets say, to the bit."""
    sections, wanted = read_all(prepared), held.block(0)
    assert sections.keys() == wanted.keys()
    for name, values in wanted.items():
        assert sections[name].tobytes() == np.ascontiguousarray(values).tobytes(), name
        assert prepared.class_names(name) == held.class_names(name)
        assert prepared.column_names(name) == held.column_names(name)
    assert prepared.learned == held.learned  # type: ignore[attr-defined]
    assert prepared.sections == held.sections


# -- the same as in memory ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_every_split_has_the_rows_that_it_has_in_memory(tmp_path, settings, missing):
    frame = make_frame()
    if missing == "drop":
        frame.loc[::7, "price"] = None
        frame.loc[3::9, "kind"] = None
    frame.to_parquet(tmp_path / "houses.parquet")
    how = {**settings, "missing_targets": "drop"}
    prepared, held = in_blocks(tmp_path / "houses.parquet", **how), Tabular(tmp_path / "houses.parquet", **how)
    assert prepared.classes == held.classes
    assert {*prepared} == {*held}
    for name in held:
        encoded = [data[name].encode("targets", 0) for data in (prepared, held) if "targets" in data[name].sections]
        check_equal(prepared[name], held[name])
        if settings["target"] == "kind":
            check_equal(*encoded)
            assert prepared[name].findings(["targets"], {}) == ()
    check_equal(prepared.all_rows()[0], held.all_rows()[0])


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read_and_read_again_from_the_cache(tmp_path, name, monkeypatch):
    path = tmp_path / name
    WRITERS[name](make_frame(), path)
    held = Tabular(path, "kind")
    check_equal(in_blocks(path, target="kind")["training"], held["training"])
    monkeypatch.setattr(preparing, "fit_columns", None)  # nothing is fitted, nor encoded, any more
    monkeypatch.setattr(preparing, "EncodedBatch", None)
    if name == "houses.csv":
        monkeypatch.setattr(opening, "open_table", None)  # a text is not even opened
    check_equal(in_blocks(path, target="kind")["validation"], held["validation"])


def test_numbers_are_of_32_bits_unless_asked_otherwise(table):
    held, prepared = Tabular(table, "price"), Tabular(table, "price", block_rows=7)
    wanted = held["training"].block(0)["inputs"].astype(np.float32)
    assert read_all(prepared["training"])["inputs"].tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("cells", "most"), [(1, 1), (90 * 5, 5), (1 << 22, 70)])
def test_columns_are_fitted_in_groups_of_so_many_cells(tmp_path, monkeypatch, cells, most):
    draws, kinds = np.random.default_rng(2), np.array(["flat", "house", None], object)
    frame = pd.DataFrame({f"x{i}": draws.normal(size=90) for i in range(100)})
    frame = frame.assign(**{f"w{i}": draws.choice(kinds, 90) for i in range(40)}, price=draws.normal(size=90))
    frame[draws.permutation(frame.columns)].to_parquet(tmp_path / "wide.parquet")
    monkeypatch.setattr(preparing, "MANY", cells)
    groups, group = list[list[str]](), preparing.group_columns
    monkeypatch.setattr(preparing, "group_columns", lambda *given: groups.extend(group(*given)) or groups)
    check_equal(
        in_blocks(tmp_path / "wide.parquet")["training"], Tabular(tmp_path / "wide.parquet", "price")["training"]
    )
    assert sorted(name for group in groups for name in group) == sorted({*frame} - {"price"})
    assert max(map(len, groups)) == most
    sizes = [90 * sum(1 if name[0] == "x" else preparing.WORDY for name in group) for group in groups]
    assert all(len(group) == 1 or size <= cells for group, size in zip(groups, sizes, strict=True))
    assert len(groups) == {1: 140, 1 << 22: 2}.get(cells, len(groups))


def test_the_columns_of_a_group_are_read_together(table, monkeypatch):
    reads, read = list[int](), RecordBatches.read
    monkeypatch.setattr(RecordBatches, "read", lambda rows, names: reads.append(len(names)) or read(rows, names))
    in_blocks(table)["training"]
    assert reads.count(4) == 2  # of eight inputs


def test_another_table_is_encoded_by_the_columns_of_the_training(table, tmp_path):
    frame = make_frame(90)
    frame["city"] = frame["city"].where(frame["city"] != "Zug", "Chur")
    frame[frame.columns[::-1]].to_parquet(tmp_path / "new.parquet")
    other, training = Tabular(tmp_path / "new.parquet", "price"), in_blocks(table)["training"]
    wanted = other["training"].align(Tabular(table, "price")["training"])
    check_equal(in_blocks(tmp_path / "new.parquet")["training"].align(training), wanted)
    check_equal(in_blocks(tmp_path / "new.parquet")["training"].align(training), wanted)  # from the cache
    own = in_blocks(table)
    assert own["validation"].align(training).block(0)["inputs"].tobytes() == (
        own["validation"].block(0)["inputs"].tobytes()
    )
    frame.drop(columns="city").to_parquet(tmp_path / "new.parquet")
    with pytest.raises(SigmaDataError, match="'city'"):
        in_blocks(tmp_path / "new.parquet")["training"].align(training)


# -- blocks ------------------------------------------------------------------------------------------------------------
class TestRowBlocks(DatasetSuite):
    def make(self) -> Dataset:
        folder = Path(os.environ["SIGMA_CACHE"]).parent
        make_frame().to_parquet(folder / "suite.parquet")
        return in_blocks(folder / "suite.parquet", 50)["training"]


def test_blocks_have_equal_sizes_and_are_drawn_from_together(table):
    rows = in_blocks(table, 50)["training"]
    assert isinstance(rows, RowBlocks)
    assert [rows.rows(i) for i in range(rows.blocks)] == [50, 50, 50, 42]
    assert np.concatenate([rows.numbers(i) for i in range(rows.blocks)]).tolist() == [*range(192)]
    assert rows.open_blocks == 16
    assert "50 in a block" in repr(rows)
    assert rows.column("inputs") is None
    assert len(rows.column("targets")) == 192


@pytest.mark.parametrize("rows", [None, 7])
@pytest.mark.parametrize("settings", [{}, {"time": "sold"}, {"fold": {"number": 1, "of": 3}}], ids=str)
def test_a_part_of_a_table_keeps_the_groups_together_when_it_is_divided(tmp_path, rows, settings):
    numbered = make_frame()[["sold", "price"]].assign(number=np.arange(N), agent=np.arange(N) // 5)
    numbered.to_parquet(tmp_path / "houses.parquet")
    columns = {"number": {"type": "number", "scale": "none"}}
    data = in_blocks(tmp_path / "houses.parquet", rows, group="agent", columns=columns, **settings)
    for whole in (data, data["training"], data["training"].encode("targets", None)):
        parts = Shares(whole, split={"training": 0.6, "validation": 0.4})
        agents = [read_agents(part) for part in parts.values()]
        assert agents == [part.groups() for part in parts.values()]  # type: ignore[attr-defined]
        assert not {*agents[0]} & {*agents[1]}


def read_agents(part: Dataset) -> list[int]:
    """Return the agent of each row of a table of numbered rows, five of which have the same."""
    column = [*part.column_names("inputs")].index("number")
    return [int(number) // 5 for number in read_all(part)["inputs"][:, column]]


@pytest.mark.parametrize(("memory", "kept"), [("0 B", 0), ("1 MB", 4), ("15 KB", 1)])
def test_as_many_blocks_stay_in_memory_as_fit(table, memory, kept):
    rows = in_blocks(table, 50, memory=memory)["training"]
    first, again = ([rows.block(i)["inputs"] for i in range(4)] for _ in range(2))
    same = [np.shares_memory(a, b) for a, b in zip(first, again, strict=True)]
    assert sum(same) == kept
    encoded = rows.encode("targets", None)
    for i in range(4):
        assert encoded.block(i)["inputs"].tobytes() == first[i].tobytes()
        with pytest.raises(ValueError, match="read-only"):
            first[i][0] = 1.0


def count_resident(parts: Iterable[Dataset]) -> int:
    """Return the bytes of inputs that are the same memory when they are read again."""
    parts = [*parts]
    first, again = ([part.block(i)["inputs"] for part in parts for i in range(part.blocks)] for _ in range(2))
    return sum(a.nbytes for a, b in zip(first, again, strict=True) if np.shares_memory(a, b))


def test_all_splits_of_a_table_have_the_same_memory(table):
    data = in_blocks(table, 8, memory="5 KB", split={"training": 0.4, "validation": 0.3, "test": 0.3})
    size = data["training"].block(0)["inputs"].nbytes
    assert 5000 - size < count_resident(data.values()) <= 5000
    parts, _ = data.load()
    assert count_resident(parts.values()) == 0
    data._loaded = None  # which makes room
    gc.collect()
    assert 5000 - size < count_resident(parts.values()) <= 5000


@pytest.mark.parametrize("name", ["houses.parquet", "houses.csv"])
def test_a_large_table_is_read_in_blocks_of_4_mib(tmp_path, name, monkeypatch):
    path = tmp_path / name
    WRITERS[name](make_frame(), path)
    assert Tabular(path, "price")["training"].blocks == 1
    assert not isinstance(Tabular(path, "price")["training"], RowBlocks)
    monkeypatch.setattr(opening, "LARGE", N * 10 * 8 - 1 if name.endswith("parquet") else path.stat().st_size - 1)
    rows = Tabular(path, "price")["training"]
    assert isinstance(rows, RowBlocks)
    assert rows.open_blocks == 16
    monkeypatch.setattr("sigma_data.prepared.blocks.BLOCK", 4 * 16 * len(rows.column_names("inputs")))
    assert Tabular(path, "price")["training"].rows(0) == 16
    monkeypatch.setattr(opening, "LARGE", 1 << 20)
    assert not isinstance(Tabular(path, "price")["training"], RowBlocks)


# -- what may happen meanwhile -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["houses.parquet", "houses.csv"])
@pytest.mark.parametrize("time", [None, "sold"])
def test_an_interrupted_preparation_is_continued(tmp_path, name, time, monkeypatch):
    path = tmp_path / name
    WRITERS[name](make_frame(), path)
    encode, encoded = preparing.EncodedBatch.from_batch, list[int]()
    monkeypatch.setattr(preparing, "AT_ONCE", 400)
    monkeypatch.setattr(preparing, "NOTED", 1)
    monkeypatch.setattr("sigma_data.tables.parquet.ROWS", 50)

    def interrupt(columns: Any, batch: Any, first: int, selection: Any) -> Any:
        encoded.append(first)
        if len(encoded) == 9:
            raise KeyboardInterrupt
        return encode(columns, batch, first, selection)

    monkeypatch.setattr(preparing.EncodedBatch, "from_batch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_blocks(path, time=time)["training"]
    monkeypatch.setattr(preparing, "fit_columns", None)
    check_equal(in_blocks(path, time=time)["training"], Tabular(path, "price", time=time)["training"])
    assert sorted({*encoded}) == sorted(encoded)[:9] + sorted(encoded)[10:]  # the ninth batch alone is encoded twice


KILLED = """
import os, signal, sys
from pathlib import Path
from sigma_data import Shares, Tabular
from sigma_data.prepared import preparing

encode, calls = preparing.EncodedBatch.from_batch, []

def kill(*given):
    calls.append(1)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode(*given)

preparing.AT_ONCE, preparing.NOTED, preparing.EncodedBatch.from_batch = 400, 1, kill
Tabular(Path(sys.argv[1]), "price", block_rows=7, block_dtype="float64")["training"]
"""


@pytest.mark.long_cases("houses.csv")
@pytest.mark.parametrize("name", ["houses.parquet", "houses.csv"])
def test_a_preparation_that_was_killed_is_continued(tmp_path, name, monkeypatch, cache):
    WRITERS[name](make_frame(), tmp_path / name)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / name)], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    (entry,) = list_entries()
    assert 0 < entry.read()["done"] < N
    monkeypatch.setattr(preparing, "fit_columns", None)
    check_equal(in_blocks(tmp_path / name)["training"], Tabular(tmp_path / name, "price")["training"])


def test_an_interrupted_copy_of_a_text_is_begun_again(tmp_path, monkeypatch, cache):
    write_csv(make_frame(), tmp_path / "houses.csv")
    monkeypatch.setattr(preparing.DecodingProgress, "advance", lambda own, count=1: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        in_blocks(tmp_path / "houses.csv")["training"]
    assert [path.name for path in cache.rglob("*.par*")] == []
    monkeypatch.undo()
    monkeypatch.setenv("SIGMA_CACHE", str(cache.parent))
    check_equal(in_blocks(tmp_path / "houses.csv")["training"], Tabular(tmp_path / "houses.csv", "price")["training"])


def fill_disk(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("name", "call"), [("houses.parquet", "posix_fallocate"), ("houses.csv", "fsync")])
def test_a_full_disk_loses_nothing(tmp_path, name, call, monkeypatch, cache):
    WRITERS[name](make_frame(), tmp_path / name)
    in_blocks(tmp_path / name, target="kind")["training"]
    before = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    monkeypatch.setattr(os, call, fill_disk)
    with pytest.raises(SigmaDataError, match="cannot be kept: No space left on device. Make room"):
        in_blocks(tmp_path / name)["training"]
    monkeypatch.undo()
    monkeypatch.setenv("SIGMA_CACHE", str(cache.parent))
    assert {path: path.read_bytes() for path in before} == before
    assert not [
        path for path in cache.rglob("*") if path not in before and path.suffix in (".npy", ".part", ".parquet")
    ]
    check_equal(in_blocks(tmp_path / name)["training"], Tabular(tmp_path / name, "price")["training"])


def test_where_a_system_reserves_no_space_zeros_are_written(table, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr(entries, "ZEROS", 100)
    check_equal(in_blocks(table)["training"], Tabular(table, "price")["training"])


def test_a_table_that_changes_is_prepared_again(table, cache):
    in_blocks(table)["training"]
    status = table.stat()
    content = bytearray(table.read_bytes())
    frame = make_frame()
    frame.loc[3, "size"] = 123.456
    frame.to_parquet(table)
    check_equal(in_blocks(table)["training"], Tabular(table, "price")["training"])
    table.write_bytes(content)
    os.utime(table, ns=(status.st_atime_ns, status.st_mtime_ns))
    in_blocks(table)["training"]  # which cannot be told from a change that was hidden
    assert len(list_entries()) == 3
    in_blocks(table, seed=1)["training"]
    in_blocks(table, block_dtype="float32")["training"]
    in_blocks(table, columns={"city": "hashing"})["training"]
    in_blocks(table, rows=9, memory="1 MB")["training"]  # the same arrays
    assert len(list_entries(cache)) == 6


def change_in_place(path: Path) -> None:
    """Change a number of the last row, and nothing that the system says of the file."""
    status, content = path.stat(), path.read_bytes()
    with path.open("rb+") as file:
        file.write(content[:-3] + (b"1" if content[-3:-2] != b"1" else b"2") + content[-2:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_ino == status.st_ino


def test_a_table_that_changes_in_place_is_prepared_again(tmp_path):
    write_csv(make_frame()[["size", "city", "price"]], tmp_path / "houses.csv")
    in_blocks(tmp_path / "houses.csv")["training"]
    change_in_place(tmp_path / "houses.csv")
    check_equal(in_blocks(tmp_path / "houses.csv")["training"], Tabular(tmp_path / "houses.csv", "price")["training"])


def test_a_table_that_changes_in_place_while_it_is_prepared_is_refused(tmp_path, monkeypatch, cache):
    write_csv(make_frame()[["size", "city", "price"]], tmp_path / "houses.csv")
    fit = preparing.fit_columns

    def change(*given: Any) -> Any:
        change_in_place(tmp_path / "houses.csv")
        return fit(*given)

    monkeypatch.setattr(preparing, "fit_columns", change)
    with pytest.raises(SigmaDataError, match=r"houses.csv: has changed while it was prepared. Start again when it is"):
        in_blocks(tmp_path / "houses.csv")["training"]
    assert not [*cache.glob("*/*")]


def test_a_table_that_changes_while_it_is_prepared_is_refused(table, monkeypatch, cache):
    encode = preparing.EncodedBatch.from_batch

    def change(*given: Any) -> Any:
        os.utime(table, ns=(1, 1))
        return encode(*given)

    monkeypatch.setattr(preparing.EncodedBatch, "from_batch", change)
    with pytest.raises(SigmaDataError, match=r"houses.parquet: has changed while it was (read|prepared)"):
        in_blocks(table)["training"]
    assert not [*cache.glob("*/*")]


def test_two_at_once_prepare_a_table_once(table, monkeypatch):
    fit, fitted, rows = preparing.fit_columns, list[int](), dict[int, Dataset]()

    def count(*given: Any) -> Any:
        fitted.append(1)
        return fit(*given)

    monkeypatch.setattr(preparing, "fit_columns", count)
    threads = [
        threading.Thread(target=lambda i=i: rows.update({i: in_blocks(table)["training"]}))  # type: ignore[misc]
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fitted) == 1
    for i in range(4):
        check_equal(rows[i], Tabular(table, "price")["training"])


@pytest.mark.parametrize("damage", ["cut", "gone", "garbage", "shape"])
def test_a_damaged_entry_is_made_again(table, cache, damage):
    in_blocks(table)["training"]
    (array,), (document,) = cache.glob("*/*.npy"), cache.glob("*/entry.json")
    if damage == "cut":
        os.truncate(array, 200)
    elif damage == "gone":
        array.unlink()
    elif damage == "shape":
        np.save(array, np.zeros((3, 2)))
    else:
        document.write_bytes(b"[1, {")
    check_equal(in_blocks(table)["training"], Tabular(table, "price")["training"])


def test_what_is_damaged_and_interrupted_again_is_not_taken_for_complete(table, cache, monkeypatch):
    in_blocks(table)["training"]
    (array,) = cache.glob("*/*.npy")
    array.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(preparing.EncodedBatch, "from_batch", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            in_blocks(table)["training"]
    check_equal(in_blocks(table)["training"], Tabular(table, "price")["training"])


def test_entries_are_listed_and_removed_while_they_are_read(table, cache):
    rows = in_blocks(table)["training"]
    wanted = read_all(rows)
    (entry,) = list_entries()
    assert entry.read()["source"] == str(table)
    assert entry.size > 192 * 8
    entry.remove()
    assert [*cache.iterdir()] == []
    assert list_entries() == []
    assert read_all(rows)["inputs"].tobytes() == wanted["inputs"].tobytes()
    check_equal(in_blocks(table)["training"], Tabular(table, "price")["training"])


def test_an_entry_that_is_locked_is_waited_for_and_not_deleted(tmp_path, capsys):
    entry, order = PreparedEntry(tmp_path / "a"), list[str]()

    def hold() -> None:
        with entry.hold_lock():
            order.append("taken")

    with entry.hold_lock():
        with pytest.raises(SigmaDataError, match="a: a process prepares it now"):
            entry.remove()
        thread = threading.Thread(target=hold)
        thread.start()
        thread.join(0.2)
        order.append("released")
    thread.join()
    assert order == ["released", "taken"]
    assert "a: another process prepares this table, and is waited for." in capsys.readouterr().err
    entry.remove()
    with entry.hold_lock():  # whose lock file is a new one
        assert entry.folder.is_dir()


def test_one_that_waits_for_an_entry_that_is_deleted_meanwhile_locks_the_next_one(tmp_path):
    entry, taken = PreparedEntry(tmp_path / "a"), list[bool]()

    def hold() -> None:
        with entry.hold_lock():
            taken.append(entry.folder.is_dir())
            with pytest.raises(SigmaDataError):
                entry.remove()

    with entry.hold_lock():
        thread = threading.Thread(target=hold)
        thread.start()
        thread.join(0.2)
        (tmp_path / "a.locked").unlink()
        entry.folder.rmdir()
    thread.join()
    assert taken == [True]


class Doubled(NumberEncoder):
    """An encoder of one's own."""


@pytest.mark.parametrize("typed", ["", "print", "class Doubled: ..."])
def test_what_an_encoder_of_ones_own_prepares_is_not_used_after_its_code_changes(table, monkeypatch, typed):
    sources = iter([typed, typed, typed + " # changed"])

    def find_source(cls: type) -> str:
        if typed == "print":
            raise OSError("typed in")
        return next(sources)

    monkeypatch.setattr(code.inspect, "getsource", find_source)
    monkeypatch.setattr(Doubled, "__module__", "__main__" if typed else __name__)
    for _ in range(3):
        in_blocks(table, columns={"size": Doubled()})["training"]
    assert len(list_entries()) == {"": 1, "print": 3}.get(typed, 2)


# -- errors ------------------------------------------------------------------------------------------------------------
def test_blocks_of_more_than_1_gib_are_refused(table):
    with pytest.raises(SigmaConfigError, match=r"block_rows: .* are more than 1 GiB, the most of a block. Set at most"):
        in_blocks(table, 1 << 28)["training"]


@pytest.mark.parametrize("path", [make_frame(), pa.Table.from_pandas(make_frame())])
def test_only_tables_in_local_files_have_blocks(path):
    with pytest.raises(SigmaConfigError, match="only tables in files and databases are read in blocks"):
        in_blocks(path)["training"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone.parquet", r"gone\.parquet: there is no such file\. Check the path"),
        ("gone*.csv", r"gone\*\.csv: no file has such a name\. Check the pattern"),
        (".", "holds no file"),
    ],
)
def test_a_file_that_is_missing_is_what_an_error_names(tmp_path, name, reason):
    with pytest.raises(SigmaDataError, match=reason):
        in_blocks(tmp_path / name)["training"]


def test_a_number_that_32_bits_cannot_hold_is_refused_with_its_place(tmp_path, cache):
    frame = make_frame()
    frame["size"] = 1.0
    frame.loc[100, "size"] = 1e39
    write_csv(frame, tmp_path / "houses.csv")
    unscaled = {"columns": {"size": {"type": "number", "scale": "none"}}, "block_rows": 7}
    with pytest.raises(SigmaDataError, match=r"houses.csv:102: 'size' is 1e\+39, too large for float32. Scale it"):
        Tabular(tmp_path / "houses.csv", "price", **unscaled)["training"]
    assert not [*cache.glob("*/*")]
    Tabular(tmp_path / "houses.csv", "price", block_dtype="float64", **unscaled)["training"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_are_too_large_are_refused_with_a_remedy_that_works(tmp_path, dtype):
    frame = make_frame()[["city", "price"]].assign(size=np.where(np.arange(N) % 2, 1.7e308, -1.7e308))
    write_csv(frame, tmp_path / "houses.csv")
    for settings in ({"block_rows": 7, "block_dtype": dtype}, {}):
        with pytest.raises(SigmaDataError, match=r"column 'size': its numbers are so large .*, or set log = true or"):
            Tabular(tmp_path / "houses.csv", "price", **settings)["training"]
    logs = {"columns": {"size": {"type": "number", "log": True}}}
    encoded = read_all(in_blocks(tmp_path / "houses.csv", block_dtype=dtype, **logs)["training"])["inputs"]
    assert np.isfinite(encoded).all()
    frame.loc[:, "size"] = np.where(np.arange(N) == 100, 1.7e308, 1.0 + np.arange(N) % 3 / 1000)
    write_csv(frame, tmp_path / "houses.csv")
    order = {"split": {"training": 0.25, "test": 0.75}, "split_by": "block"}
    with pytest.raises(SigmaDataError, match=r"houses.csv:102: column 'size': 1.7e\+308 is too large to be scaled"):
        in_blocks(tmp_path / "houses.csv", block_dtype=dtype, **order)["training"]


def test_what_an_encoder_makes_infinite_is_refused_with_its_place(table, monkeypatch):
    monkeypatch.setattr(NumberEncoder, "apply", lambda self, column, state: np.full((len(column), 1), np.nan))
    with pytest.raises(
        SigmaDataError, match=r"houses.parquet: row 0: 'size' is nan when it is encoded. Correct the value"
    ):
        in_blocks(table)["training"]


@pytest.mark.parametrize("time", [None, "sold"])
def test_a_value_that_an_encoder_refuses_has_its_place(tmp_path, time):
    frame = make_frame()
    frame.loc[100, "size"] = None
    frame["size"] = frame["size"].fillna(7.0).where(frame.index != 100)
    frame.loc[:5, "price"] = None
    write_csv(frame, tmp_path / "houses.csv")
    refuse = {"columns": {"size": {"type": "number", "missing": "refuse"}}, "missing_targets": "drop", "time": time}
    with pytest.raises(SigmaDataError, match=r"houses.csv:102: column 'size': there is no value"):
        in_blocks(tmp_path / "houses.csv", **refuse)["training"]


# -- looking at large tables -------------------------------------------------------------------------------------------
def test_of_a_large_table_the_first_rows_of_each_split_are_examined(table, monkeypatch):
    data = in_blocks(table, target="kind")
    splits = {name: split.encode("targets", 0) for name, split in data.items()}
    assert gathering.gather(data, splits).sentences == ()
    monkeypatch.setattr(gathering, "CELLS", 2 * 20 * (1 + len(data["training"].column_names("inputs"))))
    rows = gathering.gather(data, splits)
    assert {name: len(part) for name, part in rows.splits.items()} == {"training": 20, "validation": 20}
    assert rows.sentences == ("there are 240 rows, of which 40 are examined.",)


@pytest.mark.parametrize("name", ["houses.parquet", "houses.feather"])
def test_a_profile_reads_the_first_rows_and_counts_all(tmp_path, name, monkeypatch):
    WRITERS[name](make_frame(), tmp_path / name)
    monkeypatch.setattr("sigma_data.profiling.inspectors.MOST", 90)
    source = open_table(tmp_path / name)
    head, rows = source.read_first(90)
    assert (head.num_rows, rows) == (90, N)
    assert head == source.read().slice(0, 90)
    assert source.read_first(300)[0] == source.read()
    profile = Tabular(tmp_path / name, "price").profile()
    assert profile.document["rows"] == N
    assert profile.document["columns"][0]["distinct"] == 90


@pytest.mark.parametrize("rows", [1.5, 2.0, True, 0])
def test_rows_of_a_block_are_whole(table, rows):
    with pytest.raises(SigmaConfigError, match="block_rows"):
        in_blocks(table, block_rows=rows)


def test_the_cache_may_be_in_the_home_directory(table):
    assert Tabular(table, "price", cache="~/blocks").cache == Path.home() / "blocks"


def test_arrays_that_another_process_has_mapped_stay_when_they_are_prepared_again(tmp_path):
    entry, kind = PreparedEntry(tmp_path / "a"), np.dtype(np.float32)
    with entry.hold_lock():
        entry.create("inputs", (1000, 4), kind)[:] = 1.0
        mapped = entry.map("inputs", (1000, 4), kind)
        entry.create("inputs", (2, 4), kind)
    assert mapped is not None
    assert mapped.sum() == 4000.0


def test_an_array_that_cannot_be_opened_is_no_reason_to_prepare_it_again(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(np, "load", refuse)
    with pytest.raises(SigmaDataError, match="Too many open files"):
        PreparedEntry(tmp_path / "a").map("inputs", (2, 4), np.dtype(np.float32))


def test_a_lock_that_may_only_be_read_is_taken(tmp_path, monkeypatch):
    entry, opens = PreparedEntry(tmp_path / "a"), os.open
    with entry.hold_lock():
        pass

    def open_read_only(path: Path, flags: int, *more: int) -> int:
        if flags & os.O_CREAT and str(path).endswith(".locked"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opens(path, flags, *more)

    monkeypatch.setattr(os, "open", open_read_only)
    with entry.hold_lock():
        assert entry.folder.is_dir()


def test_columns_of_long_texts_are_read_alone_and_few_rows_at_once(tmp_path, monkeypatch):
    draws = np.random.default_rng(3)
    texts = {f"t{i}": [" ".join(draws.choice(["a", "bc", "def"], 200)) for _ in range(N)] for i in range(6)}
    pd.DataFrame({**texts, "x": draws.normal(size=N), "price": 1.0 + np.arange(N)}).to_parquet(
        tmp_path / "texts.parquet", row_group_size=50
    )
    monkeypatch.setattr("sigma_data.tables.parquet.BATCH", 1 << 14)
    monkeypatch.setattr(preparing, "HEAVY", 1 << 14)
    groups, threads, sizes = list[list[str]](), list[int | None](), list[int]()
    group, start = preparing.group_columns, PreparedTable._read_batches
    monkeypatch.setattr(preparing, "MANY", N * preparing.WORDY * 6)
    monkeypatch.setattr(preparing, "group_columns", lambda *given: groups.extend(group(*given)) or groups)
    act = preparing.map_in_threads
    monkeypatch.setattr(
        preparing, "map_in_threads", lambda do, items, most: threads.append(most) or act(do, items, most)
    )

    def note(*given: Any) -> Any:
        for batch in start(*given):
            sizes.append(batch.nbytes)
            yield batch

    monkeypatch.setattr(PreparedTable, "_read_batches", note)
    how = {"columns": dict.fromkeys(texts, "hashing")}
    prepared = in_blocks(tmp_path / "texts.parquet", **how)
    check_equal(prepared["training"], Tabular(tmp_path / "texts.parquet", "price", **how)["training"])
    assert threads == [1]
    assert max(sizes) < 1 << 15
    held = open_table(tmp_path / "texts.parquet").read([*texts]).nbytes // 6
    assert sum(open_table(tmp_path / "texts.parquet").sizes.values()) == pytest.approx(6 * held, rel=0.2)
    monkeypatch.setattr(preparing, "MANY", held // 8)
    assert [name for names in group(open_table(tmp_path / "texts.parquet"), [*texts], 1) for name in names] == [*texts]
    assert len(group(open_table(tmp_path / "texts.parquet"), [*texts], 1)) == 6
