"""What a network that cannot learn well is warned of, and which cost is advised for classes."""

from __future__ import annotations

import warnings

import pytest

from sigma_kernel import Network, SigmaNetworkError, Spec
from sigma_kernel.contracts import Architecture
from sigma_layers import (
    Activation,
    BinaryCrossEntropy,
    Conv2d,
    Dense,
    Flatten,
    Input,
    Output,
    Reshape,
    SoftmaxCrossEntropy,
    SquaredDifference,
    activations,
)  # fmt: skip

CLASSES, ANSWERS = Spec((), "int32"), Spec((3,), "float32")


def declared(chain: Architecture, targets: Spec) -> None:
    def resolve(kind: str, chosen: str) -> object:
        return getattr(activations, chosen)

    Network.build(chain).declare({"inputs": Spec((4,), "float32"), "targets": targets}, "float32", resolve)


@pytest.mark.parametrize(
    "end",
    [
        Dense(3, "softmax"),
        Output(3, "softmax"),
        Dense(3) + Activation("softmax") + Output(),
        Dense(3, "softmax") + Reshape(3),
    ],
)
def test_a_softmax_in_front_of_a_softmax_cross_entropy_is_warned_of(end: Architecture) -> None:
    with pytest.warns(UserWarning, match="-softmax_cross_entropy: its input ends in a softmax, .* Leave out"):
        declared(Input(4) + end + SoftmaxCrossEntropy(), CLASSES)


@pytest.mark.parametrize("end", [Dense(3, "sigmoid"), Dense(3) + Activation("sigmoid") + Flatten()])
def test_a_sigmoid_in_front_of_a_binary_cross_entropy_is_warned_of(end: Architecture) -> None:
    with pytest.warns(UserWarning, match="-binary_cross_entropy: its input ends in a sigmoid"):
        declared(Input(4) + end + BinaryCrossEntropy(), ANSWERS)


def test_other_activations_and_costs_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        declared(Input(4) + Dense(3, "softmax") + Dense(3) + SoftmaxCrossEntropy(), CLASSES)
        declared(Input(4) + Dense(3, "sigmoid") + SoftmaxCrossEntropy(), CLASSES)
        declared(Input(4) + Dense(3, "softmax") + BinaryCrossEntropy(), ANSWERS)
        declared(Input(4) + Dense(3, "softmax") + SquaredDifference(), ANSWERS)


@pytest.mark.parametrize("cost", [SquaredDifference(), BinaryCrossEntropy()])
def test_one_class_a_row_for_several_outputs_advises_the_cost_that_fits(cost: Architecture) -> None:
    with pytest.raises(SigmaNetworkError, match="number of units.* For classes, use softmax_cross_entropy"):
        declared(Input(4) + Dense(3) + cost, CLASSES)
    with pytest.raises(SigmaNetworkError) as error:
        declared(Input(4) + Dense(3) + cost, Spec((2,), "float32"))
    assert "For classes" not in str(error.value)


def imaged(shape: tuple[int, ...], *before: Architecture) -> None:
    chain = sum(before, Input(*shape)) + Conv2d(2, 1)
    Network.build(chain).declare({"inputs": Spec(shape, "float32")}, "float32", lambda kind, name: activations.identity)


@pytest.mark.parametrize(("shape", "then"), [((32, 30, 3), "(3, 32, 30)"), ((28, 28, 1), "(1, 28, 28)")])
def test_images_with_their_channels_last_are_warned_of(shape: tuple[int, ...], then: str) -> None:
    with pytest.warns(UserWarning, match="1-conv2d: its images seem to be") as warned:
        imaged(shape)
    assert f"taken for {shape[0]} channels. Transpose the data to {then}" in str(warned[0].message)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (64, 3, 3), (64, 1, 1), (3, 3, 3), (2, 30, 3), (32, 8, 8)])
def test_images_with_their_channels_first_are_not_warned_of(shape: tuple[int, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imaged(shape)


def test_maps_that_a_network_made_narrow_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imaged((4, 9, 9), Conv2d(8, (1, 7)))
