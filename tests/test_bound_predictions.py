"""Predictions of programs that stay bound: the right rows of any input, at once in several threads, never stale."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sigma_backend_numba  # noqa: F401  # left out where this room is not installed
import sigma_optimisers  # noqa: F401
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_layers import Concat, Input, Output, SoftmaxCrossEntropy
from sigma_run import Trained, load
from sigma_step.graphs import prediction_step
from sigma_step.steps import Programs
from sigma_training.evaluator import Evaluator
from sigma_training.trainer import NetworkTrainer

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(80, 6)).astype("f4")
DATA = {"inputs": X, "targets": X[:, :4].argmax(1)}
NETWORK = "input(6) + dense(16, activation='tanh') + output(4) + softmax_cross_entropy()"
BATCH = 20


def train(folder: Path, **settings: Any) -> tuple[Environment, NetworkTrainer]:
    environment = Environment("bound", seed=0, folder=folder)
    about = {"data": DATA, "network": NETWORK, "optimiser": "adam", "batch_size": BATCH, "backend": "numba"}
    trainer = environment.create_trainer(**{**about, **settings})
    assert isinstance(trainer, NetworkTrainer)
    return environment, trainer


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment, trainer = train(tmp_path_factory.mktemp("runs"), epochs=3)
    with environment:
        environment.run()
        assert len(trainer.history["training.loss"]) == 12
    return Path(environment.run_folder)


@pytest.fixture
def model(run_folder: Path) -> Trained:
    return load(run_folder)


def reference(parameters: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the probabilities of the network by NumPy, in float64."""
    w, b, v, c = (
        np.asarray(parameters[n], "f8") for n in sorted(parameters, key=lambda n: ("output" in n, "bias" in n))
    )
    scores = np.exp(np.tanh(x.astype("f8") @ w + b) @ v + c)
    return np.asarray(scores / scores.sum(1, keepdims=True))


def assert_right(predicted: np.ndarray, parameters: dict[str, np.ndarray], x: np.ndarray) -> None:
    np.testing.assert_allclose(predicted, reference(parameters, x), rtol=1e-5, atol=1e-6)


# -- numbers of rows ---------------------------------------------------------------------------------------------------
def test_any_number_of_rows_is_predicted_by_few_programs(model: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[Any, ...]] = []
    compile_step = Programs._compile
    monkeypatch.setattr(Programs, "_compile", lambda self, *key: compiled.append(key) or compile_step(self, *key))
    wide = DRAW.normal(size=(90, 6)).astype("f4")
    for count in (*range(1, 66), 80, 90):
        assert_right(model.predict(wide[:count]), model.parameters(), wide[:count])
    assert {kind for kind, *_ in compiled} == {prediction_step}
    assert sorted(size for _, size in compiled) == [1, 2, 4, 8, 16, BATCH]


def test_whole_batches_are_predicted_as_they_are_alone(model: Trained) -> None:
    all_rows = model.predict(X)
    for begin in range(0, len(X), BATCH):
        np.testing.assert_array_equal(model.predict(X[begin : begin + BATCH]), all_rows[begin : begin + BATCH])
    np.testing.assert_array_equal(model.predict(X[:47])[40:], model.predict(X[40:47]))


def test_rows_one_by_one_do_not_depend_on_others(model: Trained) -> None:
    alone = [model.predict(X[i : i + 1], batch_size=1) for i in range(33)]
    np.testing.assert_array_equal(model.predict(X[:33], batch_size=1), np.concatenate(alone))


def test_no_rows_are_predicted_by_no_rows(model: Trained) -> None:
    for _ in range(2):
        assert model.predict(X[:0]).shape == (0, 4)
        assert model.predict({"inputs": X[:0]}).dtype == np.float32


# -- inputs ------------------------------------------------------------------------------------------------------------
def forms_of(x: np.ndarray) -> Iterator[Any]:
    """Yield the same rows in other types and layouts."""
    fixed = x.copy()
    fixed.flags.writeable = False
    yield from (fixed, x.astype("f8"), np.asfortranarray(x), np.repeat(x, 2, 0)[::2], x.tolist())
    yield from ({"inputs": x}, {"inputs": x.astype("f8")}, {"inputs": x.tolist()}, x.view(np.ma.MaskedArray))


@pytest.mark.parametrize("count", [1, 5, BATCH, 47])
def test_an_input_is_the_same_in_any_type_and_layout(model: Trained, count: int) -> None:
    rows = X[:count]
    expected = model.predict(rows)
    for form in forms_of(rows):
        for _ in range(2):  # the second time, the program is bound
            np.testing.assert_array_equal(model.predict(form), expected)


