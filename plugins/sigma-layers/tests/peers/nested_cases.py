"""Networks as layers that are compared with PyTorch: architectures, their data, and the same in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_layers import Concat, Dense, Input, Pick, Repeat, Residual, SquaredDifference, Subnetwork  # noqa: E402

from .comparison import affine  # noqa: E402

F = torch.nn.functional
X, Y = np.random.default_rng(11).normal(size=(2, 5, 3))
DATA = {"inputs": X, "targets": Y}


def squared(y):
    return F.mse_loss(y, torch.tensor(Y))


def residual(p, name, x):
    return x + torch.tanh(affine(p, f"{name}.body", x))


def projected(p):
    x = torch.tensor(X)
    return x @ p["r.projection.weights"] + affine(p, "r.body.b", torch.relu(affine(p, "r.body.a", x)))


def repeated(p, *names):
    x = torch.tensor(X)
    for name in names:
        x = torch.tanh(affine(p, name, x))
    return x


def subnetwork(p):
    code = torch.tanh(affine(p, "b.code", torch.tensor(X)))
    return affine(p, "c", torch.cat([affine(p, "b.left", code), code], 1))


TANH = {"activation": "tanh"}
CODE = Dense(2, name="code", **TANH)
CASES = {
    "residual": (
        Input(3) + Residual(Dense(3, **TANH), name="r") + SquaredDifference(), DATA,
        lambda p: squared(residual(p, "r", torch.tensor(X))),
    ),
    "residual with a projection": (
        Input(3) + Residual(Dense(7, name="a", activation="relu") + Dense(3, name="b"), Dense(3, bias=False), name="r")
        + SquaredDifference(), DATA, lambda p: squared(projected(p)),
    ),
    "repeat": (
        Input(3) + Repeat(3, Dense(3, **TANH), name="r") + SquaredDifference(), DATA,
        lambda p: squared(repeated(p, "r.0", "r.1", "r.2")),
    ),
    "repeat with shared parameters": (
        Input(3) + Repeat(3, Dense(3, name="a", **TANH), shared=True, name="r") + SquaredDifference(), DATA,
        lambda p: squared(repeated(p, "r.a", "r.a", "r.a")),
    ),
    "block and part": (
        Concat(whole := Input(3) + Subnetwork(CODE + Dense(4, name="left"), name="b"), whole + Pick("code"))
        + Dense(3, name="c") + SquaredDifference(), DATA, lambda p: squared(subnetwork(p)),
    ),
}  # fmt: skip
