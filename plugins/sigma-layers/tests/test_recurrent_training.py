"""Whole runs with recurrent layers: both backends, files, and problems that they learn."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_layers import GRU, LSTM, Input, Output, SimpleRNN, SquaredDifference
from sigma_run import load

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


# -- carried state -----------------------------------------------------------------------------------------------------
ROWS, WINDOWS = 4, 3
LONG = RANDOM.normal(size=(ROWS, WINDOWS * TIME, FEATURES)).astype(
    np.float32
)  # sequences, in windows one after another
WINDOWED = {
    "inputs": LONG.reshape(ROWS, WINDOWS, TIME, FEATURES).swapaxes(0, 1).reshape(-1, TIME, FEATURES),
    "targets": RANDOM.normal(size=(ROWS * WINDOWS, 2)).astype(np.float32),
}


def carrying(kind=LSTM, data=WINDOWED, rate=0.0, carried=ROWS, batch_size=ROWS, **settings):
    """Return a trainer whose layer carries its state from window to window, and which learns nothing by default."""
    trainer = Environment("carrying", seed=0).create_trainer(data=data, batch_size=batch_size, **settings)
    trainer.iterator = "sequential"
    trainer.network = Input(*data["inputs"].shape[1:]) + kind(3, carried=carried, name="walk")
    trainer.network = trainer.network + Output(2) + SquaredDifference()
    trainer.optimiser = {"type": "gradient_descent", "learning_rate": rate}
    return trainer


def losses(trainer, epochs=1):
    trainer.fit(epochs=epochs)
    return trainer.history["training.loss"]


def at_once(kind, rows=ROWS):
    """Return the losses of the windows, from sequences that the layer walks through from their very beginning."""
    found = []
    for window in range(WINDOWS):
        inputs = LONG[:rows, : (window + 1) * TIME]
        targets = WINDOWED["targets"][window * ROWS :][:rows]
        found += [*losses(carrying(kind, {"inputs": inputs, "targets": targets}, carried=0, batch_size=rows))]
    return found


@pytest.mark.rooms
@pytest.mark.parametrize("kind", [SimpleRNN, GRU, LSTM])
def test_each_row_goes_on_where_it_ended_in_the_batch_before_and_every_epoch_begins_anew(kind):
    np.testing.assert_allclose(losses(carrying(kind), 2), 2 * at_once(kind), rtol=1e-5)


@pytest.mark.rooms
def test_rows_of_shards_go_on_as_in_whole_batches():
    for shards in (2, 3, 4):
        cut = carrying(operator={"type": "local", "shards": shards})
        np.testing.assert_allclose(losses(cut, 2), 2 * at_once(LSTM), rtol=1e-5)


@pytest.mark.rooms
def test_a_smaller_last_batch_carries_its_own_rows():
    fewer = {name: x[: -ROWS // 2] for name, x in WINDOWED.items()}
    for shards in (1, 2):
        found = losses(carrying(data=fewer, operator={"type": "local", "shards": shards}), 2)
        expected = [*at_once(LSTM)[:-1], at_once(LSTM, ROWS // 2)[-1]]
        np.testing.assert_allclose(found, 2 * expected, rtol=1e-5)


@pytest.mark.rooms
def test_a_batch_may_have_fewer_rows_than_are_carried():
    np.testing.assert_allclose(losses(carrying(carried=ROWS + 3), 2), 2 * at_once(LSTM), rtol=1e-5)


@pytest.mark.rooms
def test_the_compiled_backend_carries_the_same_state():
    found, expected = (losses(carrying(rate=0.1, backend=backend), 3) for backend in ("numba", "numpy"))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.rooms
def test_training_in_parts_carries_the_same_bits():
    whole, parts = carrying(rate=0.1), carrying(rate=0.1)
    losses(whole, 2)
    for count in (1, 3, 2):
        parts.fit(iterations=count)
    np.testing.assert_array_equal(parts.history["training.loss"], whole.history["training.loss"])


@pytest.mark.rooms
def test_evaluation_and_prediction_begin_without_state():
    trainer, fresh = carrying(), carrying(carried=0)
    losses(trainer)
    losses(fresh)
    np.testing.assert_array_equal(trainer.predict(LONG[:, :TIME]), fresh.predict(LONG[:, :TIME]))


@pytest.mark.rooms
def test_a_batch_of_more_rows_than_are_carried_is_refused():
    with pytest.raises(SigmaNetworkError, match=r"walk: carried = 2 is the number of rows.* has 4. Write carried = 4"):
        losses(carrying(carried=2))


@pytest.mark.rooms
@pytest.mark.parametrize("kind", [SimpleRNN, GRU, LSTM])
def test_a_single_row_carries_its_state(kind):
    one = {name: values[::ROWS] for name, values in WINDOWED.items()}
    found = losses(carrying(kind, one, carried=1, batch_size=1), 2)
    whole = [LONG[:1, : (window + 1) * TIME] for window in range(WINDOWS)]
    rows = [{"inputs": x, "targets": one["targets"][k : k + 1]} for k, x in enumerate(whole)]
    expected = [losses(carrying(kind, row, carried=0, batch_size=1))[0] for row in rows]
    np.testing.assert_allclose(found, 2 * expected, rtol=1e-5)


@pytest.mark.rooms
def test_an_iterator_that_shuffles_is_refused_where_rows_carry_their_state():
    trainer = carrying()
    trainer.iterator = "minibatch"
    with pytest.raises(SigmaConfigError, match=r"iterator: walk carries the state of each row .* 'sequential'"):
        trainer.fit(epochs=1)


@pytest.mark.rooms
def test_no_command_swaps_in_an_iterator_that_shuffles_where_rows_carry_their_state():
    environment = Environment("carrying", seed=0)
    trainer = environment.create_trainer(data=WINDOWED, batch_size=ROWS, iterator="sequential", optimiser="adam")
    trainer.network = Input(TIME, FEATURES) + LSTM(3, carried=ROWS) + Output(2) + SquaredDifference()
    trainer.fit(epochs=1)
    with pytest.raises(SigmaConfigError, match=r"Minibatch changes the order of the rows. Choose 'sequential'"):
        environment.swap("iterator", "minibatch")


# -- learning ----------------------------------------------------------------------------------------------------------
@pytest.mark.rooms
def test_the_adding_problem_is_learnt():
    """Add the two numbers of a sequence that are marked: Hochreiter and Schmidhuber, 1997."""
    random, steps, rows = np.random.default_rng(0), 20, 2000
    marks = np.zeros((rows, steps))
    for half in (0, steps // 2):
        marks[np.arange(rows), random.integers(half, half + steps // 2, rows)] = 1.0
    numbers = random.uniform(size=(rows, steps))
    sums = (marks * numbers).sum(1, keepdims=True)
    data = {"inputs": np.stack([numbers, marks], -1).astype(np.float32), "targets": sums.astype(np.float32)}
    trainer = Environment("adding", seed=0).create_trainer(data=data, batch_size=50, backend="numba")
    trainer.network = Input(steps, 2) + LSTM(24) + Output(1) + SquaredDifference()
    trainer.optimiser = {"type": "adam", "learning_rate": 0.01}
    trainer.fit(epochs=12)
    assert sums.var() > 0.15
    assert trainer.evaluate("training")["loss"] < 0.01