def test_frames_and_integers_are_predicted_after_arrays(tmp_path: Path) -> None:
    frame = pd.DataFrame(X.astype("f8"), columns=[*"abcdef"])
    environment, _ = train(tmp_path, data={**DATA, "inputs": frame}, epochs=1)
    with environment:
        environment.run()
    model = load(environment.run_folder)
    for _ in range(2):
        np.testing.assert_array_equal(model.predict(frame[[*"fedcba"]]), model.predict(X))
        whole = np.rint(X).astype(int)
        np.testing.assert_array_equal(model.predict(whole), model.predict(whole.astype("f4")))


def test_what_is_predicted_belongs_to_the_caller(model: Trained) -> None:
    for count in (1, 47):
        rows = X[:count].copy()
        first = model.predict(rows)
        kept = first.copy()
        rows[...] = 0
        model.predict(rows)
        np.testing.assert_array_equal(first, kept)
        first[...] = 7
        np.testing.assert_array_equal(model.predict(X[:count]), kept)
        assert not (rows != 0).any()


@pytest.mark.parametrize("count", [1, 5, 47])
def test_mistakes_are_found_in_a_form_that_was_predicted_before(model: Trained, count: int) -> None:
    rows = X[:count].copy()
    model.predict(rows)
    for value in (np.nan, np.inf, -np.inf):
        wrong = rows.copy()
        wrong[-1, 2] = value
        with pytest.raises(
            SigmaDataError, match=rf"predict: section 'inputs', row {count - 1}, column 2: .* not finite"
        ):
            model.predict(wrong)
    with pytest.raises(SigmaDataError, match=r"row \d+, column 2: 1e\+60 is too large for float32"):
        model.predict(np.where(np.arange(6) == 2, 1e60, rows.astype("f8")))
    with pytest.raises(SigmaDataError, match=rf"has shape \({count}, 5\); expected"):
        model.predict(rows[:, :5])
    with pytest.raises(SigmaDataError, match="one sample without the axis of the batch"):
        model.predict(rows[0])
    with pytest.raises(SigmaDataError, match="is a single value"):
        model.predict(rows[0, 0])
    large = np.full_like(rows, 3e38)  # finite, though the squares are not
    assert np.isfinite(model.predict(large)).all()
    assert_right(model.predict(rows), model.parameters(), rows)


