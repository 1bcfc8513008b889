"""Runs on series that are read in blocks: the same bits for any memory, resumed, replayed, edited, predicted from."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import Series
from sigma_kernel import Environment
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_testing import state_bytes
from tests.large_runs import read_bytes, train_file

pytestmark = pytest.mark.rooms
TOML = """
format = 1
[data]
dataset = { type = "series", path = "load.parquet", target = "load", time = "at", group = "shop", past = 12, TABLE }
DATA
batch_size = 20
[network]
architecture = "input() + flatten() + dense(8, activation='tanh') + output(2) + squared_difference()"
[trainer]
epochs = 3
optimiser = { type = "adam", learning_rate = 0.01 }
"""
BLOCKS = 'ahead = 2, known = "price", gaps = "hold", block_rows = 16, cache = "cache"'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with two series whose rows are mixed."""
    monkeypatch.chdir(tmp_path)
    draws, hours = np.random.default_rng(0), np.arange(400)
    parts = [
        pd.DataFrame(
            {
                "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, "h"),
                "shop": shop,
                "load": np.sin(hours / 24 * 2 * np.pi) + draws.normal(0, 0.1, 400),
                "price": draws.integers(1, 9, 400),
            }
        )[draws.random(400) < 0.99]
        for shop in ("a", "b")
    ]
    pd.concat(parts).sample(frac=1, random_state=0).to_parquet("load.parquet", row_group_size=100)
    return tmp_path


def train(folder: Path, name: str, table: str = BLOCKS, data: str = "", **settings: Any) -> Path:
    """Run a configuration with these settings; return the folder of the run."""
    return train_file(TOML.replace("TABLE", table).replace("DATA", data), folder, name, **settings)


@pytest.mark.parametrize("data", ["", 'augmentations.noise = { type = "noise", deviation = 0.1 }'])
def test_a_run_has_the_same_bits_whatever_stays_in_memory(folder: Path, data: str):
    runs = [
        train(folder, f"m{i}", f'{BLOCKS}, memory = "{memory}"', data)
        for i, memory in enumerate(["0 B", "20 KB", "2 GB"])
    ]
    first, *others = map(read_bytes, runs)
    assert others == [first, first]
    assert len({json.dumps(load(run).evaluate("validation")) for run in runs}) == 1


def test_a_run_on_few_blocks_has_the_bits_of_one_in_memory(folder: Path):
    held = train(folder, "held", 'ahead = 2, known = "price", gaps = "hold"')
    few = train(folder, "few", BLOCKS.replace("block_rows = 16", "block_rows = 100"))
    assert read_bytes(few) == read_bytes(held)
    assert load(few).evaluate("test") == load(held).evaluate("test")


def test_a_run_is_resumed_and_replayed_to_the_bit_from_a_cache_that_was_cleared(folder: Path):
    whole, half = train(folder, "whole"), train(folder, "half", **{"trainer.epochs": 2})
    for path in folder.glob("cache/*/*"):
        path.unlink()
    assert main(["replay", str(whole)]) == 0
    assert main(["resume", str(half), "--set", "trainer.epochs=3", "--quiet"]) == 0
    assert read_bytes(half) == read_bytes(whole)


def test_windows_are_excluded_by_their_numbers(folder: Path):
    states = []
    for rows in (None, 100):
        data = Series(
            Path("load.parquet"), "load", "at", 12, 2, group="shop", block_rows=rows, block_dtype="float64",
            cache=Path("cache"),
        )  # fmt: skip
        with Environment("edited", seed=4) as sigma:
            network = "input() + flatten() + output(2) + squared_difference()"
            sigma.create_trainer(data=data, network=network, batch_size=16, optimiser="adam")
            sigma.prepare()
            sigma.exclude([3, 250])
            sigma.trainer("trainer").fit(epochs=2)
            states.append(state_bytes(sigma.trainer("trainer")))
    assert states[0] == states[1]


def test_it_predicts_each_window_with_group_and_time(folder: Path, capsys: pytest.CaptureFixture[str]):
    run = train(folder, "blocks")
    assert main(["predict", str(run), "load.parquet", "--output", "out.csv"]) == 0
    with open("out.csv") as file:
        rows = [*csv.DictReader(file)]
    assert {row["shop"] for row in rows} == {"a", "b"}
    assert len(rows) > 700
    assert main(["check", "blocks.toml"]) == 0
    capsys.readouterr()
    assert main(["explain", "blocks.toml"]) == 0
    assert "blocks of 16 rows, read ahead" in capsys.readouterr().out
