"""Data sets that a trainer infers from a path, a frame, a table of Arrow or columns."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sigma_ml as sm
from sigma_kernel import ConfigurationDraft, Inspection, Inspector
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_run.launcher.group import main
from sigma_training.data.inference import InferredData

RANDOM = np.random.default_rng(0)
ROOMS = RANDOM.integers(1, 9, 300)
TABLE = pd.DataFrame(
    {
        "rooms": ROOMS,
        "city": RANDOM.choice(["York", "Leeds", "<Hull>"], 300),
        "built": "2001",
        "price": 1000.0 * ROOMS + RANDOM.normal(0, 20, 300),
    }
)
NETWORK = "input() + dense(8, activation='relu') + output() + squared_difference()"
FORMS: dict[str, Callable[[Path], Any]] = {
    "text": lambda folder: str(folder / "houses.csv"),
    "path": lambda folder: folder / "houses.csv",
    "pandas": lambda _: TABLE,
    "polars": lambda _: pl.from_pandas(TABLE),
    "arrow": lambda _: pa.Table.from_pandas(TABLE),
    "stream": lambda _: pa.RecordBatchReader.from_stream(pa.Table.from_pandas(TABLE)),
    "columns": lambda _: {name: TABLE[name].to_numpy() for name in TABLE},
}


def trainer_on(data: Any, **settings: Any) -> Any:
    sigma = sm.Environment("houses", seed=0, folder=settings.pop("folder", None))
    return sigma.create_trainer(
        data=data, backend="numpy", network=NETWORK, optimiser={"type": "adam", "learning_rate": 0.01}, **settings
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    TABLE.to_csv(tmp_path / "houses.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_trains_with_the_same_bits_as_its_draft(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = trainer_on(FORMS[form](folder), target="price")
    trainer.fit(epochs=3, progress=False)
    monkeypatch.chdir(folder)
    assert main(["init", "houses.csv", "--target", "price"]) == 0
    draft = {"trainer.epochs": 3, "network.architecture": NETWORK, "run.backend": "numpy"}
    settings = [f"{name}={value}" for name, value in draft.items()]
    adam = 'trainer.optimiser={ type = "adam", learning_rate = 0.01 }'
    with sm.from_file("houses.toml", adam, *settings) as drafted:
        drafted.run()
        expected = drafted.trainer("trainer").predict(TABLE[:5])
    np.testing.assert_array_equal(trainer.predict(TABLE[:5]), expected)


def test_a_target_may_be_set_before_or_after_the_data(folder: Path) -> None:
    first, second = trainer_on(None), trainer_on(None)
    first.target, first.data = "price", folder / "houses.csv"
    second.data, second.target = folder / "houses.csv", "price"
    for trainer in (first, second):
        trainer.fit(epochs=1, progress=False)
    np.testing.assert_array_equal(first.predict(TABLE), second.predict(TABLE))
    assert second.session.setup.feed.batch_size == 8
    assert [*second.session.setup.settings.preprocessors] == ["target"]


def test_settings_of_the_trainer_go_before_those_that_are_inferred(folder: Path) -> None:
    trainer = trainer_on(folder / "houses.csv", target="price", batch_size=50, preprocessors={"own": "standardise"})
    trainer.prepare()
    assert trainer.session.setup.feed.batch_size == 50
    assert [*trainer.session.setup.settings.preprocessors] == ["own"]


def test_the_profile_is_what_data_show_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = trainer_on(str(folder / "houses.csv"))
    profile = trainer.data.profile()
    assert main(["data", "show", str(folder / "houses.csv")]) == 0
    shown = capsys.readouterr()
    head, *table = str(profile).splitlines()
    assert head in shown.err
    assert [line.split() for line in table[: len(profile.table)]] == [
        line.split() for line in shown.out.splitlines() if line.strip()
    ]
    assert "note: nothing can be learned from 'built'" in str(profile)
    assert str(profile).count("\n") == len(profile.table) + len(profile.findings)
    page = profile._repr_html_()
    assert html.escape("<Hull>") in page
    assert "<Hull>" not in page
    assert "<li>nothing can be learned" in page
    given = sm.data.Tabular(folder / "houses.csv", target="price").profile()
    assert given.document["columns"] == profile.document["columns"]
    assert (
        sm.data.Tabular(TABLE, target="price").profile().document["columns"]
        == trainer_on(TABLE).data.profile().document["columns"]
    )


def test_a_run_on_a_frame_is_opened_without_it(tmp_path: Path) -> None:
    trainer = trainer_on(TABLE, target="price", folder=tmp_path)
    trainer.epochs = 2
    trainer.host.run()
    trained = sm.load(trainer.host.run_folder)
    np.testing.assert_array_equal(trained.predict(TABLE[:9]), trainer.predict(TABLE[:9]))
    assert trained.evaluate("validation")["loss"] == trainer.evaluate("validation")["loss"]


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (
            "houses.csv",
            None,
            r"houses\.csv: which column is to be predicted\? .* Python trainer\.target = 'price'",
        ),
        ("houses.csv", "prise", "there is no column 'prise' to predict. Did you mean 'price'?"),
        ("houses.csv", 3, r"trainer\.target: must be the name of a column \(got 3\)"),
        ((np.zeros((4, 2)), np.zeros(4)), "price", r"trainer\.target: names a column of a file, .* are tuple\. Leave"),
        (TABLE, None, "table: which column is to be predicted"),
        (TABLE, "built", "table: column 'built' cannot be predicted: .* Choose another column as the target"),
    ],
)
def test_what_cannot_be_inferred_is_told_in_a_sentence(
    data: Any, target: Any, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises((SigmaConfigError, SigmaDataError), match=message):
        trainer_on(data, target=target).prepare()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("gone.csv", r"^gone\.csv: there is no such file or folder"),
        ("notes.md", r"^notes\.md: no installed plugin knows such data by its name\. `sigma components inspector`"),
    ],
)
def test_a_path_of_nothing_is_refused_when_it_is_set(
    data: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.md").write_text("nothing")
    with pytest.raises(SigmaConfigError, match=message):
        trainer_on(None).data = data


def test_names_of_data_sets_go_before_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("iris").mkdir()
    TABLE.to_csv("iris/a.csv", index=False)
    assert trainer_on("iris").data == "iris"
    assert isinstance(trainer_on("./iris").data, InferredData)


def test_other_data_are_left_alone() -> None:
    sections = {"inputs": np.zeros((4, 2)), "targets": np.zeros(4)}
    for data in (sections, (sections["inputs"], sections["targets"]), sm.data.Arrays(**sections), lambda: iter(())):
        assert trainer_on(data).data is data


DRAFT = """
format = 1
run.name = "set"
network.architecture = "input() + output() + softmax_cross_entropy()"
[data]
batch_size = 4
preprocessors.scale = { type = "scale", factor = 2.0 }
augmentations.noise = "noise"
[data.dataset]
type = "npy"
inputs = "HERE"
"""


class OwnInspector(Inspector):
    """Takes anything, and drafts a nested table."""

    def takes(self, place: Path) -> bool:
        return True

    def inspect(self, place: Path) -> Inspection:
        return Inspection(f"{place}: all", [["a"], ["b"]], [], {})

    def draft(self, place: Path, written: str, wishes: Any) -> ConfigurationDraft:
        return ConfigurationDraft("set", DRAFT.replace("HERE", written), [])


def test_the_settings_are_those_of_the_data_in_the_draft_of_any_inspector(tmp_path: Path) -> None:
    inferred = InferredData(tmp_path / "x.npy", OwnInspector())
    assert inferred.settings() == {
        "data": {"type": "npy", "inputs": (tmp_path / "x.npy").as_posix()},
        "batch_size": 4,
        "preprocessors": {"scale": {"type": "scale", "factor": 2.0}},
        "augmentations": {"noise": "noise"},
    }
    assert str(inferred.profile()) == f"{tmp_path / 'x.npy'}: all\na\nb"
    assert repr(inferred) == f"InferredData(place={str(tmp_path / 'x.npy')!r}, target=None)"
    assert OwnInspector().hold(TABLE) is None
