"""The best checkpoint: which it is, that it is taken where a hook keeps it, and scores after early stopping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import Accuracy, EarlyStop, Evaluate, FunctionHook, SaveCheckpoint, Stop
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_optimisers import Adam, GradientDescent
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_store import journal
from sigma_store.checkpoints.store import read_manifest
from sigma_store.checkpoints.writer import Saver
from sigma_training.history import recorder, rewind
from tests.reliability.course import Halting, tree

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


def test_an_evaluation_reads_the_journal_from_its_checkpoint_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(journal, "EVERY", 1)  # a bookmark after each line
    monkeypatch.setattr(rewind, "SHARE", 1e9)  # and digests in every epoch
    monkeypatch.setattr(recorder, "APART", 0.0)
    folder, _, losses = run(tmp_path, save=SaveCheckpoint(last=2, best=1, value="validation.loss"))
    best, path = 3 * (int(np.argmin(losses)) + 1), folder / "journal.jsonl"
    place = read_manifest(folder / "checkpoints" / "trainer" / str(3 * len(losses)))["chain"]["bookmark"]["lines"]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join(
            [
                *lines[: place - 1],
                lines[place - 1].replace(b'"trainer": ', b'"Trainer": '),
                *lines[place:],
            ]
        )
    )
    assert main(["evaluate", str(folder), "--checkpoint", "newest"]) == 0
    assert "validation.loss" in capsys.readouterr().out
    for arguments in ([], ["--checkpoint", "best"], ["--checkpoint", str(best)]):
        assert main(["evaluate", str(folder), *arguments]) == 1
        assert f"journal.jsonl:{place}: does not follow from the lines before it" in capsys.readouterr().err


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
    assert main(["evaluate", str(folder), "--checkpoint", "worst"]) == 1
    assert "has no checkpoint 'worst' of 'trainer'. There are: 3." in capsys.readouterr().err


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


# -- restored, whatever ends training ----------------------------------------------------------------------------------
def best(folder: Path | None = None, epochs: int | None = 10, **settings: Any) -> tuple[Environment, Any]:
    """Return a trainer that keeps its best parameters, and an environment; the best epoch is not the last one."""
    made = Environment("best", folder=folder)
    hooks = {"score": Accuracy(on="validation"), "enough": EarlyStop(patience=50, restore=True)}
    settings["hooks"] = {**hooks, **settings.get("hooks", {})}
    trainer = made.create_trainer(
        network="input(4) + dense(32, activation='tanh') + output(3) + softmax_cross_entropy()",
        data={"training": (X, Y), "validation": (V, W)}, optimiser=Adam(0.03), batch_size=10, epochs=epochs, **settings,
    )  # fmt: skip
    return made, trainer


def said(made: Environment) -> list[str]:
    return [text for _, text in made.messages.entries_after(0)]


@pytest.mark.parametrize("by", ["epochs", "goal", "hook", "person"])
def test_the_best_parameters_are_restored_whatever_ends_training(by: str, tmp_path: Path) -> None:
    settings: dict[str, dict[str, Any]] = {
        "epochs": {"epochs": 10},
        "goal": {"epochs": None},
        "hook": {"epochs": None, "hooks": {"end": Stop(when="epoch reaches 10")}},
        "person": {"operator": Halting(at=29)},
    }
    made, trainer = best(tmp_path, **settings[by])
    with made:
        trainer.fit(iterations=29 if by == "goal" else None)
        losses = trainer.history["validation.loss"].tolist()
        lowest = int(np.argmin(losses))
        assert lowest < 8
        assert said(made)[-1] == f"restored: validation.loss was best in epoch {lowest + 1} ({min(losses):.4g})"
        assert trainer.evaluate("validation")["loss"] == pytest.approx(min(losses), abs=1e-6)
        assert made.summary().metrics["validation.loss"] == min(losses)
        assert made.run_folder is not None
        folder = made.run_folder
    if by == "person":  # it is saved as it was, to be resumed
        assert load(folder, trust="tests").evaluate("validation")["loss"] > min(losses)
        with best()[0] as again:
            again.resume(folder)
            assert again.run().iterations == 30
    assert load(folder, trust="tests").evaluate("validation")["loss"] == pytest.approx(min(losses), abs=1e-6)
    with best(**{**settings[by], "operator": "local"})[0] as again:
        assert again.replay(folder)[1] == {}


def test_hooks_at_the_end_see_the_restored_parameters() -> None:
    made, trainer = best(hooks={"last": Evaluate(on="validation", every="stop", metrics={"last": "accuracy"})})
    with made:
        losses = trainer.fit()["validation.loss"].tolist()
    assert losses[-1] == pytest.approx(min(losses[:-1]), abs=1e-6)
    assert losses[-1] < losses[-2]


def test_the_best_parameters_are_kept_if_they_are_the_last() -> None:
    made, trainer = best(epochs=1)
    with made:
        (loss,) = trainer.fit()["validation.loss"].tolist()
        assert not said(made)
        assert not trainer.session.state.set_aside
        assert trainer.evaluate("validation")["loss"] == pytest.approx(loss, abs=1e-6)


def test_training_in_parts_gives_the_bits_of_training_at_once_though_the_best_is_restored_in_between() -> None:
    found = []
    for parts in ((16,), (9, 1, 6), (10, 0, 6)):
        made, trainer = best(epochs=None)
        with made:
            for epochs in parts:
                trainer.fit(epochs=epochs)
            state = tree(trainer)
            found.append({name: value for name, value in state.items() if name not in ("clock", "progress")})
            assert state["clock"].count('"epoch": 16') == 1
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_more_epochs_give_the_bits_of_a_longer_run_though_the_best_is_restored(backend: str, tmp_path: Path) -> None:
    found = []
    for epochs in (9, 16):
        made, _ = best(tmp_path, epochs=epochs, backend=backend)
        with made:
            found.append(made.run())
            assert said(made)
    short, whole = (str(summary.folder) for summary in found)
    assert main(["resume", short, "--epochs", "16", "--quiet"]) == 0
    one, other = (json.loads((Path(run) / "summary.json").read_text()) for run in (short, whole))
    for name in ("metrics", "parameters_sha256", "iterations"):
        assert one[name] == other[name]
    one, other = (load(run).checkpoint.arrays for run in (short, whole))
    assert {name: x.tobytes() for name, x in one.items()} == {name: x.tobytes() for name, x in other.items()}
    assert main(["replay", short, "--check", "--quiet"]) == 0


def test_a_rewind_to_the_end_of_an_earlier_fit_goes_on_from_where_that_ended(tmp_path: Path) -> None:
    whole, trainer = best(epochs=14)
    with whole:
        wanted = trainer.fit()["training.loss"][30:]
    back = FunctionHook(lambda context: once and context.command("rewind", to=once.pop()), every="12 epochs")
    once: list[int] = []
    made, trainer = best(tmp_path, epochs=None, hooks={"back": back})
    with made:
        trainer.fit(epochs=10)
        assert trainer.session.state.set_aside
        made.send("save")
        once.append(30)
        trainer.fit(epochs=4)
        assert not once
        assert trainer.history.curve("training.loss").values[30:].tolist() == wanted.tolist()


def test_parameters_that_are_set_after_the_end_are_those_that_training_goes_on_from() -> None:
    made, trainer = best(epochs=10)
    with made:
        trainer.fit()
        assert trainer.session.state.set_aside
        made.set("trainer.network.layers.2-output.*", 0.0)
        assert trainer.fit(iterations=1)["training.loss"][-1] == pytest.approx(np.log(3), abs=1e-6)
        made.undo()
        assert trainer.session.state.set_aside


def test_a_best_value_that_is_not_a_number_gives_way_to_any_other() -> None:
    values = iter([np.nan, np.nan, 3.0, np.nan, np.nan])
    rising = FunctionHook(lambda context: context.publish("score", next(values)), outputs=["score"])
    made, trainer = best(hooks={"own": rising, "enough": EarlyStop("score", patience=3, restore=True)}, epochs=5)
    with made:
        trainer.fit()
        assert said(made)[-1] == "restored: score was best in epoch 3 (3)"


def test_a_loaded_network_says_how_other_data_are_given(tmp_path: Path) -> None:
    folder, *_ = run(tmp_path, epochs=1)
    said = r"evaluate: metrics are a table by name. For other data, write evaluate\(\(x, y\)\)"
    with pytest.raises(SigmaConfigError, match=said):
        load(folder).evaluate(V, W)


@pytest.mark.parametrize(("direction", "prefer"), [("higher", "greatest"), ("lower", "least"), ("", "least")])
def test_checkpoints_are_ranked_as_the_metric_says_unless_told(tmp_path: Path, direction: str, prefer: str) -> None:
    saver = Saver(tmp_path, print)
    saver.retain([SaveCheckpoint(value="validation.score", best=1)], {"validation.score": direction}.__getitem__)
    assert saver.retention.prefer == prefer
    for better, told in {"higher": "greatest", "lower": "least"}.items():
        saver.retain([SaveCheckpoint(value="validation.score", best=1, better=better)], lambda address: direction)
        assert saver.retention.prefer == told
