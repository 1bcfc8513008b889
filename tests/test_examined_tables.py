"""What a data set finds odd about its rows is told once, before training: by sigma check, by sigma run, and by fit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import Arrays, Frame
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaComponentError, SigmaWarning
from sigma_run.launcher.group import main

RUN = """
format = 1
[run]
name = "index"
backend = "numpy"
[data]
dataset = "csv"
path = "table.csv"
target = "y"
[network]
architecture = "input(2) + output(2) + softmax_cross_entropy()"
[trainer]
epochs = 1
optimiser = "adam"
"""
SAID = "warning: trainer: column '' has no name, as an index that was saved with a table."


@pytest.fixture
def table() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame({"a": draw.normal(size=100), "y": np.where(np.arange(100) < 50, "u", "v")})


@pytest.fixture
def folder(table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with a configuration, and a table that pandas saved with its index."""
    table.to_csv(tmp_path / "table.csv")
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("default", SigmaWarning)  # as for users; tests ignore it
        yield tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> int:
    """Return how often a command prints the finding."""
    assert main([*words]) == 0
    return capsys.readouterr().err.count(SAID)


def test_check_and_run_tell_it_once_and_what_follows_a_run_does_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "check", "run.toml") == 1
    assert told(capsys, "run", "run.toml") == 1
    (run,) = map(str, (folder / "runs").iterdir())
    assert told(capsys, "evaluate", run) == told(capsys, "evaluate", run, "table.csv") == 0
    assert told(capsys, "resume", run, "--epochs", "2") == told(capsys, "replay", run) == 0
    small = ("--set", 'data.exclude=[""]', "--set", 'network.architecture="input(1)+output(2)+softmax_cross_entropy()"')
    assert told(capsys, "check", "run.toml", *small) == 0


def trainer(data: Any, inputs: int, **settings: Any) -> Any:
    network = f"input({inputs}) + output(2) + softmax_cross_entropy()"
    environment = Environment("examined", seed=0)
    return environment.create_trainer(data=data, network=network, optimiser="adam", backend="numpy", **settings)


@pytest.mark.parametrize("way", ["frame", "pair"])
def test_fit_warns_at_the_line_of_the_caller(table: pd.DataFrame, way: str) -> None:
    table.insert(0, "PassengerId", range(7, 107))
    data = Frame(table, "y") if way == "frame" else (table[["PassengerId", "a"]], table["y"])
    made = trainer(data, 2, validation_split=0.2)
    with pytest.warns(SigmaWarning, match=r"^trainer: column 'PassengerId' counts the rows up, as an index") as found:
        made.fit(epochs=1, progress=False)
    assert [Path(one.filename).name for one in found] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SigmaWarning)
        made.fit(epochs=1, progress=False)
        made.evaluate(data)


def test_a_class_without_validation_rows_is_told_for_arrays_as_well() -> None:
    labels = np.array([0, 1] * 30 + [2])
    made = trainer((np.zeros((61, 1)), labels % 2), 1, validation_split=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SigmaWarning)
        made.prepare()
    words = Arrays(inputs=np.zeros((61, 1)), targets=np.array(["a", "b", "c"])[labels])
    made = trainer(words, 1, validation_split={"split": {"training": 0.8, "validation": 0.2}, "split_by": "block"})
    made.network = "input(1) + output(3) + softmax_cross_entropy()"
    with pytest.warns(
        SigmaWarning, match=r"class 'c' has no row in the split 'training': .* fewer such rows than splits"
    ):
        made.prepare()
    made = trainer(words, 1, validation_split=0.2)
    made.network, made.data = "input(1) + output(1) + squared_difference()", (np.zeros((61, 1)), labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SigmaWarning)
        made.prepare()  # numbers are no classes


def test_findings_that_are_no_sentences_are_an_error_of_the_data_set() -> None:
    class Odd(Arrays):
        def findings(self, classes: Any, others: Any) -> Sequence[str]:
            return "a letter each"

    with pytest.raises(SigmaComponentError, match=r"data \(.*Odd\): findings\(\) must return a list of sentences"):
        trainer(Odd(inputs=np.zeros((4, 1)), targets=np.zeros(4, int)), 1).prepare()


# -- digits ------------------------------------------------------------------------------------------------------------
TIMES = 1_700_000_000.0 + np.arange(100)[::-1]  # seconds, of which float32 holds every 128th
NETWORK = "input(2) + output(1) + squared_difference()"


def numbers(column: np.ndarray, **settings: Any) -> Any:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.normal(size=100), "time": column, "y": draw.normal(size=100)})
    made = trainer(Frame(frame, "y"), 2, **settings)
    made.network = NETWORK
    return made


@pytest.mark.parametrize("column", [TIMES, 2_460_000.5 + np.arange(100) / 1000, 2.0**24 + np.arange(100)])
def test_a_column_whose_differences_float32_loses_is_told_unless_it_is_standardised(column: np.ndarray) -> None:
    first = next(value for value in column.tolist() if float(np.float32(value)) != value)
    said = (
        f"column 'time' of section 'inputs' holds {first:.15g}, which float32 rounds to {np.float32(first):.15g}. Give"
    )
    with pytest.warns(SigmaWarning, match=re.escape(said)):
        numbers(column).prepare()
    with warnings.catch_warnings():
        warnings.simplefilter("error", SigmaWarning)
        numbers(column, preprocessors=["standardise"]).prepare()
        numbers(column, precision="float64").prepare()


@pytest.mark.parametrize(
    "column", [np.arange(100) ** 2.0 + 0.1, np.full(100, 2.0**24 + 1), np.linspace(1e9, 2e9, 100) + 0.5]
)
def test_numbers_that_float32_tells_apart_are_left_alone(column: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*rounds to", category=SigmaWarning)
        numbers(column).prepare()


def test_targets_of_a_pair_of_arrays_are_told_by_number() -> None:
    made = trainer((np.zeros((100, 1)), TIMES[:, None]), 1)
    made.network = "input(1) + output(1) + squared_difference()"
    with pytest.warns(
        SigmaWarning, match=r"^trainer: column 0 of section 'targets' holds 1700000099, which float32 rou"
    ):
        made.prepare()
    made.fit(epochs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SigmaWarning)
        made.evaluate((np.zeros((100, 1)), TIMES[:, None]))


@pytest.mark.parametrize("form", [tuple, lambda pair: dict(zip(("inputs", "targets"), pair, strict=True))])
def test_splits_of_plain_arrays_are_examined_for_classes(form: Any) -> None:
    labels = np.array([0, 1, 2] * 10)
    data = {"training": form((np.zeros((30, 1)), labels % 2)), "validation": form((np.zeros((30, 1)), labels))}
    made = trainer(data, 1)
    made.network = "input(1) + output(3) + softmax_cross_entropy()"
    with pytest.warns(SigmaWarning, match=r"^trainer: class 2 has no row in the split 'training': nothing is learned"):
        made.prepare()
