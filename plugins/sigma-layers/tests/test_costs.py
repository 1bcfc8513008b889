"""Costs: closed forms, and errors for data that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network, functions as f
from sigma_kernel.contracts import CostLayer, Totals
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace, symbol
from sigma_layers import (
    BinaryCrossEntropy,
    Dense,
    Flatten,
    FunctionCost,
    Input,
    Output,
    SoftmaxCrossEntropy,
    SquaredDifference,
)
from sigma_testing import CostSuite, by_name, trace_layer

WEIGHTS = (0.5, 2.0, 1.25)


class TestSoftmaxCrossEntropyOfLabels(CostSuite):
    inputs = (Spec((3,)), Spec((), "int32"))

    def make(self):
        return SoftmaxCrossEntropy()


class TestSoftmaxCrossEntropyOfWeightedSequences(CostSuite):
    inputs = (Spec((2, 3)), Spec((2,), "int32"))

    def make(self):
        return SoftmaxCrossEntropy(class_weights=WEIGHTS)


class TestSoftmaxCrossEntropyOfProbabilities(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))

    def make(self):
        return SoftmaxCrossEntropy(class_weights=WEIGHTS)

    def arrays(self, batch):
        scores, targets = super().arrays(batch)
        return scores, np.exp(targets) / np.exp(targets).sum(-1, keepdims=True)


class TestBinaryCrossEntropy(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))

    def make(self):
        return BinaryCrossEntropy()

    def arrays(self, batch):
        scores, targets = super().arrays(batch)
        return scores, 1 / (1 + np.exp(targets))


class TestSquaredDifference(CostSuite):
    inputs = (Spec((2, 3)), Spec((2, 3)))

    def make(self):
        return SquaredDifference()


class TestFunctionCost(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))

    def make(self):
        return FunctionCost(lambda output, targets: f.mean(f.abs(output - targets)))

    test_sample_weights_act_as_numbers_of_copies = None  # its function takes none


class TestFunctionCostWithSampleWeights(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))

    def make(self):
        def cost(output, targets, weights=None):
            rows = f.mean(f.abs(output - targets), axis=1)
            return f.mean(rows) if weights is None else Totals(f.sum(rows * weights), f.sum(weights))

        return FunctionCost(cost)


class TestFunctionCostWithWeights(CostSuite):
    inputs = (Spec((3,)), Spec((3,), "int32"))

    def make(self):
        return FunctionCost(weighed)

    test_sample_weights_act_as_numbers_of_copies = None  # its function takes none


def weighed(output, targets):
    weights = f.cast(targets, output.dtype)
    return Totals(f.sum(f.square(output) * weights), f.sum(weights))


def cost(layer, output, targets):
    it = trace_layer(layer, [Spec(x.shape, str(x.dtype)) for x in (output, targets)], training=True)
    return float(it.run([output, targets])[0])


def predicted(layer, x):
    node = symbol(x.shape, str(x.dtype))
    return interpret(Graph((node,), (layer.prediction(node),)), numpy_namespace())(x)[0]


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


SCORES = np.random.default_rng(0).normal(size=(5, 3))
LABELS = np.array([0, 2, 1, 2, 2], np.int32)
PICKED = log_softmax(SCORES)[np.arange(5), LABELS]


# -- closed forms ------------------------------------------------------------------------------------------------------
def test_softmax_cross_entropy_is_the_mean_of_negative_log_probabilities():
    assert cost(SoftmaxCrossEntropy(), SCORES, LABELS) == pytest.approx(-PICKED.mean(), rel=1e-14)


def test_one_hot_rows_give_the_same_loss_as_labels():
    for dtype in (np.float64, np.int32, bool):
        assert cost(SoftmaxCrossEntropy(), SCORES, np.eye(3, dtype=dtype)[LABELS]) == pytest.approx(
            -PICKED.mean(), rel=1e-14
        )


def test_labels_may_be_integral_floats():
    assert cost(SoftmaxCrossEntropy(), SCORES, LABELS.astype(np.float64)) == pytest.approx(-PICKED.mean(), rel=1e-14)


def test_class_weights_weigh_rows_for_labels_and_terms_for_probabilities():
    each = np.array(WEIGHTS)[LABELS]
    weighted = -(PICKED * each).sum()
    assert cost(SoftmaxCrossEntropy(WEIGHTS), SCORES, LABELS) == pytest.approx(weighted / each.sum(), rel=1e-14)
    assert cost(SoftmaxCrossEntropy(WEIGHTS), SCORES, np.eye(3)[LABELS]) == pytest.approx(weighted / 5, rel=1e-14)


def test_labels_of_weight_zero_cost_nothing():
    layer = SoftmaxCrossEntropy([0.0, 1.0, 0.0])
    assert cost(layer, SCORES[:2], np.array([0, 2], np.int32)) == 0.0
    it = trace_layer(layer, [Spec((2, 3), "float64"), Spec((2,), "int32")], training=True)
    slope = Graph(it.graph.inputs, gradient(it.output, [it.graph.inputs[0]]))
    found = interpret(slope, numpy_namespace())(*it.values([SCORES[:2], np.array([0, 2], np.int32)]))[0]
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_totals_of_a_cost_must_be_scalars():
    rows = FunctionCost(lambda y, t: Totals(f.sum(y * t, axis=1), f.sum(t, axis=1)))
    with pytest.raises(SigmaNetworkError, match=r"a cost must be a scalar \(got shape \(2,\)\)"):
        declare(Input(3) + rows, inputs=Spec((3,)), targets=Spec((3,)))


def test_costs_are_stable_for_logits_of_any_size():
    assert cost(SoftmaxCrossEntropy(), np.array([[1e4, -1e4, 0.0]]), np.array([1], np.int32)) == 2e4
    assert cost(BinaryCrossEntropy(), np.array([[1e4, -1e4]]), np.array([[0.0, 1.0]])) == 1e4


def test_binary_cross_entropy_is_the_mean_over_all_elements():
    t, p = np.abs(np.sin(SCORES)), 1 / (1 + np.exp(-SCORES))
    expected = -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean()
    assert cost(BinaryCrossEntropy(), SCORES, t) == pytest.approx(expected, rel=1e-14)


def test_squared_difference_is_the_mean_over_all_elements():
    assert cost(SquaredDifference(), SCORES, np.ones((5, 3))) == pytest.approx(((SCORES - 1) ** 2).mean(), rel=1e-14)


@pytest.mark.parametrize("layer", [BinaryCrossEntropy(), SquaredDifference()])
def test_a_single_output_accepts_flat_targets_of_any_number_type(layer):
    column, answers = SCORES[:, :1], np.array([0, 1, 1, 0, 1], np.int32)
    expected = cost(layer, column, answers[:, None].astype(np.float64))
    assert cost(layer, column, answers) == expected
    assert cost(layer, column, answers.astype(bool)) == expected
    layer.check(answers, Spec((1,)))


def test_predictions_of_costs_are_in_user_terms():
    np.testing.assert_allclose(predicted(SoftmaxCrossEntropy(), SCORES), np.exp(log_softmax(SCORES)), rtol=1e-13)
    np.testing.assert_allclose(predicted(BinaryCrossEntropy(), SCORES), 1 / (1 + np.exp(-SCORES)), rtol=1e-13)
    np.testing.assert_array_equal(predicted(SquaredDifference(), SCORES), SCORES)


# -- shapes that do not fit --------------------------------------------------------------------------------------------
def declare(network, **sections):
    return Network.build(network).declare(sections, "float32", by_name)


def test_an_unflattened_image_output_is_refused_with_the_advice_to_flatten():
    images, labels = Spec((28, 28)), Spec((), "int32")
    with pytest.raises(
        SigmaNetworkError, match=r"2-softmax_cross_entropy: .*\(28, 10\).*Put Flatten\(\) before the output"
    ):
        declare(Input(28, 28) + Output(10) + SoftmaxCrossEntropy(), inputs=images, targets=labels)
    with pytest.raises(SigmaNetworkError, match=r"Put Flatten\(\) before the output"):
        declare(Input(28, 28) + Output(10) + SoftmaxCrossEntropy(), inputs=images, targets=Spec((10,)))
    declare(Input(28, 28) + Flatten() + Output(10) + SoftmaxCrossEntropy(), inputs=images, targets=labels)


def test_targets_that_are_neither_labels_nor_probabilities_are_refused():
    with pytest.raises(SigmaNetworkError, match=r"\(3,\), \(4,\)\): rows of section 'targets' must.*Give one label"):
        cost(SoftmaxCrossEntropy(), SCORES, np.zeros((5, 4)))


@pytest.mark.parametrize("layer", [BinaryCrossEntropy(targets="answers"), SquaredDifference(targets="answers")])
def test_targets_of_another_shape_are_refused(layer):
    with pytest.raises(SigmaNetworkError, match=r"\(\(3,\), \(4,\)\): section 'answers' must have the output's shape"):
        cost(layer, SCORES, np.zeros((5, 4)))
    with pytest.raises(SigmaDataError, match=r"'answers' has rows of shape \(4,\); expected \(3,\)"):
        layer.check(np.zeros((5, 4)), Spec((3,)))


def test_there_must_be_one_numeric_class_weight_per_class():
    with pytest.raises(SigmaNetworkError, match="2 class_weights for 3 classes. Give one number for each class"):
        cost(SoftmaxCrossEntropy([1.0, 2.0]), SCORES, LABELS)
    for wrong in ("abc", [1, -1], [1, float("inf")], [1, float("nan")], [1, "x"], 3, [0, 0.0, 0], []):
        with pytest.raises(SigmaNetworkError, match="class_weights: must be numbers of at least 0, one of them above"):
            SoftmaxCrossEntropy(wrong)


# -- data that do not fit ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("label", [3, -1, 255])
def test_a_label_that_is_not_a_class_is_reported_with_its_row(label):
    wrong, range_ = f"row 2: label {label} is not one of 3 classes", f"go from {min(label, 0)} to {max(label, 2)}"
    with pytest.raises(SigmaDataError, match=rf"section 'digits', {wrong}.*0 to 2; Output\(3\).*{range_}\."):
        SoftmaxCrossEntropy(targets="digits").check(np.array([0, 1, label, 2]), Spec((3,)))


@pytest.mark.parametrize("label", [0.5, np.nan])
def test_a_label_that_is_not_an_integer_is_refused(label):
    with pytest.raises(SigmaDataError, match=f"row 1: label {label} is not one of 3 classes"):
        SoftmaxCrossEntropy().check(np.array([0.0, label]), Spec((3,)))


def test_a_label_in_a_sequence_is_named_by_its_row():
    with pytest.raises(SigmaDataError, match="row 1: label 9"):
        SoftmaxCrossEntropy().check(np.array([[0, 1], [2, 9]]), Spec((2, 3)))


@pytest.mark.parametrize("row", [[1, 1, 0], [0, 0, 0], [1.5, -0.5, 0], [np.nan, 1, 0]])
def test_a_target_row_that_is_not_a_distribution_is_refused(row):
    with pytest.raises(SigmaDataError, match="row 1: .* are not probabilities.*BinaryCrossEntropy"):
        SoftmaxCrossEntropy().check(np.array([[0, 1, 0], row]), Spec((3,)))


def test_rows_of_another_shape_are_refused():
    with pytest.raises(SigmaDataError, match=r"rows of shape \(2,\); expected \(\) \(labels\) or \(3,\) \(prob"):
        SoftmaxCrossEntropy().check(np.zeros((5, 2)), Spec((3,)))


@pytest.mark.parametrize("answer", [2, -1, np.nan])
def test_a_binary_target_that_is_neither_0_nor_1_is_reported_with_its_row(answer):
    with pytest.raises(SigmaDataError, match=f"row 1: {float(answer)} is not a probability"):
        BinaryCrossEntropy().check(np.array([0.0, answer]), Spec((1,)))


def test_a_custom_cost_is_minimised_like_a_built_in_one():
    network = Input(4) + Dense(3) + FunctionCost(lambda y, t: f.mean(f.abs(y - t)), targets="inputs2")
    shapes = declare(network, inputs=Spec((4,)), inputs2=Spec((3,)))
    assert "2-function_cost.weight" in shapes.live


def test_a_function_of_one_argument_is_refused_with_the_two_that_it_is_given():
    with pytest.raises(
        SigmaNetworkError, match=r"receives 2 arguments .*Write it as a function of \(output, targets\)"
    ):
        cost(FunctionCost(lambda y: f.mean(y)), SCORES, SCORES)


class Plain(CostLayer):
    """A cost that subtracts as NumPy does."""

    def forward(self, context, output, targets):
        return f.mean(f.square(output - f.cast(targets, output.dtype)))


@pytest.mark.parametrize("layer", [FunctionCost(lambda y, t: f.mean(f.square(y - t))), Plain()])
def test_targets_without_the_axis_of_a_column_are_refused_instead_of_paired_with_all_rows(layer):
    network = Input(4) + Output(1) + layer
    told = r"(cost|plain): sub of shapes \(batch, 1\) and \(batch,\) would pair .* Write targets\[:, None\]"
    with pytest.raises(SigmaNetworkError, match=told):
        declare(network, inputs=Spec((4,)), targets=Spec(()))
    declare(network, inputs=Spec((4,)), targets=Spec((1,)))


def test_weights_are_not_paired_with_all_rows_of_a_column():
    def weighed(y, t, w):
        return Totals(f.sum(w * f.square(y - t)), f.sum(w))

    with pytest.raises(SigmaNetworkError, match=r"mul of shapes .* weights have shape .* Write weights\[:, None\]"):
        declare(Input(4) + Output(1) + FunctionCost(weighed), inputs=Spec((4,)), targets=Spec((1,)), weights=Spec(()))


@pytest.mark.parametrize(
    "loss",
    [
        lambda y, t: f.mean(f.square(y[:, 0] - t)),
        lambda y, t: f.mean(f.square(y - t[:, None])),
        lambda y, t: f.mean(f.abs(t[:, None] - t) * f.abs(y - y[:, 0])),  # all pairs, on purpose
        lambda y, t: f.mean(f.square(y[:, 0] - t) + f.mean(y * np.array([0.1, 0.9]))),  # as many numbers as rows
    ],
)
def test_rows_that_line_up_or_are_paired_on_purpose_are_no_error(loss):
    declare(Input(4) + Output(1) + FunctionCost(loss), inputs=Spec((4,)), targets=Spec(()))


def test_a_column_of_labels_is_one_label_for_each_row():
    network = Input(4) + Output(3) + SoftmaxCrossEntropy()
    declare(network, inputs=Spec((4,)), targets=Spec((1,), "int64"))
    with pytest.raises(SigmaDataError, match="row 1: label 3"):
        SoftmaxCrossEntropy().check(np.array([[0], [3]]), Spec((3,)))
    with pytest.raises(SigmaNetworkError, match="must have shape"):
        declare(network, inputs=Spec((4,)), targets=Spec((2,), "int64"))
