"""Edits of real data: labels of classes, preprocessors, weights, shards, other backends, the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import Arrays, Frame, Iris, Stream, Subset
from sigma_hooks import Stop
from sigma_kernel import Environment, when
from sigma_kernel.errors import SigmaError
from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_operator_local import LocalOperator
from sigma_run import load
from sigma_testing import state_bytes

DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(60, 3)).astype(np.float32)
KIND = np.abs(X).argmax(1)
NETWORK = "input(3) + dense(4, activation='tanh') + output(3) + softmax_cross_entropy()"
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
Act = Callable[[Environment], Any]


def making(data: Any, network: Any = NETWORK, **settings: Any) -> Environment:
    sigma = Environment("edited", seed=4)
    given = {"optimiser": {"type": "adam", "learning_rate": 0.05}, "batch_size": 16, "backend": "numpy", **settings}
    sigma.create_trainer(data=data, network=network, **given)
    return sigma


def trained(data: Any, act: Act = lambda sigma: None, epochs: int = 2, **settings: Any) -> dict[str, bytes]:
    with making(data, **settings) as sigma:
        sigma.prepare()
        act(sigma)
        sigma.trainer("trainer").fit(epochs=epochs)
        return state_bytes(sigma.trainer("trainer"))


# -- labels ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("classes", "label"),
    [
        (["ant", "cat", "dog"], "dog"),
        ([5, 7, 11], 11),
        ([5, 7, 11], "11"),  # as a shell sends it
        ([5, 7, 11], np.int64(11)),
        ([-1.0, 0.0, 2.0], 2),  # as JavaScript sends it
        (["5", "7", "11"], 11),
    ],
)
def test_a_label_is_one_of_the_labels_in_the_data(classes: list[Any], label: Any) -> None:
    changed = KIND.copy()
    changed[[2, 3]] = 2
    labels = np.array(classes)
    columns = pd.DataFrame(X, columns=["a", "b", "c"])
    before, after = (Frame(columns.assign(kind=labels[kind]), target="kind") for kind in (KIND, changed))
    assert trained(before, lambda sigma: sigma.relabel([2, 3], label)) == trained(after) != trained(before)


def test_a_boolean_is_a_label_of_its_own() -> None:
    network, yes = "input(3) + output(1) + binary_cross_entropy()", KIND > 1
    changed = yes.copy()
    changed[4] = ~yes[4]
    found = trained((X, yes), lambda sigma: sigma.relabel(4, bool(changed[4])), network=network)
    assert found == trained((X, changed), network=network)
    with (
        making((X, yes), network) as sigma,
        pytest.raises(SigmaError, match="1 is not the label of a class. There are"),
    ):
        sigma.relabel(4, 1)


@pytest.mark.parametrize(("label", "message"), [("cow", "'cow' is not the label of a class"), (2.5, "2.5 is not the")])
def test_a_label_that_no_class_has_is_refused(label: Any, message: str) -> None:
    with making({"inputs": X, "targets": np.array(["ant", "cat", "dog"])[KIND]}) as sigma:
        with pytest.raises(SigmaError, match=message):
            sigma.relabel(1, label)
        assert sigma.trainer("trainer").view.edits() == {}


def test_an_index_beyond_the_classes_is_refused() -> None:
    with making({"training": (X, KIND.astype(np.uint8))}) as sigma:
        for label in (3, -1, 300, True, 0.5):
            with pytest.raises(SigmaError, match="relabel: the label does not fit"):
                sigma.relabel(1, label)


def test_a_named_class_of_a_data_set_with_indices_is_one_of_its_classes() -> None:
    """Iris holds indices, and says what they are called."""
    network = "input(4) + output(3) + softmax_cross_entropy()"
    word = trained(Iris(), lambda sigma: sigma.relabel(0, "virginica"), network=network)
    assert word == trained(Iris(), lambda sigma: sigma.relabel(0, 2), network=network)
    assert word != trained(Iris(), network=network)


def test_one_hot_rows_and_images_are_relabelled_by_rows() -> None:
    hot = np.eye(3, dtype=np.float32)[KIND]
    changed = hot.copy()
    changed[5] = [0.0, 0.5, 0.5]
    assert trained((X, hot), lambda sigma: sigma.relabel(5, [0.0, 0.5, 0.5])) == trained((X, changed))
    with making((X, hot)) as sigma, pytest.raises(SigmaError, match="are not probabilities"):
        sigma.relabel(5, [0.0, 0.5, 0.75])


def test_a_label_passes_the_preprocessors_which_are_not_fitted_again() -> None:
    numbers = np.abs(X[:, :1]) * 10 + 3
    scaled = {"scaled": {"type": "standardise", "section": "targets"}}
    network = Input(3) + Output(1) + SquaredDifference()
    with making((X, numbers), network, preprocessors=scaled) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.prepare()
        fitted = {name: value for name, value in state_bytes(trainer).items() if name.startswith("data.")}
        sigma.relabel(7, [1000.0])
        sigma.exclude(8)
        trainer.fit(epochs=1)
        assert {n: x for n, x in state_bytes(trainer).items() if n.startswith("data.")} == fitted
        found = trainer.view.losses("training")
        assert found.targets is not None
        assert found.predicted is not None
        assert found.targets[7, 0] == pytest.approx(1000.0, rel=1e-6)  # in the units of the data, unlike the loss
        deviations = (1000.0 - found.predicted[7, 0]) / numbers.std()
        assert found.losses[7] == pytest.approx(deviations**2, rel=1e-4)
        assert found.rows.tolist() == [*range(8), *range(9, 60)]


def test_words_that_become_one_hot_are_relabelled_by_words() -> None:
    data = {"inputs": X, "targets": np.array(["ant", "cat", "dog"])[KIND]}
    hot = {"hot": {"type": "one_hot", "section": "targets", "classes": 3}}
    changed = {"inputs": X, "targets": data["targets"].copy()}
    changed["targets"][9] = "cat"
    found = trained(data, lambda sigma: sigma.relabel(9, "cat"), preprocessors=hot)
    assert found == trained(changed, preprocessors=hot)


def test_labels_of_several_sections_are_given_by_section() -> None:
    trunk = Input(3) + Dense(4)
    sized = Output(1, name="long") + SquaredDifference(targets="size")
    trunk.link(sized)
    network = [trunk + Output(3, name="kind") + SoftmaxCrossEntropy(targets="kind"), sized]
    data = {"inputs": X, "kind": np.array(["a", "b", "c"])[KIND], "size": X[:, :1] * 2}
    with making(data, network) as sigma:
        with pytest.raises(
            SigmaError, match="there are labels in 2 sections. Give them by section: {'kind': ..., 'size'"
        ):
            sigma.relabel(1, "a")
        with pytest.raises(SigmaError, match="no labels are in 'inputs'"):
            sigma.relabel(1, {"inputs": [0, 0, 0]})
        sigma.relabel(1, {"kind": "a"})
        sigma.relabel(1, {"size": [7]})
        sigma.trainer("trainer").fit(epochs=1)
        assert sigma.trainer("trainer").view.edits()["training"]["labels"] == {1: {"kind": "a", "size": [7]}}
        changed = {name: values.copy() for name, values in data.items()}
        changed["kind"][1], changed["size"][1] = "a", 7.0
        wanted = trained(changed, epochs=1, network=network)
        assert state_bytes(sigma.trainer("trainer")) == wanted


# -- data --------------------------------------------------------------------------------------------------------------
def test_rows_that_a_generator_makes_are_refused() -> None:
    def rows() -> Any:
        yield X, KIND

    stream = Stream([{"inputs": x, "targets": k} for x, k in zip(X, KIND, strict=True)])
    for data in (rows, stream, Subset(stream, range(40))):
        with making(data) as sigma:
            with pytest.raises(SigmaError, match="exclude: the rows of 'training' have no numbers that stay the same"):
                sigma.exclude(1)
            with pytest.raises(SigmaError, match="relabel: the rows of 'training' have no numbers"):
                sigma.relabel(1, 1)


@pytest.mark.parametrize("share", [0.25, {"split": 0.25, "split_by": "stratified"}])
def test_rows_of_a_share_are_numbered_in_their_split(share: Any) -> None:
    data = Arrays(inputs=X, targets=KIND)
    with making(data, validation_split=share, hooks={"score": {"type": "evaluate", "on": "validation"}}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.prepare()
        splits = trainer.session.setup.factory.splits
        count = len(splits["validation"])
        with pytest.raises(SigmaError, match=f"there is no row {count}. Rows are numbered from 0 to {count - 1}"):
            sigma.exclude(count, "validation")
        sigma.exclude(range(1, count), "validation")
        trainer.fit(epochs=1)
        said = trainer.predict(trainer.view.rows("validation", [0])["inputs"])
        label = trainer.view.rows("validation", [0])["targets"]
        assert sigma.get("trainer.validation.loss") == pytest.approx(-np.log(said[0, label[0]]), rel=1e-5)


def test_rows_with_weights_are_left_out_but_not_all_that_weigh_something() -> None:
    weights = np.where(np.arange(60) < 3, 2.0, 0.0).astype(np.float32)
    message = "rows of weight 0 only would be left of 'training'"
    with making((X, KIND, weights), batch_size=8) as sigma, pytest.raises(SigmaError, match=message):
        sigma.exclude([0, 1, 2])
    kept = np.delete(np.arange(60), [0, 1])
    found = trained((X, KIND, weights), lambda sigma: sigma.exclude([0, 1]), batch_size=8)
    assert found == trained((X[kept], KIND[kept], weights[kept]), batch_size=8)


# -- with the rest -----------------------------------------------------------------------------------------------------
@BACKENDS
@pytest.mark.parametrize("shards", [1, 3])
def test_edits_and_batch_sizes_hold_on_every_backend_and_in_shards(backend: str, shards: int) -> None:
    def act(sigma: Environment) -> None:
        sigma.exclude([3, 59])
        sigma.relabel(5, 1)
        sigma.set("trainer.batch_size", 9)

    kept, changed = np.delete(np.arange(60), [3, 59]), KIND.copy()
    changed[5] = 1
    settings = {"backend": backend, "operator": LocalOperator(shards=shards)}
    wanted = trained((X[kept], changed[kept]), batch_size=9, **settings)
    assert trained((X, KIND), act, **settings) == wanted


def test_edits_stay_when_the_iterator_or_the_backend_is_swapped() -> None:
    def act(sigma: Environment) -> None:
        sigma.exclude([3, 4])
        sigma.trainer("trainer").fit(epochs=1)
        sigma.swap("iterator", "sequential")
        sigma.swap("backend", "numba")
        assert sigma.get("trainer.data.training.excluded") == 2

    with making((X, KIND)) as sigma:
        sigma.prepare()
        act(sigma)
        sigma.trainer("trainer").fit(epochs=1)
        losses = sigma.trainer("trainer").view.losses("training")
        assert losses.rows.tolist() == [0, 1, 2, *range(5, 60)]
        assert sigma.trainer("trainer").session.moment.iteration == 2 * 4


def test_a_stop_hook_ends_training_where_it_was_set_to() -> None:
    with making((X, KIND), hooks={"end": Stop(when=when("epoch").reaches(9))}) as sigma:
        sigma.prepare()
        sigma.set("trainer.hooks.end.when", "epoch reaches 3")
        assert sigma.get("trainer.goal") == 3 * 4
        sigma.run()
        assert sigma.trainer("trainer").session.moment.epoch == 3


def test_the_goal_of_a_stop_hook_is_told_with_epochs_of_another_length() -> None:
    with making((X, KIND), hooks={"end": Stop(when=when("epoch").reaches(3))}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        sigma.exclude(range(30))
        sigma.trainer("trainer").fit(epochs=9)
        assert sigma.get("trainer.goal") == sigma.trainer("trainer").session.moment.iteration == 4 + 2 + 2


# -- run folders -------------------------------------------------------------------------------------------------------
def test_evaluate_takes_the_data_as_they_are_unless_they_are_to_be_edited(tmp_path: Path, sigma: Any) -> None:
    with Environment("flowers", seed=0, folder=tmp_path) as made:
        trainer = made.create_trainer(
            data="iris", network="input(4) + output(3) + softmax_cross_entropy()", optimiser="adam", batch_size=40,
            backend="numpy", epochs=2, hooks={"score": {"type": "accuracy", "on": "validation"}},
        )  # fmt: skip
        made.prepare()
        made.exclude(range(5), "validation")
        made.relabel(6, "virginica", "validation")
        made.run()
        run = made.run_folder
        whole, edited = trainer.evaluate(), trainer.evaluate(edited=True)
        assert made.get("trainer.validation.loss") == edited["loss"] != whole["loss"]
    assert run is not None
    for flags, wanted in (((), whole), (("--edited",), edited)):
        code, out, _ = sigma("evaluate", run, "--json", *flags)
        assert code == 0
        assert json.loads(out)["metrics"]["validation.loss"] == pytest.approx(wanted["loss"], rel=1e-9)
    model = load(run)
    assert model.evaluate()["loss"] == pytest.approx(whole["loss"], rel=1e-9)
    assert model.evaluate(edited=True)["loss"] == pytest.approx(edited["loss"], rel=1e-9)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["edited"] == {"validation": {"rows": summary["edited"]["validation"]["rows"], "excluded": 5,
                                                "relabelled": 1}}  # fmt: skip
    code, out, _ = sigma("replay", run, "--check")
    assert code == 0, out
    code, out, _ = sigma("resume", run, "--epochs", "4", "--json", "--quiet")
    assert (code, json.loads(out)["epochs"]) == (0, 4)
    assert sigma("replay", run, "--check")[0] == 0


def test_a_loaded_network_trains_on_with_its_edits_but_not_on_other_data(tmp_path: Path) -> None:
    with Environment("kinds", seed=0, folder=tmp_path) as made:
        made.create_trainer(data=(X, KIND), network=NETWORK, optimiser="adam", batch_size=16, backend="numpy", epochs=2)
        made.prepare()
        made.exclude([50, 51])
        made.run()
        run = made.run_folder
    assert run is not None
    same = load(run).trainer
    same.fit(epochs=1)
    assert same.session.setup.counts("training") == {"rows": 58, "excluded": 2, "relabelled": 0}
    other = load(run).trainer
    other.data = (X[:40], KIND[:40])
    other.fit(epochs=1)
    assert other.session.setup.counts("training") == {"rows": 40, "excluded": 0, "relabelled": 0}


PROGRAM = """
import os, signal, sys, time
import numpy as np
from sigma_kernel import Environment
from sigma_training.commands.pause import Pause
from sigma_training.session.loop import TrainingLoop

