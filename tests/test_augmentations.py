"""Runs with augmentations: each epoch has its own rows, and a resume, a replay or a rewind the same ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from sigma_data import Flip, Jitter, MixUp
from sigma_kernel import Augmentation, Environment
from sigma_kernel.errors import SigmaComponentError, SigmaDataError
from sigma_kernel.graph import RowDraws
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_testing import state_bytes
from sigma_testing.steering import Sweep, crash, decisive, small_environment, steered_environment, train_until_crash
from sigma_training.data.augmenting import AT_ONCE, Augmenter
from sigma_training.data.dataset import Rows
from sigma_training.data.feed import Cursor, Feed

pytestmark = pytest.mark.rooms
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
NOISE = {"noise": Jitter(0.5), "mixed": MixUp(1.0)}
X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def feed(*sizes: int, steps: Mapping[str, Augmentation] = NOISE, **settings: Any) -> Feed:
    """Return a feed of the rows of X in blocks of these sizes."""
    ends = np.cumsum([0, *sizes])
    blocks = [{"inputs": X[a:b], "targets": X[a:b, :1]} for a, b in pairwise(ends.tolist())]
    given = {"augmenter": Augmenter(5, steps), **settings}
    return Feed(Rows(*blocks), 4, 0, dict, np.array, **given)


def rows_of(source: Feed, epoch: int) -> np.ndarray:
    """Return the inputs of all rows in an epoch, in the order of the data."""
    blocks = range(source.dataset.blocks)
    return np.concatenate([source.next_batches(Cursor(epoch, n), 1).block["inputs"] for n in blocks])


# -- rows --------------------------------------------------------------------------------------------------------------
def test_every_epoch_has_rows_of_its_own_which_come_again_when_it_does() -> None:
    source = feed(60)
    first, second = rows_of(source, 0), rows_of(source, 1)
    assert not np.isin(first, second).any()
    assert not np.array_equal(first, X)
    assert np.array_equal(rows_of(source, 0), first), "after a rewind"
    assert np.array_equal(rows_of(feed(60), 1), second), "after a resume"
    source.close()


def test_a_row_is_the_same_in_any_layout_of_blocks_and_in_any_batch() -> None:
    noise = {"noise": Jitter(0.5)}
    whole = rows_of(feed(60, steps=noise), 3)
    for sizes in ([7, 53], [20, 20, 20], [4] * 15):
        assert np.array_equal(rows_of(feed(*sizes, steps=noise), 3), whole)


def test_rows_keep_their_numbers_when_others_are_left_out() -> None:
    noise = {"noise": Jitter(0.5)}
    with steered_environment(augmentations=noise, backend="numpy") as sigma:
        before = sigma.trainer("trainer").session.setup.feed
        first = before.next_batches(Cursor(1), 1).block["inputs"]
        sigma.exclude([0, 5])
        sigma.run()
        after = sigma.trainer("trainer").session.setup.feed
        assert np.array_equal(after.next_batches(Cursor(1), 1).block["inputs"], np.delete(first, [0, 5], axis=0))


def test_augmentations_of_one_kind_draw_different_numbers_and_other_seeds_others() -> None:
    twice = rows_of(feed(60, steps={"first": Jitter(0.5), "second": Jitter(0.5)}), 0)
    once = rows_of(feed(60, steps={"first": Jitter(0.5)}), 0)
    assert not np.allclose(twice - once, once - X)
    other = rows_of(feed(60, augmenter=Augmenter(6, {"first": Jitter(0.5)})), 0)
    assert not np.isin(other, once).any()


def test_a_large_block_is_augmented_in_parts_without_a_difference() -> None:
    rows, seen = AT_ONCE // 100, []

    class Spy(Jitter):
        def augment(self, sections: Any, draw: RowDraws) -> Any:
            seen.append(len(draw.rows))
            return super().augment(sections, draw)

    block = {"inputs": np.zeros((rows, 250), np.float32), "targets": np.arange(rows)}
    augmenter = Augmenter(1, {"noise": Spy(1.0)})
    whole = augmenter.apply(block, 2, np.arange(rows))
    assert len(seen) == 3
    assert sum(seen) == rows
    last = {name: values[-10:] for name, values in block.items()}
    assert np.array_equal(augmenter.apply(last, 2, np.arange(rows)[-10:])["inputs"], whole["inputs"][-10:])
    assert np.array_equal(whole["targets"], block["targets"])


def test_a_chain_varies_some_rows_at_a_time_but_mixes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"first": Jitter(0.5), "flip": Flip(0.5, 0.5), "mixed": MixUp(1.0), "last": Jitter(0.1)}
    rng = np.random.default_rng(0)
    block = {"inputs": rng.random((30, 2, 4, 5), np.float32), "targets": rng.random((30, 3), np.float32)}
    whole: Mapping[str, np.ndarray] = block
    for stream, step in enumerate(steps.values()):  # one after another, all rows at once
        whole = step.augment(whole, RowDraws(5, stream, 2, np.arange(30)))
    monkeypatch.setattr("sigma_training.data.augmenting.AT_ONCE", 43 * 7)
    for name, values in Augmenter(5, steps).apply(block, 2, np.arange(30)).items():
        np.testing.assert_array_equal(values, whole[name])


def test_two_blocks_are_loaded_ahead_in_the_background() -> None:
    loaded: list[tuple[int, int]] = []

    class Spy(Augmenter):
        def apply(self, block: Any, epoch: int, rows: np.ndarray) -> Any:
            loaded.append((epoch, int(rows[0])))
            return super().apply(block, epoch, rows)

    source = feed(30, 30, augmenter=Spy(0, NOISE))
    source.next_batches(source.start(), 1)
    source._reader.shutdown(wait=True)
    assert sorted(loaded) == [(0, 0), (0, 30), (1, 0)]


# -- runs --------------------------------------------------------------------------------------------------------------
SCRIPT = {
    2: lambda sigma: sigma.set("trainer.optimiser.learning_rate", 0.02),
    4: lambda sigma: sigma.send("save"),
    6: lambda sigma: sigma.exclude([1, 7]),
    12: lambda sigma: sigma.send("save"),
    14: lambda sigma: sigma.rewind(12),
    16: lambda sigma: sigma.rewind(1, "epoch"),
}


@BACKENDS
@pytest.mark.parametrize("at", [7, 13])
def test_a_crashed_run_is_resumed_and_replayed_to_the_bit(tmp_path: Path, backend: str, at: int) -> None:
    settings: dict[str, Any] = {"last": 19, "backend": backend, "augmentations": NOISE}
    with steered_environment(SCRIPT, **settings) as sigma:
        sigma.folder = tmp_path / "whole"
        sigma.run()
        whole, folder = decisive(sigma.trainer("trainer")), sigma.run_folder
    assert folder is not None
    with steered_environment(**settings) as again:
        assert again.replay(folder)[1] == {}
    before = {iteration: act for iteration, act in SCRIPT.items() if iteration < at}
    run = train_until_crash(steered_environment({**before, at: crash}, **settings), tmp_path / "crashed")
    rest = {iteration: act for iteration, act in SCRIPT.items() if iteration >= at}
    with steered_environment(rest, **settings) as late:
        late.resume(run)
        assert late.trainer("trainer").session.moment.iteration < at
        late.run()
        assert decisive(late.trainer("trainer"))[0] == whole[0]
    plain = {**settings, "augmentations": {}}
    with steered_environment(SCRIPT, **plain) as other:
        other.folder = tmp_path / "plain"
        other.run()
        assert decisive(other.trainer("trainer"))[0] != whole[0]


@BACKENDS
def test_a_rewind_computes_the_same_iterations_again(backend: str) -> None:
    states: list[dict[str, bytes]] = []
    for script in ({}, {8: lambda sigma: sigma.rewind(1, "epoch")}):
        with steered_environment(script, last=11, backend=backend, augmentations=NOISE) as sigma:
            sigma.run()
            states.append(state_bytes(sigma.trainer("trainer")))
    assert states[1] == states[0]


def test_evaluation_and_prediction_read_rows_as_they_are() -> None:
    with small_environment(Sweep(1), backend="numpy", augmentations=NOISE, splits=("training",)) as sigma:
        trainer = sigma.trainer("trainer")
        sigma.run()
        feeds = trainer.session.setup.evaluator
        held = feeds.data("training").block(0)["inputs"]
        evaluated = feeds._feed("training", edited=True)
        assert np.array_equal(evaluated.next_batches(evaluated.start(), 1).block["inputs"], held)


def test_data_without_rows_are_refused_as_such() -> None:
    with small_environment(Sweep(1), rows=0, augmentations=NOISE) as sigma, pytest.raises(SigmaDataError, match="rows"):
        sigma.prepare()


# -- mistakes ----------------------------------------------------------------------------------------------------------
@frozen
class Narrows(Augmentation):
    def augment(self, sections: Any, draw: RowDraws) -> Any:
        return {**sections, "inputs": sections["inputs"][:, :2]}


@frozen
class Loses(Augmentation):
    def augment(self, sections: Any, draw: RowDraws) -> Any:
        return {"inputs": sections["inputs"]}


@frozen
class Writes(Augmentation):
    def augment(self, sections: Any, draw: RowDraws) -> Any:
        sections["inputs"][...] = 0
        return sections


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        (Narrows(), SigmaComponentError, r"augmentation 'odd'.*'inputs': 'float32 of shape \(1, 3\)'.*got.*\(1, 2\)"),
        (Loses(), SigmaComponentError, "augmentation 'odd'.*must return .*'targets'"),
        (Writes(), SigmaComponentError, "augmentation 'odd'.*read-only"),
        (Jitter(section="picture"), SigmaDataError, "noise: the data has no section 'picture'"),
        (Flip(), SigmaDataError, "flip: section 'inputs' has samples of shape"),
    ],
)
def test_an_augmentation_that_does_not_fit_is_refused_before_training(
    step: Augmentation, error: type[Exception], words: str
) -> None:
    with small_environment(Sweep(1), augmentations={"odd": step}) as sigma, pytest.raises(error, match=words):
        sigma.prepare()


# -- configurations ----------------------------------------------------------------------------------------------------
TEXT = """
format = 1
[run]
name = "varied"
backend = "{backend}"
[data]
dataset = "digits"
batch_size = 100
augmentations.jitter = {{ type = "noise", deviation = 2.0 }}
[data.augmentations.hidden]
type = "noise"
section = "{section}"
[network]
architecture = "input(8, 8) + flatten() + dense(8, activation='relu') + output(10) + softmax_cross_entropy()"
[trainer]
epochs = 2
optimiser = "adam"
"""


def run_command(capsys: Any, *arguments: Any) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([*map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.long_cases("numba")
@BACKENDS
def test_a_configuration_has_augmentations_and_a_run_folder_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, backend: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("varied.toml").write_text(TEXT.format(backend=backend, section="inputs"))
    code, out, err = run_command(capsys, "explain", "varied.toml")
    assert code == 0, err
    assert "each epoch is augmented by jitter (Jitter), hidden (Jitter), two blocks ahead" in out
    code, out, err = run_command(capsys, "run", "varied.toml", "--json", "--quiet")
    assert code == 0, err
    folder = json.loads(out)["folder"]
    assert "deviation = 2.0" in (Path(folder) / "config.toml").read_text()
    assert run_command(capsys, "replay", folder, "--check")[0] == 0
    assert run_command(capsys, "resume", folder, "--epochs", "3", "--quiet")[0] == 0
    whole = run_command(capsys, "run", "varied.toml", "--json", "--quiet", "--set", "trainer.epochs=3")[1]
    assert state_bytes(load(folder).trainer) == state_bytes(load(json.loads(whole)["folder"]).trainer)


def test_a_mistake_in_a_configuration_names_the_augmentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("varied.toml").write_text(TEXT.format(backend="numpy", section="pictures"))
    code, _, err = run_command(capsys, "check", "varied.toml")
    assert code == 2
    assert "data.augmentations.hidden" in err
    assert "noise: the data has no section 'pictures', only inputs, targets. Name one." in err


def test_a_run_from_python_keeps_its_augmentations(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"backend": "numpy", "epochs": 2, "batch_size": 8, "optimiser": "adam"}
    with Environment("varied", seed=1, folder=tmp_path) as sigma:
        trainer = sigma.create_trainer(
            data=(X, X[:, :1]),
            network="input(3) + output(1) + squared_difference()",
            augmentations=["noise"],
            **settings,
        )
        sigma.run()
        state, folder = state_bytes(trainer), sigma.run_folder
    assert folder is not None
    again = load(folder).trainer
    assert state_bytes(again) == state
    assert [*again.augmentations] == ["noise"]
    again.fit(epochs=1)
