"""Recurrent layers: SimpleRNN, GRU, LSTM; directions, lengths, masks."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network, functions as f
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaNetworkError
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace
from sigma_layers import GRU, LSTM, Dense, Flatten, Input, Output, SimpleRNN, SquaredDifference
from sigma_testing import LayerSuite, by_name, trace_layer

KINDS = [SimpleRNN, GRU, LSTM]
BATCH, TIME, FEATURES, UNITS = 4, 5, 3, 2
X = np.random.default_rng(0).normal(size=(BATCH, TIME, FEATURES))
LENGTHS = np.array([3, 5, 0, 1], np.int32)
MASK = (np.arange(TIME) < LENGTHS[:, None]).astype(np.int32)
SEQUENCE, TOGETHER = Spec((TIME, FEATURES)), Spec((), "int32")


class RecurrentSuite(LayerSuite):
    inputs = (SEQUENCE,)
    scales = (1e-3, 1.0, 30.0)  # beyond, gates switch within the step of finite differences


class TestSimpleRNN(RecurrentSuite):
    def make(self):
        return SimpleRNN(UNITS)


class TestSimpleRNNOfWholeSequencesWithLengths(RecurrentSuite):
    inputs = (SEQUENCE, TOGETHER)
    scaled = slice(1)

    def make(self):
        return SimpleRNN(UNITS, sequence=True, direction="reverse")


class TestGRU(RecurrentSuite):
    def make(self):
        return GRU(UNITS, sequence=True)


class TestGRUThatResetsBefore(RecurrentSuite):
    def make(self):
        return GRU(UNITS, reset_after=False, direction="bidirectional")


class TestLSTM(RecurrentSuite):
    def make(self):
        return LSTM(UNITS, sequence=True, forget_bias=0.5)


class TestLSTMInBothDirectionsWithLengths(RecurrentSuite):
    inputs = (SEQUENCE, TOGETHER)
    scaled = slice(1)

    def make(self):
        return LSTM(UNITS, direction="bidirectional")


class TestLSTMThatCarriesItsState(RecurrentSuite):
    # each row of a batch has a state of its own, and there are as many as are carried
    test_a_batch_repeated_twice_gives_every_output_twice = None
    test_random_numbers_keep_the_mean_of_evaluation = None

    def make(self):
        return LSTM(UNITS, carried=16)


def run(layer, *arrays):
    """Return the output, with parameters from a seed."""
    it = trace_layer(layer, [Spec(x.shape, str(x.dtype)) for x in arrays], training=True)
    return it.run(it.values(arrays))[0]


def parameters(layer):
    it = trace_layer(layer, [Spec(X.shape, "float64")], training=True)
    return {name.removeprefix("0-it."): x for name, x in zip(it.names[1:], it.values([X])[1:], strict=True)}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# -- formulas ----------------------------------------------------------------------------------------------------------
def simple(p, x, h):
    return [np.tanh(x @ p["weights"] + h @ p["recurrent"] + p["biases"])]


def gru(p, x, h, after=True):
    (xr, xz, xn), (ur, uz, un) = (np.split(p[name], 3, -1) for name in ("weights", "recurrent"))
    br, bz, bn = np.split(p["biases"], 3)
    r, z = sigmoid(x @ xr + h @ ur + br), sigmoid(x @ xz + h @ uz + bz)
    n = np.tanh(x @ xn + bn + (r * (h @ un + p["recurrent_biases"]) if after else (r * h) @ un))
    return [(1 - z) * n + z * h]


def lstm(p, x, h, c):
    i, k, g, o = np.split(x @ p["weights"] + h @ p["recurrent"] + p["biases"], 4, -1)
    c = sigmoid(k) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


@pytest.mark.parametrize(
    ("layer", "cell"),
    [
        (SimpleRNN(UNITS, sequence=True), simple),
        (GRU(UNITS, sequence=True), gru),
        (GRU(UNITS, sequence=True, reset_after=False), lambda *given: gru(*given, after=False)),
        (LSTM(UNITS, sequence=True), lstm),
    ],
    ids=["simple", "gru", "gru before", "lstm"],
)
def test_a_layer_computes_its_formula_step_by_step(layer, cell):
    p, found = parameters(layer), run(layer, X)
    state = [np.zeros((BATCH, UNITS))] * (2 if isinstance(layer, LSTM) else 1)
    for t in range(TIME):
        state = cell(p, X[:, t], *state)
        np.testing.assert_allclose(found[:, t], state[0], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e3, -1e3, 1e30])
def test_inputs_of_every_scale_have_finite_outputs(kind, scale):
    it = trace_layer(kind(UNITS), [Spec(X.shape)], training=True, precision="float32")
    assert np.isfinite(it.run(it.values([(X * scale).astype(np.float32)]))[0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_output_is_that_of_the_last_step(kind):
    np.testing.assert_array_equal(run(kind(UNITS), X), run(kind(UNITS, sequence=True), X)[:, -1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_reverse_direction_is_the_forward_one_of_the_reversed_sequence(kind):
    backwards = run(kind(UNITS, sequence=True, direction="reverse"), X)
    np.testing.assert_allclose(backwards, run(kind(UNITS, sequence=True), X[:, ::-1])[:, ::-1], rtol=1e-12)
    np.testing.assert_array_equal(run(kind(UNITS, direction="reverse"), X), backwards[:, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_have_parameters_of_their_own_and_lie_side_by_side(kind):
    both = kind(UNITS, sequence=True, direction="bidirectional")
    it = trace_layer(both, [Spec(X.shape, "float64")], training=True)
    values = dict(zip(it.names, it.values([X]), strict=True))
    found = it.run([*values.values()])[0]
    for head, direction, place in (("", "forward", slice(UNITS)), ("reverse.", "reverse", slice(UNITS, None))):
        one = trace_layer(kind(UNITS, sequence=True, direction=direction), [Spec(X.shape, "float64")], training=True)
        arrays = [values[name.replace("0-it.", f"0-it.{head}")] for name in one.names]
        np.testing.assert_allclose(one.run(arrays)[0], found[..., place], rtol=1e-12)
    last = run(kind(UNITS, direction="bidirectional"), X)
    np.testing.assert_array_equal(last, np.concatenate([found[:, -1, :UNITS], found[:, 0, UNITS:]], axis=1))


def test_activations_are_settings():
    straight = run(SimpleRNN(UNITS, "relu", sequence=True), X)
    assert straight.min() == 0.0
    np.testing.assert_array_equal(run(SimpleRNN(UNITS, f.relu, sequence=True), X), straight)
    p, x = parameters(LSTM(UNITS)), X[:, :1]
    i, _, g, o = np.split(x[:, 0] @ p["weights"] + p["biases"], 4, -1)
    np.testing.assert_allclose(run(LSTM(UNITS, "identity", gate_activation=f.tanh), x), np.tanh(o) * np.tanh(i) * g)


# -- parameters --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("layer", "shapes"),
    [
        (SimpleRNN(2), {"weights": (3, 2), "recurrent": (2, 2), "biases": (2,)}),
        (GRU(2), {"weights": (3, 6), "recurrent": (2, 6), "biases": (6,), "recurrent_biases": (2,)}),
        (GRU(2, reset_after=False), {"weights": (3, 6), "recurrent": (2, 6), "biases": (6,)}),
        (LSTM(2), {"weights": (3, 8), "recurrent": (2, 8), "biases": (8,)}),
    ],
    ids=["simple", "gru", "gru before", "lstm"],
)
def test_parameters_of_all_gates_are_joined(layer, shapes):
    found = layer.parameters(SEQUENCE)
    assert {name: one.shape for name, one in found.items()} == shapes
    assert [found[name].initialiser for name in ("weights", "recurrent")] == ["glorot_uniform", "orthogonal"]


def test_the_biases_of_the_forget_gate_begin_with_a_value_of_their_own():
    def first(layer):
        parameter = layer.parameters(SEQUENCE)["biases"]
        return parameter.initialiser.values("a", parameter, None).tolist()

    assert first(LSTM(2)) == [0, 0, 1, 1, 0, 0, 0, 0]
    assert first(LSTM(2, forget_bias=-0.5)) == [0, 0, -0.5, -0.5, 0, 0, 0, 0]


# -- lengths -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_padding_changes_nothing(kind, direction):
    for sequence in (True, False):
        layer = kind(UNITS, sequence=sequence, direction=direction)
        found = run(layer, X, LENGTHS)
        for padding in (1e3 * X + 7, np.full_like(X, np.nan), np.full_like(X, -np.inf)):
            np.testing.assert_array_equal(run(layer, np.where(MASK[..., None] == 1, X, padding), LENGTHS), found)
        for row, length in enumerate(LENGTHS):
            rest = found[row, length:] if sequence else found[row] if length == 0 else found[row, :0]
            np.testing.assert_array_equal(rest, np.zeros_like(rest))
            if length:
                alone = run(layer, X[row : row + 1, :length])[0]
                np.testing.assert_allclose(found[row, :length] if sequence else found[row], alone, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_reaches_padding_even_if_it_is_not_finite(kind):
    layer = kind(UNITS, sequence=True, direction="bidirectional")
    it = trace_layer(layer, [Spec(X.shape, "float64"), Spec((BATCH,), "int32")], training=True)
    floats = [node for node in it.graph.inputs if node.dtype == "float64"]
    slopes = interpret(Graph(it.graph.inputs, gradient(f.sum(it.output), floats)), numpy_namespace())
    by_x, *by_parameters = slopes(*it.values([X, LENGTHS]))
    assert (by_x[MASK == 0] == 0.0).all()
    assert (by_x[MASK == 1] != 0.0).all()
    for padding in (np.nan, np.inf, np.finfo(float).max):
        padded = np.where(MASK[..., None] == 1, X, padding)
        for one, other in zip(slopes(*it.values([padded, LENGTHS])), (by_x, *by_parameters), strict=True):
            np.testing.assert_array_equal(one, other)


def test_lengths_are_numbers_a_column_or_a_mask():
    layer = LSTM(UNITS, sequence=True)
    found = run(layer, X, LENGTHS)
    for lengths in (LENGTHS.astype(float), LENGTHS[:, None], MASK, MASK.astype(float), MASK == 1):
        np.testing.assert_array_equal(run(layer, X, lengths), found)
    np.testing.assert_array_equal(run(layer, X, LENGTHS + 10), run(layer, X))
    np.testing.assert_array_equal(run(layer, X, -LENGTHS), np.zeros((BATCH, TIME, UNITS)))


def test_a_mask_may_have_gaps_which_keep_the_state():
    mask = np.ones((BATCH, TIME), np.int32)
    mask[:, 2] = 0
    shorter = run(GRU(UNITS, sequence=True), np.delete(X, 2, axis=1))
    found = run(GRU(UNITS, sequence=True), X, mask)
    np.testing.assert_array_equal(np.delete(found, 2, axis=1), shorter)


# -- in networks -------------------------------------------------------------------------------------------------------
def test_stacks_share_the_layer_of_lengths_and_their_text_reads_as_it_is_written():
    lengths = Input(section="lengths", dtype="int32")
    text = str(Input(5, 3) + 2 * LSTM(4, sequence=True, lengths=lengths) + GRU(2, lengths=lengths) + Output(1))
    assert text == (
        'x1 = input(section="lengths", dtype="int32")\n'
        "input(5, 3) + 2 * lstm(4, sequence=true, lengths=x1) + gru(2, lengths=x1) + output(1)"
    )
    assert str(Network.build(Input(5, 3) + LSTM(4, direction="bidirectional"))) == (
        'input(5, 3) + lstm(4, direction="bidirectional")'
    )


def test_a_layer_of_lengths_can_be_linked():
    chain = Input(5, 3) + LSTM(4, name="walk")
    Input(section="lengths").link(chain.layers[-1])
    network = Network.build(chain + Output(1))
    assert network["walk"].sources == ("0-input", "1-input")


def test_addresses_tell_the_directions():
    network = Network.build(Input(5, 3) + LSTM(4, name="walk", direction="bidirectional") + Output(1))
    shapes = network.declare({"inputs": SEQUENCE}, "float32", by_name)
    heads = ("walk", "walk.reverse")
    expected = [f"{head}.{name}" for head in heads for name in ("weights", "recurrent", "biases")]
    assert [name for name in shapes.parameters if name.startswith("walk")] == expected


def test_parameters_can_be_shared():
    one = Input(5, 3) + LSTM(3, sequence=True, name="a")
    shared = {name: f"a.{name}" for name in ("weights", "recurrent", "biases")}
    network = Network.build(one + LSTM(3, share=shared) + Output(1) + SquaredDifference())
    shapes = network.declare({"inputs": SEQUENCE, "targets": Spec((1,))}, "float32", by_name)
    assert [name for name in shapes.parameters if not name.endswith("output")][:3] == [*shared.values()]
    assert len(shapes.parameters) == 5


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "remedy"),
    [((4,), r"Reshape\(4, 1\)"), ((), r"Reshape\(time, features\)"), ((2, 3, 4), r"Reshape\(time, features\)")],
)
def test_a_sample_must_be_a_sequence(kind, shape, remedy):
    network = Network.build(Input(*shape) + kind(3))
    message = rf"{kind.__name__}\(.*\): a sample must be a sequence, \(time, features\). Put {remedy} before it"
    with pytest.raises(SigmaNetworkError, match=message):
        network.declare({"inputs": Spec(shape)}, "float32", by_name)


def test_lengths_of_another_shape_are_refused():
    network = Network.build(Input(5, 3) + LSTM(3, lengths=Input(4, section="lengths")))
    with pytest.raises(
        SigmaNetworkError, match=r"LSTM\(\(5, 3\)\): lengths have shape \(4,\); expected one number.*mask"
    ):
        network.declare({"inputs": SEQUENCE, "lengths": Spec((4,))}, "float32", by_name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"units": 0}, r"units: must be a whole number of at least 1 \(got 0\)"),
        ({"activation": 3}, "activation: must be a name or a function"),
        ({"direction": "backward"}, "direction: must be 'forward' or 'reverse' or 'bidirectional' .*backward"),
        ({"sequence": 1}, r"sequence: must be true or false \(got 1\)"),
        ({"carried": -1}, r"carried: must be a whole number of at least 0 \(got -1\)"),
        ({"lengths": 5}, r"lengths: must be a layer \(got 5\)"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_settings_are_refused(kind, settings, message):
    with pytest.raises((SigmaNetworkError, SigmaConfigError), match=f"{kind.__name__}.{message}"):
        kind(**{"units": 3, **settings})


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_state_is_carried_forward_only(direction):
    network = Network.build(Input(5, 3) + GRU(3, carried=2, direction=direction))
    with pytest.raises(SigmaNetworkError, match=f"GRU: state is carried forward only .got direction '{direction}'"):
        network.declare({"inputs": SEQUENCE}, "float32", by_name)


def test_wrong_settings_of_gates_are_refused():
    for kind in (GRU, LSTM):
        with pytest.raises(SigmaError, match="gate_activation: must be a name or a function"):
            kind(3, gate_activation=1.0)
    with pytest.raises(SigmaNetworkError, match=r"LSTM.forget_bias: must be a finite number \(got nan\)"):
        LSTM(3, forget_bias=float("nan"))


def test_a_dense_layer_follows_each_step():
    network = Network.build(Input(5, 3) + LSTM(4, sequence=True) + Dense(2) + Flatten() + Output(1))
    assert network.declare({"inputs": SEQUENCE}, "float32", by_name).outputs["2-dense"].shape == (5, 2)
