"""What is compared with PyTorch: architectures of layers and costs, their data, and the same in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_kernel import functions as f  # noqa: E402
from sigma_layers import (  # noqa: E402
    Activation,
    Add,
    AveragePool,
    BinaryCrossEntropy,
    Concat,
    Conv2d,
    Dense,
    Flatten,
    Function,
    FunctionCost,
    Input,
    MaxPool,
    Output,
    Reshape,
    SoftmaxCrossEntropy,
    SquaredDifference,
)

from .comparison import affine  # noqa: E402

F = torch.nn.functional
BATCH = 6
RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(2, BATCH, 4))
PICTURES = RANDOM.normal(size=(BATCH, 2, 7, 6))
IMAGES, SEQUENCES = RANDOM.normal(size=(BATCH, 2, 3)), RANDOM.normal(size=(BATCH, 5, 3))
LABELS, TAGS = RANDOM.integers(0, 3, BATCH, np.int32), RANDOM.integers(0, 3, (BATCH, 5), np.int32)
PROBABILITIES = np.exp(X[:, :3]) / np.exp(X[:, :3]).sum(-1, keepdims=True)
ANSWERS = RANDOM.uniform(size=(BATCH, 3))
WEIGHTS = (0.5, 2.0, 1.25)

IN_TORCH = {
    "relu": F.relu, "leaky_relu": F.leaky_relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softplus": F.softplus,
    "elu": F.elu, "selu": F.selu, "gelu": F.gelu, "silu": F.silu, "softmax": lambda x: F.softmax(x, -1),
    "identity": lambda x: x,
}  # fmt: skip


def first(p):
    """Return the first affine map of the shared inputs."""
    return affine(p, "a", torch.tensor(X))


def convolved(p):
    x = F.max_pool2d(torch.relu(F.conv2d(torch.tensor(PICTURES), p["a.weights"], p["a.biases"], padding=1)), 2)
    x = F.avg_pool2d(torch.tanh(F.conv2d(x, p["b.weights"], None, (1, 2), (0, 1))), 2, 1)
    return affine(p, "c", x.flatten(1))


def overlapping(p):
    x = F.max_pool2d(F.conv2d(torch.tensor(PICTURES), p["a.weights"], p["a.biases"], padding="same"), 3, 2, 1)
    return affine(p, "c", F.avg_pool2d(x, (2, 3), 1, 1).flatten(1))


def squared(y):
    return F.mse_loss(y, torch.tensor(Y))


def diamond():
    trunk = Input(4) + Dense(4, name="a", activation="tanh")
    return (
        Concat(trunk + Dense(3, name="b"), trunk + Dense(2, name="c"), axis=1)
        + Output(4, name="d")
        + SquaredDifference()
    )


def residual():
    trunk = Input(4) + Dense(4, name="a")
    return trunk + Dense(4, name="b", activation="relu") + Add(trunk) + SquaredDifference()


# name: (architecture, data, the same in PyTorch)
CASES = {
    **{
        f"dense {name}": (
            Input(4) + Dense(5, name="a", activation=name) + Dense(4, name="b") + SquaredDifference(),
            {"inputs": X, "targets": Y},
            lambda p, h=function: squared(affine(p, "b", h(first(p)))),
        )
        for name, function in IN_TORCH.items()
    },
    **{
        f"activation {name}": (
            Input(4) + Dense(4, name="a") + Activation(name) + SquaredDifference(),
            {"inputs": X, "targets": Y},
            lambda p, h=function: squared(h(first(p))),
        )
        for name, function in IN_TORCH.items()
    },
    "dense without bias": (
        Input(4)
        + Dense(5, name="a", bias=False)
        + Output(4, name="b", bias=False, activation="tanh")
        + SquaredDifference(),
        {"inputs": X, "targets": Y},
        lambda p: squared(torch.tanh(torch.tensor(X) @ p["a.weights"] @ p["b.weights"])),
    ),
    "flatten": (
        Input(2, 3) + Dense(5, name="a", activation="tanh") + Flatten() + Output(4, name="b") + SquaredDifference(),
        {"inputs": IMAGES, "targets": Y},
        lambda p: squared(affine(p, "b", torch.tanh(affine(p, "a", torch.tensor(IMAGES))).flatten(1))),
    ),
    "reshape": (
        Input(4)
        + Dense(6, name="a")
        + Reshape(3, 2)
        + Dense(4, name="b")
        + Function(lambda x: f.mean(x, 1))
        + SquaredDifference(),
        {"inputs": X, "targets": Y},
        lambda p: squared(affine(p, "b", first(p).reshape(-1, 3, 2)).mean(1)),
    ),
    "add": (
        residual(),
        {"inputs": X, "targets": Y},
        lambda p: squared((a := first(p)) + torch.relu(affine(p, "b", a))),
    ),
    "concat": (
        diamond(),
        {"inputs": X, "targets": Y},
        lambda p: squared(affine(p, "d", torch.cat([affine(p, n, torch.tanh(first(p))) for n in "bc"], 1))),
    ),
    "convolution and pooling": (
        Input(2, 7, 6)
        + Conv2d(3, 3, padding=1, name="a", activation="relu")
        + MaxPool(2)
        + Conv2d(4, (2, 3), stride=(1, 2), padding=(0, 1), bias=False, name="b", activation="tanh")
        + AveragePool(2, stride=1)
        + Flatten()
        + Output(3, name="c")
        + SoftmaxCrossEntropy(),
        {"inputs": PICTURES, "targets": LABELS},
        lambda p: F.cross_entropy(convolved(p), torch.tensor(LABELS).long()),
    ),
    "pools that overlap and are padded": (
        Input(2, 7, 6)
        + Conv2d(4, 3, padding="same", name="a")
        + MaxPool(3, stride=2, padding=1)
        + AveragePool((2, 3), stride=1, padding=1)
        + Flatten()
        + Output(3, name="c")
        + SoftmaxCrossEntropy(),
        {"inputs": PICTURES, "targets": LABELS},
        lambda p: F.cross_entropy(overlapping(p), torch.tensor(LABELS).long()),
    ),
    "function cost": (
        Input(4) + Dense(4, name="a") + FunctionCost(lambda y, t: f.mean(f.abs(y - t)), weight=0.5),
        {"inputs": X, "targets": Y},
        lambda p: F.l1_loss(first(p), torch.tensor(Y)) / 2,
    ),
    "softmax cross-entropy of labels": (
        Input(4) + Output(3, name="a") + SoftmaxCrossEntropy(),
        {"inputs": X, "targets": LABELS},
        lambda p: F.cross_entropy(first(p), torch.tensor(LABELS).long()),
    ),
    "softmax cross-entropy of weighted labels": (
        Input(4) + Output(3, name="a") + SoftmaxCrossEntropy(WEIGHTS),
        {"inputs": X, "targets": LABELS},
        lambda p: F.cross_entropy(first(p), torch.tensor(LABELS).long(), torch.tensor(WEIGHTS, dtype=torch.float64)),
    ),
    "softmax cross-entropy of probabilities": (
        Input(4) + Output(3, name="a") + SoftmaxCrossEntropy(),
        {"inputs": X, "targets": PROBABILITIES},
        lambda p: F.cross_entropy(first(p), torch.tensor(PROBABILITIES)),
    ),
    "softmax cross-entropy of weighted probabilities": (
        Input(4) + Output(3, name="a") + SoftmaxCrossEntropy(WEIGHTS),
        {"inputs": X, "targets": PROBABILITIES},
        lambda p: F.cross_entropy(first(p), torch.tensor(PROBABILITIES), torch.tensor(WEIGHTS, dtype=torch.float64)),
    ),
    "softmax cross-entropy of weighted sequences": (
        Input(5, 3) + Output(3, name="a") + SoftmaxCrossEntropy(WEIGHTS),
        {"inputs": SEQUENCES, "targets": TAGS},
        lambda p: F.cross_entropy(
            affine(p, "a", torch.tensor(SEQUENCES)).permute(0, 2, 1),
            torch.tensor(TAGS).long(),
            torch.tensor(WEIGHTS, dtype=torch.float64),
        ),
    ),
    "binary cross-entropy": (
        Input(4) + Output(3, name="a") + BinaryCrossEntropy(weight=2.0),
        {"inputs": X, "targets": ANSWERS},
        lambda p: 2 * F.binary_cross_entropy_with_logits(first(p), torch.tensor(ANSWERS)),
    ),
    "two costs": (
        [
            (trunk := Input(4) + Dense(4, name="a")) + SquaredDifference(weight=0.25),
            trunk + Output(3, name="b") + SoftmaxCrossEntropy(targets="labels", weight=3.0),
        ],
        {"inputs": X, "targets": Y, "labels": LABELS},
        lambda p: squared(a := first(p)) / 4 + 3 * F.cross_entropy(affine(p, "b", a), torch.tensor(LABELS).long()),
    ),
}
