"""Series that are read in blocks: windows equal to those in memory, prepared once, in any order of the rows."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import NumberEncoder, Series
from sigma_data.prepared import opening, preparing
from sigma_data.prepared.entries import list_entries
from sigma_data.series.in_blocks import MappedWindows, RowPlaces
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite

ROUNDS = 200 if os.environ.get("SIGMA_LONG") else 20
STEPS = ("h", "D", "MS", "ME", "15min", "7D")
ENCODERS: dict[str, tuple[Any, ...]] = {
    "load": (NumberEncoder(scale="none"), {"type": "number", "missing": "median", "indicator": True}),
    "heat": ({"type": "number", "scale": "quantile"}, "exclude"),
    "sky": ("index", {"type": "one_hot", "least": 3}, {"type": "hashing", "size": 3}),
    "feast": ("one_hot", "exclude"),
    "at": ("date", "exclude"),
}
WRITERS: dict[str, Any] = {
    "parquet": lambda frame, path: frame.to_parquet(path, row_group_size=13),
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True, date_format="iso"),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let tables be prepared in a folder of the test, a few rows at once."""
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(preparing, "AT_ONCE", 100)
    monkeypatch.setattr(preparing, "MANY", 300)
    return tmp_path / "cache" / "tables"


# -- series that are drawn ---------------------------------------------------------------------------------------------
def draw_group(draws: np.random.Generator, name: str, rows: int, step: str, zone: str | None) -> pd.DataFrame:
    start = pd.Timestamp("2021-01-31", tz=zone) + pd.Timedelta(days=31 * int(draws.integers(0, 3)))
    frame = pd.DataFrame(
        {
            "at": pd.date_range(start, periods=rows, freq=step),
            "shop": name,
            "load": draws.normal(10, 3, rows).cumsum(),
            "cost": draws.lognormal(1, 1, rows),
            "heat": np.where(draws.random(rows) < 0.1, np.nan, draws.normal(size=rows)),
            "sky": draws.choice(["clear", "rain", "snow", "hail"], rows, p=[0.6, 0.3, 0.08, 0.02]),
            "feast": draws.choice(["no", "yes"], rows),
            "price": draws.integers(1, 9, rows) / 4,
        }
    )
    return frame[draws.random(rows) < draws.choice([1.0, 0.97])]


def draw_series(seed: int) -> tuple[pd.DataFrame, dict[str, Any], str]:
    """Return a table of several series with gaps, settings, and the end of the name of its file."""
    draws = np.random.default_rng(seed)
    step, zone = str(draws.choice(STEPS)), [None, "Europe/Berlin"][draws.integers(2)]
    groups = [draw_group(draws, f"s{i}", int(draws.integers(60, 150)), step, zone) for i in range(draws.integers(1, 4))]
    frame = pd.concat(groups, ignore_index=True)
    frame.loc[draws.random(len(frame)) < draws.choice([0.0, 0.01]), "load"] = np.nan
    if draws.random() < 0.5:
        frame = frame.iloc[draws.permutation(len(frame))].reset_index(drop=True)
    target = ["load", ("load", "cost")][draws.integers(2)]
    settings: dict[str, Any] = {
        "target": target, "time": "at", "past": int(draws.integers(1, 7)), "ahead": int(draws.integers(1, 4)),
        "group": "shop", "gaps": str(draws.choice(["cut", "hold"])), "step": str(draws.choice(["auto", "row"])),
        "known": [(), "price", ("price", "feast")][draws.integers(3)],
        "columns": {name: own[draws.integers(len(own))] for name, own in ENCODERS.items() if draws.random() < 0.4},
    }  # fmt: skip
    if draws.random() < 0.3:
        settings["fold"] = {"number": int(draws.integers(3)), "of": 3}
    if draws.random() < 0.3:
        settings["exclude"] = ("sky", "heat")
        settings["columns"] = {}
    return frame, settings, str(draws.choice([*WRITERS]))


