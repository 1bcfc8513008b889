"""The best checkpoint: which it is, that it is taken where a hook keeps it, and scores after early stopping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import Accuracy, EarlyStop, SaveCheckpoint
from sigma_kernel import Environment, load
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.launcher.group import main
from sigma_optimisers import GradientDescent

DRAWN = np.random.default_rng(1)
X, V = DRAWN.normal(size=(30, 4)).astype("float32"), DRAWN.normal(size=(30, 4)).astype("float32")
Y, W = (np.where(DRAWN.random(30) < 0.4, DRAWN.integers(0, 3, 30), np.argmax(x[:, :3], axis=1)) for x in (X, V))


def run(folder: Path, epochs: int = 8, rate: float = 0.5, **hooks: Any) -> tuple[Path, Any, list[float]]:
    """Train until the loss on the validation split rises; return its values."""
    with Environment("best", folder=folder) as made:
        trainer = made.create_trainer(
            network="input(4) + dense(32, activation='tanh') + output(3) + softmax_cross_entropy()",
            data={"training": (X, Y), "validation": (V, W)}, optimiser=GradientDescent(rate), epochs=epochs,
            batch_size=10, hooks={"score": Accuracy(on="validation"), **hooks},
        )  # fmt: skip
        summary = made.run()
        assert made.run_folder is not None
        return made.run_folder, summary, trainer.history["validation.loss"].tolist()


def test_the_best_checkpoint_is_taken_where_a_hook_keeps_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _, losses = run(tmp_path, save=SaveCheckpoint(last=2, best=1, value="validation.loss"))
    best = 3 * (int(np.argmin(losses)) + 1)
    assert best not in (3 * len(losses), 3)  # else the test proves nothing
    np.save(tmp_path / "x.npy", V)
    model = load(folder)
    assert (int(model.path.name), model.checkpoint.score) == (best, min(losses))
    assert model.evaluate("validation")["loss"] == pytest.approx(min(losses), abs=1e-6)
    assert int(load(folder, checkpoint="newest").path.name) == 3 * len(losses)
    assert load(folder, checkpoint=best).path == load(folder, checkpoint="best").path == model.path
    for arguments, there in (
        ([], best),
        (["--checkpoint", "newest"], 3 * len(losses)),
        (["--checkpoint", "best"], best),
    ):
        assert main(["evaluate", str(folder), "--json", *arguments]) == 0
        out, err = capsys.readouterr()
        assert f"checkpoints/trainer/{there} (" in err
        assert ("(the newest" in err) == (there != best)
        assert json.loads(out)["metrics"]["validation.loss"] == pytest.approx(losses[there // 3 - 1], abs=1e-6)
        assert main(["predict", str(folder), str(tmp_path / "x.npy"), "--json", *arguments]) == 0
        assert json.loads(capsys.readouterr().out)["checkpoint"].endswith(f"/{there}")


def test_a_best_checkpoint_that_is_damaged_gives_way_to_the_newest(tmp_path: Path) -> None:
    folder, _, losses = run(tmp_path, save=SaveCheckpoint(last=1, best=1, value="validation.loss"))
    load(folder).path.joinpath("state.safetensors").write_bytes(b"")
    said: list[str] = []
    assert int(load(folder, log=said.append).path.name) == 3 * len(losses)
    assert "is damaged" in said[0]


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_scores_are_ranked_as_their_hook_says_even_if_all_checkpoints_are_kept(better: str, tmp_path: Path) -> None:
    folder, _, losses = run(tmp_path, save=SaveCheckpoint(value="validation.loss", better=better))
    assert max(losses) == losses[-1]  # the last is saved again at the end, and keeps its score
    wanted = min(losses) if better == "lower" else max(losses)
    assert int(load(folder).path.name) == 3 * len(losses)  # no hook keeps the best
    assert load(folder, checkpoint="best").checkpoint.score == wanted


def test_checkpoints_without_a_score_are_never_the_best(tmp_path: Path) -> None:
    folder, _, losses = run(
        tmp_path, save=SaveCheckpoint(last=9, best=1, value="validation.accuracy", every="20 epochs")
    )
    assert int(load(folder).path.name) == 3 * len(losses)
    with pytest.raises(SigmaCheckpointError, match="no checkpoint of 'trainer' has a score. The hook checkpoint ranks"):
        load(folder, checkpoint="best")


def test_a_checkpoint_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, *_ = run(tmp_path, epochs=1)
    with pytest.raises(SigmaCheckpointError, match="has no checkpoint 7 of 'trainer'. There are: 3."):
        load(folder, checkpoint=7)
    assert main(["evaluate", str(folder), "--checkpoint", "worst"]) == 2
    assert "'worst' is not an iteration, 'best' or 'newest'" in capsys.readouterr().err


def test_the_summary_after_early_stopping_is_of_the_restored_parameters(tmp_path: Path) -> None:
    stop = EarlyStop("validation.loss", patience=2, restore=True)
    folder, summary, losses = run(tmp_path, epochs=40, enough=stop)
    assert summary.metrics["validation.loss"] == min(losses) < losses[-1]
    measured = load(folder).evaluate("validation", {"accuracy": "accuracy"})
    assert measured["loss"] == pytest.approx(summary.metrics["validation.loss"], abs=1e-6)
    assert measured["accuracy"] == summary.metrics["validation.accuracy"]
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


def test_more_epochs_after_early_stopping_are_trained_and_replayed_to_the_bit(tmp_path: Path) -> None:
    with Environment("more", folder=tmp_path) as made:
        trainer = made.create_trainer(
            network="input(4) + dense(32, activation='tanh') + output(3) + softmax_cross_entropy()",
            data={"training": (X, Y), "validation": (V, W)}, optimiser=GradientDescent(0.5), epochs=40, batch_size=10,
            hooks={"score": Accuracy(on="validation"), "enough": EarlyStop(patience=2, restore=True)},
        )  # fmt: skip
        ended = len(trainer.fit()["validation.loss"])
        assert 2 < ended < 30
        assert len(trainer.fit()["validation.loss"]) == ended
        assert len(trainer.fit(epochs=2)["validation.loss"]) == ended + 2
        again = len(trainer.fit(epochs=20)["validation.loss"])
        assert again > ended + 2
        folder = made.run_folder
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0


def test_a_loaded_network_says_that_it_is_evaluated_on_splits(tmp_path: Path) -> None:
    folder, *_ = run(tmp_path, epochs=1)
    said = "evaluate: takes no data .got ndarray.. Name a split of the data, such as 'validation'; for other rows"
    with pytest.raises(SigmaConfigError, match=said):
        load(folder).evaluate(V, W)
