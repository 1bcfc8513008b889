"""``sigma data rows``: the rows of a run in an order of their history, as a table and as a document."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_run.launcher.group import main

DRAW = np.random.default_rng(5)
X = DRAW.normal(size=(60, 3)).astype(np.float32)
KINDS = X.argmax(axis=1)
FLIPPED = [3, 17, 44]
KINDS[FLIPPED] = (KINDS[FLIPPED] + 1) % 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that has recorded its rows."""
    with Environment("rows", seed=3, folder=tmp_path_factory.mktemp("runs")) as sigma:
        trainer = sigma.create_trainer(
            network="input(3) + dense(8, activation='tanh') + output(3) + softmax_cross_entropy()",
            data={"inputs": X, "targets": KINDS}, backend="numpy", batch_size=10,
            optimiser={"type": "adam", "learning_rate": 0.03}, hooks={"history": "row_history"},
        )  # fmt: skip
        trainer.fit(epochs=15)
        sigma.save()
        run = sigma.run_folder
    assert run is not None
    return run


def test_rows_are_listed_with_their_means_probably_mislabelled_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "rows", str(folder), "--count", "3"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["ROW", "MEAN", "LOSS", "LAST", "LOSS", "FORGOTTEN", "LEARNED"]
    assert sorted(int(line.split()[0]) for line in lines) == FLIPPED


def test_a_document_has_all_that_is_known_of_a_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "rows", str(folder), "--order", "late", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["on"], found["order"], len(found["rows"])) == ("training", "late", 20)
    assert found["total"] > 40
    learned = [row["learned"] for row in found["rows"]]
    assert learned == sorted(learned, reverse=True)
    assert {*found["rows"][0]} == {"row", "mean_loss", "loss", "forgotten", "learned"}


def test_a_split_without_a_record_is_an_error_that_names_the_hook(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "rows", str(folder), "--on", "validation"]) == 1
    assert "nothing is recorded of the rows of 'validation'. Give the trainer the hook" in capsys.readouterr().err
