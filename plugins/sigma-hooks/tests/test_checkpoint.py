"""Checkpoints that hooks save: all, the last ones, the best ones."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sigma_hooks import FunctionHook, SaveCheckpoint, Stop
from sigma_kernel import every, when
from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import Desk, HookSuite, Sweep, saved_scores, small_environment

SCORES = [3.0, 1.0, 4.0, 1.5, 5.0, 2.0]


class TestCheckpoint(HookSuite):
    def make(self) -> Hook:
        return SaveCheckpoint(value="validation.loss", best=2)


def _written(epochs: float, context: Any) -> None:
    """Wait for the writer, which may drop a queued checkpoint for a newer one."""
    home = context.folder / "checkpoints" / "trainer"
    last = context.moment.iteration - 1  # it is saved after all hooks of that boundary
    while last and last % (5 * epochs) == 0 and not (home / str(last)).is_dir():
        time.sleep(0.001)


def _left(folder: Path, **settings: Any) -> dict[int, float | None]:
    """Return the epochs and scores of the checkpoints that remain after six epochs of five iterations."""
    scores, epochs = iter(SCORES), settings.get("every", every(1, "epoch")).interval
    hooks = {
        "score": FunctionHook(lambda context: context.publish("score", next(scores)), outputs=["score"]),
        "save": SaveCheckpoint(**settings),
        "wait": FunctionHook(partial(_written, epochs), every=every(1, "iteration")),
        "end": Stop(when=when("epoch").reaches(6)),
    }
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.folder = folder
        sigma.run()
        return {iteration // 5: score for iteration, score in saved_scores(Path(str(sigma.run_folder))).items()}


def test_every_checkpoint_is_kept_by_default(tmp_path: Path) -> None:
    assert list(_left(tmp_path)) == [1, 2, 3, 4, 5, 6]


def test_checkpoints_are_saved_at_the_given_interval(tmp_path: Path) -> None:
    assert list(_left(tmp_path, every=every(3, "epoch"))) == [3, 6]


def test_the_last_checkpoints_are_kept(tmp_path: Path) -> None:
    assert list(_left(tmp_path, last=2)) == [5, 6]


@pytest.mark.parametrize(("better", "epochs"), [("lower", [2, 4, 6]), ("higher", [3, 5, 6])])
def test_the_best_checkpoints_and_the_newest_are_kept(tmp_path: Path, better: str, epochs: list[int]) -> None:
    left = _left(tmp_path, value="score", best=2, better=better)
    assert list(left) == epochs
    assert [left[epoch] for epoch in epochs[:2]] == [SCORES[epoch - 1] for epoch in epochs[:2]]


def test_a_score_not_published_yet_is_none() -> None:
    desk = Desk()
    SaveCheckpoint(value="x", best=1).fire(desk)
    desk.values["x"] = float("nan")
    SaveCheckpoint(value="x", best=1).fire(desk)
    assert desk.commands == [("save", {"score": None, "keep": False})] * 2


def test_keeping_all_checkpoints_marks_each_to_keep() -> None:
    desk = Desk()
    SaveCheckpoint().fire(desk)
    SaveCheckpoint(last=1).fire(desk)
    assert [arguments["keep"] for _, arguments in desk.commands] == [True, False]


def test_best_without_a_value_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match="checkpoint: best needs a value"):
        SaveCheckpoint(best=1)


@pytest.mark.parametrize("settings", [{"last": 0}, {"value": "x", "best": 0}, {"better": "best"}])
def test_invalid_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SigmaConfigError, match="last|best|better"):
        SaveCheckpoint(**settings)


def test_checkpoints_are_spread_over_the_run() -> None:
    assert SaveCheckpoint(spread=6).retains == {"last": 1, "best": 0, "spread": 6}
    desk = Desk()
    SaveCheckpoint(spread=6).fire(desk)
    assert desk.commands == [("save", {"score": None, "keep": False})]
