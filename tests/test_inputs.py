"""Inputs are numbers.  Words and booleans are refused with a remedy, wherever the data comes from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_data import Arrays, Cast, Csv, Npy, Records, Stream
from sigma_data.readers.npy import NpyReader
from sigma_data.sources.file import File
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaDataError, SigmaError, SigmaNetworkError
from sigma_layers import Input, Output, SquaredDifference
from sigma_optimisers import GradientDescent
from sigma_run import load
from sigma_run.config import build, load as configuration

X = np.array([[True, False], [False, False], [True, True], [False, True]])
Y = np.array([[1.0], [0.0], [3.0], [2.0]], np.float32)
REMEDY = r"section 'inputs' holds booleans, not numbers\. .* give x\.astype\(float\), or add the preprocessor cast"


def npy(folder: Path, x: np.ndarray) -> Npy:
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", Y)
    return Npy(folder / "x.npy", folder / "y.npy", split={"training": 1.0})


def records(folder: Path, x: np.ndarray) -> Any:
    class Both(NpyReader):
        def read(self, source: Any) -> dict[str, np.ndarray]:
            return {"inputs": super().read(source)["values"], "targets": Y}

    np.save(folder / "x.npy", x)
    return Records(File(folder / "x.npy"), Both(), split={"training": 1.0})


SOURCES: dict[str, Callable[[Path, np.ndarray], Any]] = {
    "a pair": lambda folder, x: (x, Y),
    "a mapping": lambda folder, x: {"inputs": x, "targets": Y},
    "lists": lambda folder, x: (x.tolist(), Y.tolist()),
    "blocks": lambda folder, x: [(x[:2], Y[:2]), (x[2:], Y[2:])],
    "Arrays": lambda folder, x: Arrays(inputs=x, targets=Y),
    "Stream": lambda folder, x: Stream(list(zip(x, Y, strict=True))),
    "Npy": npy,
    "Records": records,
}


def trainer(data: Any, **settings: Any) -> Any:
    network = Input(2) + Output(1) + SquaredDifference()
    made = Environment("inputs").create_trainer(network=network, data=data, optimiser=GradientDescent(0.1), **settings)
    made.batch_size = 2
    return made


@pytest.mark.parametrize("name", SOURCES)
def test_booleans_among_the_inputs_are_refused_with_the_remedy(tmp_path: Path, name: str) -> None:
    with pytest.raises(SigmaNetworkError, match=REMEDY):
        trainer(SOURCES[name](tmp_path, X)).fit(epochs=1)


@pytest.mark.parametrize("name", SOURCES)
def test_booleans_cast_to_numbers_are_0_and_1(tmp_path: Path, name: str) -> None:
    bits = set()
    for x, steps in (X.astype(float), {}), (X, {"cast": Cast()}):
        made = trainer(SOURCES[name](tmp_path, x), preprocessors=steps)
        made.fit(epochs=3)
        bits.add(made.session.host("network.layers.1-output.weights").tobytes())
    assert len(bits) == 1


def test_booleans_are_accepted_if_the_input_has_a_dtype() -> None:
    made = trainer((X, Y))
    made.network = Input(2, dtype="float32") + Output(1) + SquaredDifference()
    made.fit(epochs=1)
    assert made.predict(X).shape == (4, 1)


def test_booleans_are_refused_if_training_used_numbers(tmp_path: Path) -> None:
    refused = "section 'inputs' holds bool; the network was built for float32. Write"
    numbers = Arrays(inputs=X.astype(float), targets=Y)
    made = trainer({"training": numbers, "test": Arrays(inputs=X, targets=Y)})
    made.fit(epochs=1)
    with pytest.raises(SigmaDataError, match=refused):
        made.predict(X)
    with pytest.raises(SigmaDataError, match=refused):
        made.evaluate("test")
    with pytest.raises(SigmaError, match=refused):
        trainer({"training": numbers, "validation": Arrays(inputs=X, targets=Y)}).fit(epochs=1)


def test_predicting_from_booleans_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i}\n" for i in range(9)))
    text = f"""
format = 1
[data]
dataset = "csv"
path = "{tmp_path / "a.csv"}"
target = "y"
[network]
architecture = "input(2) + output(1) + squared_difference()"
[trainer]
optimiser = "adam"
[hooks.finish]
type = "stop"
when = "epoch reaches 1"
"""
    with build(configuration(text), folder=tmp_path) as sigma:
        sigma.run()
    assert sigma.run_folder is not None
    with pytest.raises(SigmaDataError, match=r"'inputs' holds bool; the network was built for float32. Write x.astype"):
        load(sigma.run_folder).predict(X)


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [("true", ":3: column 'a': 'other' is neither true nor false"), ("red", ":2: column 'a': 'red' is not a number")],
)
def test_words_of_a_table_are_refused_unless_a_setting_encodes_them(tmp_path: Path, cells: str, wrong: str) -> None:
    (tmp_path / "a.csv").write_text(f"a,b,y\n{cells},1,1\nother,1,0\n{cells},0,3\nother,1,1\n")
    with pytest.raises(SigmaDataError, match=rf"a\.csv{wrong}. .* in `encode`"):
        trainer(Csv(tmp_path / "a.csv", "y", split={"training": 1.0})).fit(epochs=1)
    made = trainer(Csv(tmp_path / "a.csv", "y", encode="a", split={"training": 1.0}))
    made.network = Input(3) + Output(1) + SquaredDifference()
    made.fit(epochs=1)
    assert made.session.setup.evaluator.learned["categories"] == {"0": sorted(["other", cells])}
