"""Every component that a file or a program names is constructed once, by whatever is done with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_run.config.writing import toml
from sigma_run.files import from_file
from sigma_run.launcher.group import main

pytestmark = pytest.mark.rooms

NETWORK = "input(4) + dense(8, activation='tanh') + dropout(0.1) + output(3) + softmax_cross_entropy()"
COMMON: dict[str, Any] = {"network": NETWORK, "data": "iris", "optimiser": "adam", "backend": "numpy", "epochs": 1}
ROWS = "a;b;c;d;kind\n" + "".join(f"{row};{row % 3};{row % 5};1;{'xyz'[row % 3]}\n" for row in range(40))
OTHERS = np.ones((2, 4), "float32"), [0, 1]  # rows that the training does not have
RECORDS = {
    "type": "records", "source": {"type": "file", "path": "rows.csv"}, "split": {"training": 0.8, "validation": 0.2},
    "reader": {"type": "csv", "delimiter": ";", "text": ["kind"]},
    "extractor": {"type": "columns", "sections": {"inputs": {"columns": ["a", "b", "c", "d"]},
                                                  "targets": {"columns": "kind"}}},
}  # fmt: skip
COSINE = {"type": "adam", "schedules": {"learning_rate": {"type": "cosine", "total": "9 epochs"}}}
LIMITED = {"type": "adam", "modifiers": {"norm": {"type": "max_norm", "limit": 1.0}}}

# the settings of a trainer that name a component of a kind
NAMED: list[tuple[str, str, Mapping[str, Any]]] = [
    ("optimiser", "adam", {"optimiser": "adam"}),
    ("optimiser", "momentum", {"optimiser": {"type": "momentum", "learning_rate": 0.1}}),
    ("schedule", "cosine", {"optimiser": COSINE}),
    ("modifier", "max_norm", {"optimiser": LIMITED}),
    ("layer", "dropout", {}),
    ("layer", "softmax_cross_entropy", {}),
    ("initialiser", "he_normal", {"initialisers": {"drawn": {"match": "**.weights", "type": "he_normal"}}}),
    ("metric", "accuracy", {"metrics": {"accuracy": "accuracy"}}),
    ("metric", "accuracy", {"metrics": {"accuracy": {"type": "accuracy"}}}),
    ("hook", "accuracy", {"hooks": {"score": {"type": "accuracy", "on": "training"}}}),
    ("criterion", "plateau", {"hooks": {"end": {"type": "stop", "when": "plateau(training.loss, 3)"}}}),
    ("dataset", "iris", {"data": "iris"}),
    ("dataset", "records", {"data": RECORDS}),
    ("source", "file", {"data": RECORDS}),
    ("reader", "csv", {"data": RECORDS}),
    ("extractor", "columns", {"data": RECORDS}),
    ("preprocessor", "standardise", {"preprocessors": {"even": "standardise"}}),
    ("preprocessor", "standardise", {"preprocessors": {"even": {"type": "standardise"}}}),
    ("iterator", "shuffle", {"iterator": "shuffle"}),
    ("operator", "local", {"operator": "local"}),
    ("operator", "local", {"operator": {"type": "local", "shards": 2}}),
    ("merger", "sum", {"operator": {"type": "local", "shards": 2, "merger": "sum"}}),
    ("backend", "numpy", {"backend": "numpy"}),
    ("backend", "numpy", {"backend": {"type": "numpy"}}),
    ("monitor", "console", {"monitors": {"shown": "console"}}),
    ("trainer", "network", {}),
]  # fmt: skip
names = pytest.mark.parametrize(("kind", "name", "given"), NAMED)


@pytest.fixture
def constructed(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the objects of the named component that are constructed from now on."""
    cls: Any = load(catalogue().resolve(kind, name))
    init, objects = cls.__init__, list[Any]()

    def record(self: Any, *values: Any, **settings: Any) -> None:
        objects.append(self)
        init(self, *values, **settings)

    monkeypatch.setattr(cls, "__init__", record)
    return objects


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)


def write_file(given: Mapping[str, Any], **more: Any) -> None:
    """Write a configuration with the settings of a trainer in the tables of a file."""
    settings = {**COMMON, **given}
    data = settings["data"] if isinstance(settings["data"], dict) else {"type": settings["data"]}
    about = {"dataset": data["type"], **{name: value for name, value in data.items() if name != "type"}}
    about |= {name: settings[name] for name in ("preprocessors", "iterator") if name in settings}
    run = {name: settings[name] for name in ("backend", "operator") if name in settings}
    trainer = {name: settings[name] for name in ("optimiser", "metrics", "epochs") if name in settings}
    tables = {name: settings[name] for name in ("hooks", "initialisers", "monitors") if name in settings}
    common = {"format": 1, "run": run, "data": about, "network": {"architecture": settings["network"]}}
    Path("small.toml").write_text(toml({**common, "trainer": trainer, **tables, **more}))


def run_in_terminal() -> None:
    assert main(["run", "small.toml", "--quiet"]) == 0


def run_in_python() -> None:
    with from_file("small.toml") as sigma:
        sigma.run()


@names
@pytest.mark.parametrize("run", [run_in_terminal, run_in_python])
def test_a_component_of_a_file_is_constructed_once(
    kind: str, name: str, given: Mapping[str, Any], constructed: list[Any], run: Callable[[], None]
) -> None:
    write_file(given)
    run()
    assert len(constructed) == 1


@names
@pytest.mark.parametrize("folder", [None, "runs"])
def test_a_component_that_a_program_names_is_constructed_once(
    kind: str, name: str, given: Mapping[str, Any], constructed: list[Any], folder: str | None
) -> None:
    settings = {**COMMON, **given}
    with Environment("small", folder=folder, monitors=settings.pop("monitors", {})) as sigma:
        trainer = sigma.create_trainer(**settings)
        sigma.run()
        trainer.fit(epochs=1)
        trainer.evaluate(OTHERS)
        trainer.save("saved")
    assert len(constructed) == 1


@names
def test_a_component_of_a_file_with_mistakes_is_constructed_once(
    kind: str, name: str, given: Mapping[str, Any], constructed: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_file(given, monitor="console")
    assert main(["check", "small.toml"]) == 2
    assert "has no setting 'monitor'. Did you mean 'monitors'?" in capsys.readouterr().err
    assert len(constructed) == (kind != "trainer")