def read_all(dataset: Dataset) -> dict[str, np.ndarray]:
    blocks = [dataset.block(number) for number in range(dataset.blocks)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def check_equal(prepared: Series, held: Series, dtype: str = "float64") -> None:
    """Compare all that two series say, to the bit."""
    assert [*prepared] == [*held]
    assert prepared.learned == held.learned
    for name, rows in held.items():
        own, wanted = read_all(prepared[name]), read_all(rows)
        assert own["inputs"].tobytes() == wanted["inputs"].astype(dtype).tobytes(), name
        assert own["targets"].tobytes() == wanted["targets"].tobytes(), name
        assert prepared[name].column_names("targets") == rows.column_names("targets")
        assert [*prepared[name].numbers(0)] == [*range(prepared[name].rows(0))]


def read_error(series: Series) -> str:
    """Return why a series cannot be read; empty if it can."""
    try:
        return str(not series.learned or "")
    except SigmaDataError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_windows_are_those_in_memory(tmp_path: Path, seed: int):
    frame, settings, form = draw_series(seed)
    path = tmp_path / f"series.{form}"
    WRITERS[form](frame, path)
    held = Series(path, **settings)
    reason = read_error(held)
    if reason:  # as one split has no window
        assert read_error(Series(path, block_rows=7, **settings)) == reason
        return
    dtype, memory = ("float32", "2 KB") if seed % 2 else ("float64", "0 B")
    for rows in (1 + seed % 9, 10_000):
        blocks = Series(path, block_rows=rows, block_dtype=dtype, memory=memory, **settings)
        check_equal(blocks, held, dtype)
        assert all(isinstance(part, MappedWindows) for part in blocks.values())
    assert len(list_entries()) == 1


# -- blocks ------------------------------------------------------------------------------------------------------------
def write_two(path: Path, seed: int = 0) -> Path:
    """Write two series of 90 and 60 hours, their rows mixed."""
    draws = np.random.default_rng(seed)
    frame = pd.concat([draw_group(draws, "a", 90, "h", None), draw_group(draws, "b", 60, "h", None)])
    WRITERS[path.suffix[1:]](frame.iloc[draws.permutation(len(frame))], path)
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_two(tmp_path / "two.parquet")


def in_blocks(path: Path, **settings: Any) -> Series:
    plain: Mapping[str, Any] = {"target": "load", "time": "at", "past": 5, "ahead": 2, "group": "shop"}
    return Series(path, **{"block_rows": 8, "block_dtype": "float64", **plain, **settings})


class TestMappedWindows(DatasetSuite):
    def make(self) -> Dataset:
        return in_blocks(write_two(Path(os.environ["SIGMA_CACHE"]).parent / "suite.parquet"))["training"]


def test_blocks_have_so_many_windows_and_are_drawn_from_together(two: Path):
    rows = in_blocks(two)["training"]
    assert {rows.rows(i) for i in range(rows.blocks - 1)} == {8}
    assert rows.open_blocks == 16
    assert in_blocks(two, block_rows=10_000)["training"].blocks == 1


@pytest.mark.parametrize(("memory", "is_kept"), [("0 B", False), ("1 MB", True)])
def test_as_many_blocks_stay_in_memory_as_fit(two: Path, memory: str, is_kept: bool):
    rows = in_blocks(two, memory=memory, gaps="hold")["training"]
    assert isinstance(rows, MappedWindows)
    pairs = [[rows.block(i)["inputs"] for _ in range(2)] for i in range(rows.blocks)]
    far = [first for first, second in pairs if not np.shares_memory(first, second)]
    assert len(far) <= 1  # the one that has windows of both groups
    assert any(np.shares_memory(first, rows.mapped) for first, _ in pairs) is not is_kept
    assert all(first.tobytes() == second.tobytes() for first, second in pairs)
    with pytest.raises(ValueError, match="read-only"):
        pairs[0][0][0] = 1.0


def test_a_block_of_neighbours_copies_each_row_once(two: Path):
    rows = in_blocks(two, memory="1 MB", split={"training": 1.0}, gaps="hold")["training"]
    inputs = rows.block(0)["inputs"]
    low, high = np.lib.array_utils.byte_bounds(inputs)
    assert high - low == (8 + 5 - 1) * inputs.shape[2] * 8


@pytest.mark.parametrize("later", [0, 1, 5])
@pytest.mark.parametrize("seed", range(4))
def test_places_of_rows_that_are_mixed_or_held_are_those_of_a_search(later: int, seed: int):
    draws = np.random.default_rng(seed)
    numbers = np.repeat(draws.permutation(40) if seed % 2 else np.arange(40), draws.integers(1, 4, 40))
    places = RowPlaces(numbers, later)
    held = [numbers[min(i + later, len(numbers) - 1)] for i in range(len(numbers))]
    for first in range(0, 40, 7):
        wanted = [i for i, number in enumerate(held) if first <= number < first + 7]
        assert places.find(first, 7).tolist() == wanted
        assert numbers[places.shift(np.array(wanted, int))].tolist() == [held[i] for i in wanted]


def test_a_large_series_is_read_in_blocks_of_4_mib(two: Path, monkeypatch: pytest.MonkeyPatch):
    assert not isinstance(in_blocks(two, block_rows=None)["training"], MappedWindows)
    monkeypatch.setattr(opening, "LARGE", 1000)
    rows = in_blocks(two, block_rows=None)["training"]
    assert isinstance(rows, MappedWindows)
    monkeypatch.setattr("sigma_data.prepared.blocks.BLOCK", 16 * rows.window_bytes)
    assert in_blocks(two, block_rows=None)["training"].rows(0) == 16


def test_windows_of_another_length_are_of_the_same_arrays(two: Path):
    for settings in ({}, {"past": 9}, {"block_rows": 3}):
        check_equal(in_blocks(two, **settings), in_blocks(two, **{**settings, "block_rows": None}))
    assert len(list_entries()) == 1
    in_blocks(two, ahead=3)["training"]
    in_blocks(two, gaps="hold")["training"]
    assert len(list_entries()) == 3


# -- what may happen meanwhile -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["two.parquet", "two.csv"])
def test_an_interrupted_preparation_is_continued(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    path, encoded, apply = write_two(tmp_path / name), list[int](), NumberEncoder.apply
    monkeypatch.setattr(preparing, "NOTED", 1)
    monkeypatch.setattr("sigma_data.tables.parquet.ROWS", 13)

    def interrupt(self: NumberEncoder, column: Any, state: Any) -> np.ndarray:
        encoded.append(len(column))
        if len(encoded) == 20:
            raise KeyboardInterrupt
        return apply(self, column, state)

    monkeypatch.setattr(NumberEncoder, "apply", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_blocks(path, known="price")["training"]
    done = list_entries()[0].read()["done"]
    assert 0 < done < 150
    monkeypatch.setattr(NumberEncoder, "apply", apply)
    monkeypatch.setattr(NumberEncoder, "fit", None)
    prepared = in_blocks(path, known="price")
    prepared["training"]
    monkeypatch.undo()
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path / "cache"))
    check_equal(prepared, in_blocks(path, known="price", block_rows=None))


def test_a_series_that_changes_is_prepared_again(two: Path):
    in_blocks(two)["training"]
    write_two(two, 1)
    check_equal(in_blocks(two), in_blocks(two, block_rows=None))
    assert len(list_entries()) == 2


def test_it_predicts_as_one_in_memory(two: Path, tmp_path: Path):
    new = write_two(tmp_path / "new.csv", 2)
    prepared, held = in_blocks(two), in_blocks(two, block_rows=None)
    width = held["training"].sections["inputs"].shape
    assert prepared.samples(new, width).tobytes() == held.samples(new, width).tobytes()
    assert prepared.identify(new) == held.identify(new)


@pytest.mark.parametrize("block_rows", [None, 8])
def test_values_that_an_encoder_refuses_have_their_place(tmp_path: Path, block_rows: int | None):
    times = pd.date_range("2024-01-01", periods=60, freq="h")
    frame = pd.DataFrame({"at": times, "load": np.arange(60.0), "heat": 1.0, "price": 2.0})
    frame.loc[50, ["heat"]] = np.nan
    frame[::-1].to_csv(tmp_path / "a.csv", index=False)
    refuse = {"type": "number", "missing": "refuse", "scale": "none"}
    settings: dict[str, Any] = {"group": None, "block_rows": block_rows, "columns": {"heat": refuse}}
    for known in ((), "heat"):
        with pytest.raises(SigmaDataError, match=r"a.csv:11: column 'heat': there is no value"):
            in_blocks(tmp_path / "a.csv", known=known, **settings)["training"]


def test_a_number_that_32_bits_cannot_hold_is_refused_with_its_place(tmp_path: Path, cache: Path):
    times = pd.date_range("2024-01-01", periods=60, freq="h")
    frame = pd.DataFrame({"at": times, "load": np.where(np.arange(60) == 50, 1e39, 1.0), "heat": np.arange(60.0)})
    frame.to_parquet(tmp_path / "a.parquet")
    columns = {"load": NumberEncoder(scale="none")}
    with pytest.raises(SigmaDataError, match=r"a.parquet: row 50: 'load' is 1e\+39, too large for float32. Scale it"):
        in_blocks(tmp_path / "a.parquet", group=None, block_dtype="float32", columns=columns)["training"]
    assert not [*cache.glob("*/*")]


def test_blocks_of_more_than_1_gib_are_refused(two: Path):
    with pytest.raises(SigmaConfigError, match=r"block_rows: .* are more than 1 GiB, the most of a block. Set at most"):
        in_blocks(two, block_rows=1 << 28)["training"]


def test_a_series_may_be_a_query(tmp_path: Path):
    frame = pd.read_parquet(write_two(tmp_path / "two.parquet"))
    with closing(sqlite3.connect(tmp_path / "two.db")) as connection, connection:
        frame.assign(at=frame["at"].astype(str)).to_sql("sales", connection, index=False)
    form = {"query": "SELECT * FROM sales WHERE price > 0.25"}
    prepared, held = (in_blocks(tmp_path / "two.db", format=form, block_rows=rows, step="row") for rows in (8, None))
    check_equal(prepared, held)
    assert isinstance(prepared["training"], MappedWindows)
