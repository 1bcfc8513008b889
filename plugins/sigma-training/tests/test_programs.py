"""Programs other than the training step: compiled on first use, once; evaluation, prediction, and their errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts import Backend, Metric, Preprocessor
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_step.steps import Programs
from sigma_testing.null import NullBackend
from sigma_training.data.iterators import InOrder

Deep = Callable[..., Environment]
NO_MODEL: Any = None


class Slow(NullBackend):
    """Records what it compiles, slowly."""

    def __init__(self) -> None:
        self.compiled: list[Any] = []

    def compile(self, step: Any, in_place: bool = True) -> Any:
        self.compiled.append(step)
        time.sleep(0.02)
        return f"program of {step}"


def _step(model: Any, number: int) -> Any:
    return f"step {number}"


def test_a_program_is_compiled_on_first_use_and_once_for_all_threads() -> None:
    backend = Slow()
    programs = Programs(NO_MODEL, backend)
    assert backend.compiled == []
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: programs.get(_step, i % 2), range(16)))
    assert sorted(backend.compiled) == ["step 0", "step 1"]
    assert found == [(f"step {i % 2}", f"program of step {i % 2}") for i in range(16)]


def test_programs_report_that_they_are_compiling() -> None:
    backend = Slow()
    programs, seen = Programs(NO_MODEL, backend), []
    thread = threading.Thread(target=lambda: programs.get(lambda _: seen.append(programs.compiling)))  # type: ignore[arg-type,return-value]
    thread.start()
    thread.join()
    assert seen == [True]
    assert not programs.compiling


def test_programs_that_are_compiled_aside_are_shared_and_not_reported() -> None:
    programs, seen = Programs(NO_MODEL, Slow()), list[bool]()

    def kind(model: Any) -> Any:
        seen.append(programs.compiling)
        return "step"

    found = programs.silent_copy().get(kind)
    assert seen == [False]
    assert programs.get(kind) is found
    assert len(seen) == 1


def test_a_failed_compilation_leaves_no_trace() -> None:
    programs = Programs(NO_MODEL, Slow())
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            programs.get(lambda _: 1 / 0)  # type: ignore[arg-type,return-value]
        assert not programs.compiling


def test_sequential_rows_are_in_order() -> None:
    assert InOrder().indices(1, 2, 3, 4).tolist() == [0, 1, 2, 3]


# -- evaluation --------------------------------------------------------------------------------------------------------
def test_evaluation_compiles_each_batch_size_once(deep: Deep, metric: Metric) -> None:
    class Counting(NullBackend):
        compiled = 0

        def compile(self, step: Any, in_place: bool = True) -> Any:
            self.compiled += 1
            return Backend.compile(self, step, in_place)

    backend = Counting()
    with deep(backend=backend) as sigma:
        for _ in range(3):
            sigma.trainer("trainer").evaluate("validation", {"distance": metric})
    assert backend.compiled == 2  # batches of 5, and of the remaining 3 rows


def test_a_split_smaller_than_a_batch_can_be_evaluated(deep: Deep) -> None:
    with deep(batch_size=20) as sigma:
        trainer = sigma.trainer("trainer")
        block = trainer.data["training"].block(0)
        whole = trainer.data["training"]
        trainer.data = {"training": whole, "few": type(whole)({name: values[:2] for name, values in block.items()})}
        few = trainer.evaluate("few")["loss"]
        wrong = trainer.predict(block["inputs"][:2]) - block["targets"][:2]
    assert few == pytest.approx(np.mean(wrong**2), rel=1e-5)


def test_a_missing_split_is_reported_with_the_available_ones(deep: Deep) -> None:
    with deep() as sigma, pytest.raises(SigmaConfigError) as error:
        sigma.trainer("trainer").evaluate("validaton")
    assert str(error.value) == ("data: the data has no split 'validaton'. Did you mean 'validation'?")


# -- prediction --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ({"inputz": np.ones((2, 3))}, "predict: section 'inputs' is missing. Did you mean 'inputz'?"),
        (np.ones((2, 4)), "predict: section 'inputs' has shape (2, 4); expected ('n', 3)."),
        (
            np.ones(3),
            "predict: section 'inputs' has shape (3,), one sample without the axis of the batch. "
            "Write predict(x[None]).",
        ),
        (1.0, "predict: section 'inputs' is a single value. Axis 0 is for the samples."),
        ([[1, 2], [3]], "predict: section 'inputs': samples have different shapes. Cut or pad them."),
        (np.ones((0, 4)), "predict: section 'inputs' has shape (0, 4); expected ('n', 3)."),
        (np.array([["a", "b", "c"]]), "data: section 'inputs' holds <U1. Use numbers or booleans."),
    ],
)
def test_samples_that_do_not_fit_are_refused(deep: Deep, samples: Any, message: str) -> None:
    with deep() as sigma:
        with pytest.raises(SigmaDataError) as error:
            sigma.trainer("trainer").predict(samples)
        assert str(error.value) == message


def test_without_samples_there_are_predictions_of_the_same_shape_and_type_without_rows(deep: Deep) -> None:
    with deep() as sigma:
        trainer = sigma.trainer("trainer")
        one = trainer.predict(np.ones((1, 3), np.float32))
        for empty in (np.ones((0, 3)), np.ones((5, 3))[:0], {"inputs": np.ones((0, 3), np.float32)}):
            none = trainer.predict(empty)
            assert (none.shape, none.dtype) == ((0, *one.shape[1:]), one.dtype)


def test_a_split_without_rows_is_not_evaluated(deep: Deep) -> None:
    with deep() as sigma:
        trainer = sigma.trainer("trainer")
        rows = trainer.data["training"]
        none = {name: values[:0] for name, values in rows.block(0).items()}
        trainer.data = {"training": rows, "few": type(rows)(none)}
        with pytest.raises(SigmaDataError, match="^evaluate: the split 'few' has no rows. Give it some, or evaluate"):
            trainer.evaluate("few")


def test_samples_are_preprocessed_like_the_training_data(deep: Deep) -> None:
    class Shift(Preprocessor):
        section = "inputs"

        def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
            return {"by": np.concatenate([*blocks]).mean(axis=0)}

        def apply(self, values: np.ndarray, state: Any) -> np.ndarray:
            return values - state["by"]

    found = []
    for preprocessors in ({}, {"shift": Shift()}):
        with deep(preprocessors=preprocessors, precision="float64") as sigma:
            trainer = sigma.trainer("trainer")
            x = trainer.data["training"].block(0)["inputs"].astype(float)
            found.append(trainer.predict(x if preprocessors else x - x.mean(axis=0)))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_several_predictions_are_returned_by_name(deep: Deep, layers: SimpleNamespace) -> None:
    with deep() as sigma:
        trainer = sigma.trainer("trainer")
        start = layers.Input() + layers.Dense(4)
        ends = [start + layers.Dense(units) + layers.SquaredDifference() for units in (1, 1)]
        trainer.network = ends
        found = trainer.predict(np.ones((7, 3)))
    assert len(found) == 2
    assert {values.shape for values in found.values()} == {(7, 1)}


def test_threads_may_evaluate_and_predict_at_once(deep: Deep) -> None:
    with deep() as sigma:
        trainer = sigma.trainer("trainer")
        x = np.ones((6, 3))
        wanted = trainer.predict(x).tobytes(), trainer.evaluate()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: (trainer.predict(x).tobytes(), trainer.evaluate()), range(24)))
    assert set(map(str, found)) == {str(wanted)}
