"""Whole runs with recurrent layers: both backends, files, and problems that they learn."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment, load
from sigma_layers import GRU, LSTM, Input, Output, SimpleRNN, SquaredDifference

TIME, FEATURES = 12, 3
RANDOM = np.random.default_rng(0)
DATA = {
    "inputs": RANDOM.normal(size=(24, TIME, FEATURES)).astype(np.float32),
    "lengths": RANDOM.integers(1, TIME + 1, 24).astype(np.int32),
    "targets": RANDOM.normal(size=(24, 2)).astype(np.float32),
}


def padded():
    """Return a network of all kinds of layers and directions."""
    lengths = Input(section="lengths", dtype="int32")
    network = Input(TIME, FEATURES) + LSTM(5, sequence=True, lengths=lengths, direction="bidirectional")
    network = network + GRU(4, sequence=True, lengths=lengths, direction="reverse")
    return network + SimpleRNN(3, lengths=lengths) + Output(2) + SquaredDifference()


def trained(backend, folder=None, epochs=2, **settings):
    sigma = Environment("recurrent", seed=0, **({} if folder is None else {"folder": folder}))
    trainer = sigma.create_trainer(data=DATA, batch_size=8, backend=backend, network=padded(), **settings)
    trainer.optimiser = {"type": "adam", "learning_rate": 0.01}
    trainer.fit(epochs=epochs)
    return trainer


@pytest.mark.rooms
def test_the_compiled_backend_trains_like_the_reference():
    reference, compiled = (trained(backend) for backend in ("numpy", "numba"))
    np.testing.assert_allclose(compiled.history["training.loss"], reference.history["training.loss"], rtol=1e-5)
    np.testing.assert_allclose(compiled.predict(DATA), reference.predict(DATA), rtol=1e-4, atol=1e-5)


@pytest.mark.rooms
def test_a_saved_network_predicts_the_same(tmp_path):
    trainer = trained("numpy", epochs=1)
    trainer.save(tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict(DATA), trainer.predict(DATA))
