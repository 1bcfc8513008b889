"""Runs on tables that are read in blocks: the same bits for any memory, resumed, replayed, edited, predicted from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import Tabular
from sigma_kernel import Environment
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_testing import state_bytes
from tests.large_runs import read_bytes, train_file

pytestmark = pytest.mark.rooms
TOML = """
format = 1
[data]
dataset = { type = "table", path = "houses.parquet", target = "kind", TABLE }
DATA
batch_size = 24
[network]
architecture = "input() + dense(8, activation='tanh') + output() + softmax_cross_entropy()"
[trainer]
epochs = 4
optimiser = { type = "adam", learning_rate = 0.01 }
metrics = ["accuracy"]
"""


BLOCKS = 'block_rows = 16, cache = "cache"'


def make_frame(rows: int = 700, seed: int = 0) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": draws.normal(size=rows) for i in range(4)})
    frame["city"] = draws.choice(["Bern", "Zug", "Basel"], rows)
    frame["kind"] = np.where(frame["x0"] + frame["x1"] + (frame["city"] == "Zug") > 0.3, "house", "flat")
    return frame


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a table that is sorted by its classes."""
    monkeypatch.chdir(tmp_path)
    make_frame().sort_values("kind").to_parquet("houses.parquet", row_group_size=100)
    return tmp_path


def train(folder: Path, name: str, table: str = BLOCKS, data: str = "", **settings: Any) -> Path:
    """Run a configuration with these settings; return the folder of the run."""
    return train_file(TOML.replace("TABLE", table).replace("DATA", data), folder, name, **settings)


@pytest.mark.long_cases(', columns = { city = { type = "index", section = "cities" } }-preprocessors.x = "standardise"')
@pytest.mark.parametrize(
    ("table", "data"),
    [
        ("", ""),
        (', class_weights = "balanced", fold = { number = 1, of = 3 }', 'iterator = "balanced"'),
        (', columns = { city = { type = "index", section = "cities" } }', 'preprocessors.x = "standardise"'),
    ],
)
def test_a_run_has_the_same_bits_whatever_stays_in_memory(folder, table, data):
    runs = [
        train(folder, f"m{i}", f'{BLOCKS}, memory = "{memory}"{table}', data)
        for i, memory in enumerate(["0 B", "5 KB", "2 GB"])
    ]
    first, *others = map(read_bytes, runs)
    assert others == [first, first]
    assert len({json.dumps(load(run).evaluate("validation")) for run in runs}) == 1


def test_a_table_that_is_sorted_by_class_is_learned_as_one_in_memory_is(folder):
    runs = [train(folder, name, table, **{"trainer.epochs": 40}) for name, table in (("a", BLOCKS), ("b", "seed = 0"))]
    prepared, held = (load(run).evaluate("validation")["loss"] for run in runs)
    assert prepared < 0.35
    assert prepared == pytest.approx(held, rel=0.1)


def test_a_run_is_resumed_and_replayed_to_the_bit_from_a_cache_that_was_cleared(folder):
    whole, half = train(folder, "whole"), train(folder, "half", **{"trainer.epochs": 2})
    for path in folder.glob("cache/*/*"):
        path.unlink()
    assert main(["replay", str(whole)]) == 0
    assert main(["resume", str(half), "--set", "trainer.epochs=4", "--quiet"]) == 0
    assert read_bytes(half) == read_bytes(whole)


def test_it_predicts_and_is_evaluated_as_one_in_memory(folder, capsys):
    run = train(folder, "blocks")
    held = train(folder, "held", "seed = 0")
    make_frame(90, 1).to_parquet("new.parquet")
    capsys.readouterr()
    assert main(["evaluate", str(run), "new.parquet", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["metrics"]
    predicted = load(run).predict("new.parquet").to_pandas()
    assert values["accuracy"] == pytest.approx(np.mean(predicted["predicted_kind"] == make_frame(90, 1)["kind"]))
    assert [*load(held).predict("new.parquet").to_pandas()] == [*predicted]
    assert main(["check", "blocks.toml"]) == 0
    capsys.readouterr()
    assert main(["explain", "blocks.toml"]) == 0
    assert "35 blocks of 16 rows, read ahead; rows of 16 are drawn together; phases.data" in capsys.readouterr().out
    assert main(["data", "check", "blocks.toml"]) == 0


def train_edited(frame: pd.DataFrame, act: Callable[[Environment], Any]) -> dict[str, bytes]:
    frame.to_parquet("edited.parquet")
    data = Tabular(Path("edited.parquet"), "kind", block_rows=16, cache=Path("cache"), split={"training": 1.0})
    with Environment("edited", seed=4) as sigma:
        network = "input() + dense(4) + output() + softmax_cross_entropy()"
        sigma.create_trainer(data=data, network=network, batch_size=16, optimiser="adam")
        sigma.prepare()
        act(sigma)
        sigma.trainer("trainer").fit(epochs=2)
        return state_bytes(sigma.trainer("trainer"))


def test_rows_are_relabelled_and_excluded_by_their_numbers_in_the_table(folder):
    frame = make_frame()
    frame["kind"] = np.where(frame.index == 600, "flat", frame["kind"])
    changed = frame.assign(kind=np.where(frame.index.isin([5, 600]), "house", frame["kind"]))
    plain = train_edited(frame, lambda sigma: None)
    assert train_edited(frame, lambda sigma: sigma.relabel([5, 600], "house")) == train_edited(changed, bool) != plain
    wrong = frame.assign(kind=np.where(frame.index == 600, "house", frame["kind"]))
    first, second = (train_edited(rows, lambda sigma: sigma.exclude([600])) for rows in (frame, wrong))
    assert first == second != plain


def test_data_at_a_path_are_read_in_blocks_if_they_are_large(folder, monkeypatch):
    monkeypatch.setenv("SIGMA_CACHE", str(folder / "cache"))
    blocks = []
    for large in (1 << 30, 1000):
        monkeypatch.setattr("sigma_data.prepared.opening.LARGE", large)
        with Environment("path", seed=4) as sigma:
            network = "input() + output() + softmax_cross_entropy()"
            trainer = sigma.create_trainer(data="houses.parquet", target="kind", network=network, optimiser="adam")
            trainer.fit(epochs=1)
            blocks.append(trainer.session.setup.feed.dataset.open_blocks)
            assert trainer.evaluate("validation")["loss"] < 2.0
    assert blocks == [1, 16]