advance, paused = TrainingLoop.advance, []

def held(loop, *given):  # else training may end before it is paused
    while not paused and not loop.current.queue.awaits("pause"):
        time.sleep(0.001)
    return advance(loop, *given)

TrainingLoop.advance = held
draw = np.random.default_rng(3)
x = draw.normal(size=(60, 3)).astype(np.float32)
kind = np.array(["ant", "cat", "dog"])[np.abs(x).argmax(1)]
with Environment("killed", seed=4, folder=sys.argv[1]) as sigma:
    trainer = sigma.create_trainer(
        data={"training": (x, kind), "validation": (x[:20], kind[:20])}, batch_size=16, epochs=8, backend="numpy",
        network="input(3) + output(3) + softmax_cross_entropy()", optimiser="adam",
        hooks={"worst": {"type": "row_loss", "most": 3}, "score": {"type": "evaluate", "on": "validation"},
               "save": {"type": "checkpoint", "every": "5 iterations"}},
    )
    training = sigma.run_async()
    paused.append(sigma.pause())
    sigma.exclude([1, 2])
    sigma.relabel(3, "dog")
    sigma.exclude(4, "validation")
    sigma.set("trainer.batch_size", 12)
    sigma.step(int(sys.argv[2]))
    while trainer.session.status != "paused":
        pass
    sigma.relabel([5, 6], "ant")
    sigma.undo()
    sigma.exclude([7, 8, 9])
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long_cases("6")
@pytest.mark.parametrize("steps", [1, 6])
def test_a_run_that_is_killed_while_edits_wait_is_resumed_and_replayed(tmp_path: Path, sigma: Any, steps: int) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "runs"), str(steps)]
    killed = subprocess.run(program, timeout=120, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert killed.returncode == -signal.SIGKILL
    (run,) = (tmp_path / "runs").iterdir()
    code, out, err = sigma("resume", run, "--json", "--quiet")
    assert code == 0, err
    assert json.loads(out)["epochs"] == 8
    assert json.loads(out)["edited"] == {
        "training": {"rows": 55, "excluded": 5, "relabelled": 1},
        "validation": {"rows": 19, "excluded": 1, "relabelled": 0},
    }
    code, out, _ = sigma("replay", run, "--check")
    assert code == 0, out
