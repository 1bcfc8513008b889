"""Layers that are recomputed against ``torch.utils.checkpoint`` in float64: 20 steps of gradient descent."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils.checkpoint import checkpoint  # noqa: E402

from sigma_kernel import Environment  # noqa: E402

RATE, STEPS, DEPTH = 0.1, 20, 3
RANDOM = np.random.default_rng(0)
X, LABELS = RANDOM.normal(size=(32, 8)), RANDOM.integers(5, size=32)
F = torch.nn.functional
NETWORK = (
    f'input(8) + {DEPTH} * subnetwork(dense(16, activation="tanh") + layer_norm() + dense(8, activation="gelu"), '
    "recompute=true) + output(5) + softmax_cross_entropy()"
)


def test_twenty_steps_agree_with_checkpoints_of_torch():
    trainer = Environment("peer", seed=0, folder=None).create_trainer(
        network=NETWORK, data=(X, LABELS), batch_size=32, backend="numpy", precision="float64",
        optimiser={"type": "gradient_descent", "learning_rate": RATE},
    )  # fmt: skip
    values = {name: torch.tensor(x, requires_grad=True) for name, x in trainer.parameters().items()}

    def affine(layer, x):
        return x @ values[f"network.layers.{layer}.weights"] + values[f"network.layers.{layer}.biases"]

    def block(x, name):
        x = torch.tanh(affine(f"{name}.0-dense", x))
        norm = f"network.layers.{name}.1-layer_norm"
        x = F.layer_norm(x, x.shape[-1:], values[f"{norm}.scale"], values[f"{norm}.shift"], eps=1e-5)
        return F.gelu(affine(f"{name}.2-dense", x))

    for _ in range(STEPS):
        h = torch.tensor(X)
        for i in range(DEPTH):
            h = checkpoint(block, h, f"{i + 1}-subnetwork", use_reentrant=False)
        loss = F.cross_entropy(affine(f"{DEPTH + 1}-output", h), torch.tensor(LABELS))
        slopes = torch.autograd.grad(loss, list(values.values()))
        for x, slope in zip(values.values(), slopes, strict=True):
            x.data -= RATE * slope
    trainer.fit(iterations=STEPS)
    for name, x in trainer.parameters().items():
        np.testing.assert_allclose(x, values[name].detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=name)