def test_several_inputs_are_predicted_together(tmp_path: Path) -> None:
    left, right = Input(6, section="left"), Input(2, section="right")
    merged = Concat()
    left.link(merged)
    right.link(merged)
    network = merged + Output(4) + SoftmaxCrossEntropy()
    data = {"left": X, "right": X[:, :2], "targets": DATA["targets"]}
    environment, _ = train(tmp_path, network=network, data=data, epochs=1)
    with environment:
        environment.run()
    model = load(environment.run_folder)
    weights, bias = (model.parameters()[n] for n in sorted(model.parameters(), key=lambda n: "bias" in n))
    for count in (1, 47):
        rows = {"left": X[:count], "right": X[:count, :2]}
        scores = np.exp(np.concatenate([*rows.values()], 1).astype("f8") @ weights + bias)
        for _ in range(2):
            np.testing.assert_allclose(model.predict(rows), scores / scores.sum(1, keepdims=True), rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(model.predict(dict(reversed(rows.items()))), model.predict(rows))
        with pytest.raises(SigmaDataError, match="sections must have equally many rows"):
            model.predict({**rows, "right": X[: count + 1, :2]})
        with pytest.raises(SigmaDataError, match="section 'right' is missing"):
            model.predict({"left": X[:count]})


def test_a_preprocessor_is_applied_in_every_call(tmp_path: Path) -> None:
    environment, _ = train(tmp_path, preprocessors={"scale": "standardise"}, epochs=1)
    with environment:
        environment.run()
    model = load(environment.run_folder)
    scaled = ((X.astype("f8") - X.mean(0, "f8")) / X.std(0, dtype="f8")).astype("f4")
    for _ in range(2):
        for count in (1, 47):
            assert_right(model.predict(X[:count]), model.parameters(), scaled[:count])


# -- parameters --------------------------------------------------------------------------------------------------------
def test_predictions_of_a_trainer_are_never_stale(tmp_path: Path) -> None:
    environment, trainer = train(tmp_path, backend="numba")
    with environment:
        trainer.prepare()
        seen = []

        def check() -> None:
            parameters = {name: np.asarray(x) for name, x in trainer.parameters().items()}
            for count in (1, 33):
                for _ in range(2):
                    assert_right(trainer.predict(X[:count]), parameters, X[:count])
            seen.append(trainer.predict(X[:1]))

        check()
        for _ in range(2):
            trainer.fit(epochs=1)  # in place
            check()
        address = next(name for name in trainer.parameters() if name.endswith("weights"))
        environment.set(f"trainer.{address}", 0.125)  # an edit
        check()
        environment.undo()
        check()
        trainer.fit(epochs=1)
        check()
        environment.rewind(4)
        check()
        assert len({values.tobytes() for values in seen}) >= 5


def test_weights_of_a_modifier_take_turns_with_the_parameters(tmp_path: Path) -> None:
    environment, trainer = train(
        tmp_path, optimiser={"type": "adam", "modifiers": {"average": {"type": "average", "decay": 0.9}}}
    )
    with environment:
        trainer.fit(epochs=2)
        rows = X[:5]
        plain, averaged = trainer.predict(rows), trainer.predict(rows, weights="average")
        assert not np.array_equal(plain, averaged)
        for _ in range(3):
            np.testing.assert_array_equal(trainer.predict(rows), plain)
            np.testing.assert_array_equal(trainer.predict(rows, weights="average"), averaged)


# -- threads -----------------------------------------------------------------------------------------------------------
def predict_in_threads(model: Any, forms: list[np.ndarray], rounds: int = 30) -> bool:
    """Return whether each thread, with its own rows, gets what it gets alone."""
    expected = [model.predict(rows) for rows in forms]
    together = threading.Barrier(len(forms))

    def work(number: int) -> bool:
        together.wait()
        return all(np.array_equal(model.predict(forms[number]), expected[number]) for _ in range(rounds))

    with ThreadPoolExecutor(len(forms)) as pool:
        return all(pool.map(work, range(len(forms))))


@pytest.mark.parametrize("counts", [[1] * 8, [47] * 8, [1, 2, 3, 5, 20, 33, 47, 80]])
def test_threads_get_the_predictions_of_their_own_rows(model: Trained, counts: list[int]) -> None:
    assert predict_in_threads(model, [DRAW.normal(size=(count, 6)).astype("f4") for count in counts])


def test_threads_predict_while_a_trainer_trains(run_folder: Path, tmp_path: Path) -> None:
    environment, trainer = train(tmp_path, epochs=100_000)
    model = load(run_folder)
    with environment:
        trainer.prepare()
        training = threading.Thread(target=environment.run)
        training.start()
        forms = [DRAW.normal(size=(count, 6)).astype("f4") for count in (1, 1, 5, 5, 47, 47, 80, 80)]
        assert predict_in_threads(model, forms)
        before = trainer.predict(X[:33])
        assert np.isfinite(before).all()
        with ThreadPoolExecutor(4) as pool:  # each between two bursts, with the parameters of one moment
            parts = [*pool.map(lambda _: trainer.predict(np.repeat(X[:1], 33, 0)), range(8))]
        assert all(np.ptp(rows, axis=0).max() < 1e-6 for rows in parts)
        environment.stop()
        training.join()
        assert_right(trainer.predict(X[:33]), {n: np.asarray(x) for n, x in trainer.parameters().items()}, X[:33])


def test_the_quick_way_is_taken_only_where_nothing_has_to_be_prepared(run_folder: Path) -> None:
    model = load(run_folder)
    evaluator, _, _ = model._ready(X)
    assert isinstance(evaluator, Evaluator)
    assert [*evaluator._plain_samples(X)] == ["inputs"]
    for other in (
        X[:, :5],
        X.tolist(),
        {"inputs": X, "more": X},
        X.astype(int),
        {"inputz": X},
        np.full_like(X, np.nan),
    ):
        assert evaluator._plain_samples(other) == {}


def test_an_overflow_in_one_block_spoils_no_other(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    data = {"inputs": x, "targets": x[:, :2].copy()}
    environment, trainer = train(tmp_path, network="input(6) + dense(2, name='loss') + squared_difference()", data=data)
    with environment:
        trainer.fit(epochs=1)
        x[0] = 3e38  # its output is infinite
        together = trainer.predict(x)
        apart = np.concatenate([trainer.predict(x[i : i + 1]) for i in range(len(x))])
    assert not np.isfinite(together[0]).all()
    np.testing.assert_allclose(together[1:], apart[1:], rtol=1e-5, atol=1e-6)


def test_branches_that_are_joined_are_predicted_alone_as_together(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(24, 2, 8, 8)).astype(np.float32)
    network = """
        x = input(2, 8, 8)
        seen = x + conv2d(4, 3, activation="tanh") + conv2d(4, 3) + flatten()
        joined = concat(seen, x + dense(5, activation="tanh") + flatten())
        joined + dense(9, activation="tanh") + output(2) + squared_difference()
    """
    data = {"inputs": x, "targets": x[:, 0, 0, :2].copy()}
    environment, trainer = train(tmp_path, network=network, data=data)
    with environment:
        trainer.fit(epochs=1)
        together = trainer.predict(x)
        apart = np.concatenate([trainer.predict(x[i : i + 1]) for i in range(len(x))])
    np.testing.assert_allclose(together, apart, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [True, 2.0, 0, -1, "8"])
def test_a_batch_size_that_is_no_whole_number_is_refused_and_forgotten(model: Trained, size: Any) -> None:
    x = np.zeros((3, 6), np.float32)
    with pytest.raises(SigmaConfigError, match="predict: batch_size is a whole number from 1 on"):
        model.predict(x, size)
    assert len(model.predict(x, 1)) == len(model.predict(x, 2)) == 3
