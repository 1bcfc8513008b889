"""Samples to predict from: their types and values, wherever they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaDataError
from sigma_run import load

X = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
Y = (X[:, 0] > 0).astype(int)
BYTES = (abs(X) * 40).astype("uint8")


def trained(inputs: np.ndarray, folder: Path | None = None, **settings: Any) -> Any:
    sigma = Environment("samples", seed=0, folder=folder)
    trainer = sigma.create_trainer(
        data=(inputs, Y), backend="numpy", batch_size=5, optimiser="adam",
        network="input(3) + output(2) + softmax_cross_entropy()", **settings,
    )  # fmt: skip
    trainer.fit(epochs=1)
    return trainer


@pytest.mark.parametrize("method", ["predict", "classify"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_value_that_is_not_finite_is_named_by_row_and_column(method: str, bad: float) -> None:
    samples = X.copy()
    samples[7, 1] = samples[9, 0] = bad
    with pytest.raises(SigmaDataError, match=f"predict: section 'inputs', row 7, column 1: {bad} is not finite. Fill"):
        getattr(trained(X), method)(samples)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loaded_network_names_it_alike(tmp_path: Path, bad: float) -> None:
    trained(X).save(tmp_path / "saved")
    samples = X.copy()
    samples[7, 1] = bad
    with pytest.raises(SigmaDataError, match=f"predict: section 'inputs', row 7, column 1: {bad} is not finite"):
        load(tmp_path / "saved").predict(samples)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint16"])
def test_a_network_that_was_trained_on_bytes_takes_the_same_numbers_of_any_type(dtype: str, tmp_path: Path) -> None:
    trainer = trained(BYTES)
    expected = trainer.predict(BYTES)
    np.testing.assert_array_equal(trainer.predict(BYTES.astype(dtype)), expected)
    trainer.save(tmp_path / "saved")
    np.testing.assert_array_equal(load(tmp_path / "saved").predict(BYTES.astype(dtype)), expected)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64"])
def test_a_network_that_was_trained_on_floats_takes_whole_numbers(dtype: str) -> None:
    trainer = trained(BYTES.astype("float32"))
    np.testing.assert_array_equal(trainer.predict(BYTES.astype(dtype)), trainer.predict(BYTES.astype("float32")))


def test_a_fraction_is_refused_where_whole_numbers_were_learned(tmp_path: Path) -> None:
    trainer = trained(BYTES)
    trainer.save(tmp_path / "saved")
    for one in (trainer, load(tmp_path / "saved")):
        with pytest.raises(SigmaDataError, match=r"'inputs', row 0, column 0: 0.5 is no int32, for which the network"):
            one.predict(np.full((2, 3), 0.5))


def test_labels_beyond_32_bits_are_refused_with_the_way_to_indices() -> None:
    sigma = Environment("labels", seed=0)
    trainer = sigma.create_trainer(
        data=(X, Y + 10**12), backend="numpy", optimiser="adam",
        network="input(3) + output(2) + softmax_cross_entropy()",
    )  # fmt: skip
    with pytest.raises(
        SigmaDataError, match=r"'targets', row 0: \d{13} is beyond 32 bits. .* numpy.unique\(labels, ret"
    ):
        trainer.fit(epochs=1)
