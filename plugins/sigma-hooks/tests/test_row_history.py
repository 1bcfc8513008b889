"""The record of rows: forgetting events of written sequences, means of measured losses, and what a run does with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sigma_hooks import RecordRows
from sigma_hooks.row_history import thin_points
from sigma_kernel import Environment, SigmaConfigError, SigmaStateError, every
from sigma_kernel.contracts import Hook, RowHistory, RowLosses
from sigma_run import load
from sigma_testing import HookSuite, state_bytes

DRAW = np.random.default_rng(5)
X = DRAW.normal(size=(60, 3)).astype(np.float32)
CLASSES = X.argmax(axis=1)
NETWORK = "input(3) + dense(8, activation='tanh') + output(3) + softmax_cross_entropy()"


class TestRecordRows(HookSuite):
    in_background = False

    def make(self) -> Hook:
        return RecordRows(on="validation")


# -- written sequences -------------------------------------------------------------------------------------------------
class Firing(SimpleNamespace):
    """What a hook sees of an epoch whose losses and answers are written down."""

    def losses(self, on: str) -> RowLosses:
        return self.measured

    def publish(self, address: str, value: Any) -> None:
        self.published[address] = value


def record(hook: RecordRows, measured: Sequence[RowLosses]) -> tuple[RowHistory, list[int]]:
    """Return the history after so many firings, one an epoch, and how many rows each says were forgotten."""
    memory: dict[str, Any] = {}
    forgotten = []
    for epoch, losses in enumerate(measured, 1):
        firing = Firing(memory=memory, measured=losses, moment=SimpleNamespace(epoch=epoch), published={})
        hook.fire(firing)  # type: ignore[arg-type]
        forgotten.append(firing.published[f"{hook.on}.row_history.forgotten"])
    history = hook.read_history(memory)
    assert history is not None
    return history, forgotten


def written(sequences: Sequence[str]) -> list[RowLosses]:
    """Return the losses of rows by epoch: 1 where a sequence says that the row is right, else 0; "-" is excluded."""
    epochs = []
    for epoch in range(len(sequences[0])):
        rows = np.array([row for row, text in enumerate(sequences) if text[epoch] != "-"])
        right = np.array([int(sequences[row][epoch]) for row in rows])
        epochs.append(RowLosses(rows, (rows + 1.0) / (epoch + 1), right, np.ones(len(rows), int)))
    return epochs


SEQUENCES = ["".join(DRAW.choice(["0", "1"], 24)) for _ in range(40)] + ["0" * 24, "1" * 24, "01" * 12, "10" * 12]


def test_forgetting_events_are_the_falls_of_a_sequence_and_rows_are_learned_at_its_last_rise() -> None:
    history, forgotten = record(RecordRows(), written(SEQUENCES))
    assert history.forgotten.tolist() == [text.count("10") for text in SEQUENCES]
    assert history.learned.tolist() == [len(text.rstrip("1")) + 1 if text[-1] == "1" else -1 for text in SEQUENCES]
    assert history.correct.tolist() == [int(text[-1]) for text in SEQUENCES]
    falls = [sum(text[epoch - 1 : epoch + 1] == "10" for text in SEQUENCES) for epoch in range(1, 24)]
    assert forgotten == [0, *falls]


def test_lists_have_their_rows_in_order() -> None:
    sequences = ["0000", "1010", "0011", "0001", "1111", "1000", "0000"]
    history, _ = record(RecordRows(), written(sequences))
    assert history.order("forgotten").tolist() == [1, 5]
    assert history.order("late").tolist() == [3, 2, 4]
    assert history.order("never").tolist() == [6, 0]  # by their mean losses
    assert history.order("mislabelled").tolist() == [6, 5, 4, 3, 2, 1, 0]


def test_losses_and_their_mean_are_those_that_were_measured() -> None:
    measured = [RowLosses(np.arange(9), DRAW.gamma(1.0, 1.0, 9)) for _ in range(7)]
    history, _ = record(RecordRows(), measured)
    losses = np.stack([each.losses for each in measured], axis=1)
    np.testing.assert_allclose(history.losses, losses, rtol=1e-3)  # of 16 bits
    np.testing.assert_allclose(history.mean, losses.mean(axis=1), rtol=1e-12)
    assert history.epochs.tolist() == [*range(1, 8)]


def test_excluded_rows_keep_what_is_known_and_have_no_losses_meanwhile() -> None:
    history, _ = record(RecordRows(), written(["1-0", "11-", "000", "--1"]))
    assert history.rows.tolist() == [0, 1, 2, 3]
    assert np.isnan(history.losses).tolist() == [
        [False, True, False],
        [False, False, True],
        [False, False, False],
        [True, True, False],
    ]
    assert history.forgotten.tolist() == [1, 0, 0, 0]
    assert history.learned.tolist() == [-1, 1, -1, 3]
    assert history.mean[3] == 4 / 3


def test_losses_are_thinned_evenly_to_the_last() -> None:
    points: list[list[int]] = []
    stride = 1
    for seen in range(1, 1001):
        stride, points = thin_points([*points, [seen]], stride, 8)
        assert len(points) <= 8
        assert points[-1] == [seen]
    assert [point for (point,) in points] == [128, 256, 384, 512, 640, 768, 896, 1000]


def test_statistics_are_of_all_firings_whatever_is_kept() -> None:
    whole, _ = record(RecordRows(), written(SEQUENCES))
    thinned, _ = record(RecordRows(points=2), written(SEQUENCES))
    assert thinned.epochs.tolist() == [16, 24]
    assert thinned.forgotten.tolist() == whole.forgotten.tolist()
    assert thinned.mean.tolist() == whole.mean.tolist()


def test_of_many_rows_a_sample_is_recorded_that_stays_the_same() -> None:
    measured = [RowLosses(np.arange(500), np.arange(500.0)) for _ in range(3)]
    history, _ = record(RecordRows(most=20, seed=3), measured)
    again, _ = record(RecordRows(most=20, seed=3), measured)
    other, _ = record(RecordRows(most=20, seed=4), measured)
    assert len({*history.rows.tolist()}) == 20
    assert history.rows.tolist() == again.rows.tolist() != other.rows.tolist()
    assert history.losses[:, 0].tolist() == history.rows.tolist()


def test_a_loss_that_is_not_a_number_is_probably_mislabelled_first() -> None:
    losses = np.array([1.0, np.nan, 70_000.0, np.inf])
    history, _ = record(RecordRows(), [RowLosses(np.arange(4), losses)])
    assert history.order("mislabelled").tolist() == [1, 3, 2, 0]


# -- in a run ----------------------------------------------------------------------------------------------------------
def making(folder: Path | None = None, targets: Any = CLASSES, network: str = NETWORK, **hooks: Any) -> Environment:
    sigma = Environment("rows", seed=3, folder=folder)
    sigma.create_trainer(
        network=network, data={"inputs": X, "targets": targets}, backend="numpy", batch_size=10, hooks=hooks,
        optimiser={"type": "adam", "learning_rate": 0.03},
    )  # fmt: skip
    return sigma


def test_flipped_labels_have_the_greatest_mean_losses() -> None:
    targets, flipped = CLASSES.copy(), [3, 17, 44]
    targets[flipped] = (targets[flipped] + 1) % 3
    with making(targets=targets, history=RecordRows()) as sigma:
        trainer: Any = sigma.trainer("trainer")
        trainer.fit(epochs=15)
        history = trainer.row_history()
    assert sorted(history.rows[history.order("mislabelled")[:3]].tolist()) == flipped
    assert history.epochs.tolist() == [*range(1, 16)]


def test_what_is_recorded_last_is_what_the_view_measures_and_changes_no_bits() -> None:
    states = []
    for hooks in ({}, {"history": RecordRows()}):
        with making(**hooks) as sigma:
            trainer: Any = sigma.trainer("trainer")
            trainer.fit(epochs=4)
            states.append({name: value for name, value in state_bytes(trainer).items() if "history" not in name})
            losses = trainer.view.losses("training")
    history = trainer.row_history()
    np.testing.assert_allclose(history.losses[:, -1], losses.losses, rtol=1e-3)
    assert history.correct.tolist() == (losses.predicted == losses.targets).astype(int).tolist()
    assert states[0] == states[1]


def test_a_rewind_takes_the_record_back_and_a_stored_run_has_it(tmp_path: Path) -> None:
    with making(tmp_path, history=RecordRows()) as sigma:
        trainer: Any = sigma.trainer("trainer")
        trainer.fit(epochs=3)
        three = trainer.row_history()
        trainer.fit(epochs=2)
        sigma.rewind(3, "epoch")
        again = trainer.row_history()
        assert again.epochs.tolist() == three.epochs.tolist() == [1, 2, 3]
        assert again.mean.tolist() == three.mean.tolist()
        sigma.save()
        folder = sigma.run_folder
    assert folder is not None
    stored = load(folder, checkpoint="newest").data.row_history("training")
    assert stored.mean.tolist() == three.mean.tolist()
    assert stored.losses.tolist() == three.losses.tolist()


def test_rows_that_a_person_excludes_have_no_losses_until_they_are_taken_back() -> None:
    with making(history=RecordRows()) as sigma:
        trainer: Any = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        sigma.exclude([5])
        trainer.fit(epochs=1)
        sigma.include([5])
        trainer.fit(epochs=1)
        history = trainer.row_history()
    assert np.isnan(history.losses[5]).tolist() == [False, True, False]
    assert not np.isnan(history.losses[np.arange(60) != 5]).any()


# -- errors ------------------------------------------------------------------------------------------------------------
def test_without_a_record_the_error_names_the_hook() -> None:
    with making(other=RecordRows(every=every(1000, "iteration"))) as sigma:
        trainer: Any = sigma.trainer("trainer")
        with pytest.raises(SigmaStateError, match="nothing is recorded of the rows of 'training'.*'row_history'"):
            trainer.row_history()
        with pytest.raises(SigmaConfigError, match="no split 'tset'"):
            trainer.row_history("tset")


def test_an_order_that_does_not_exist_or_needs_classes_is_refused() -> None:
    network = "input(3) + output(1) + squared_difference()"
    with making(targets=X[:, :1], network=network, history=RecordRows()) as sigma:
        trainer: Any = sigma.trainer("trainer")
        trainer.fit(epochs=2)
        history = trainer.row_history()
    assert sorted(history.order("mislabelled").tolist()) == [*range(60)]
    with pytest.raises(SigmaConfigError, match="order: 'forgotten' needs a network that predicts classes"):
        history.order("forgotten")
    with pytest.raises(SigmaConfigError, match="order: must be one of mislabelled, forgotten, late, never"):
        history.order("worst")


@pytest.mark.parametrize("wrong", [{"background": True}, {"scope": "local"}])
def test_a_record_outside_the_state_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SigmaConfigError, match="row_history: records in the training thread"):
        RecordRows(**wrong)
