"""A network of PyTorch whose arrays are read by address predicts what PyTorch predicts, running statistics included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

torch = pytest.importorskip("torch")

from sigma_kernel import Environment  # noqa: E402

NETWORK = "input(2, 6, 5) + conv2d(3, 3) + batch_norm() + flatten() + output(4) + softmax_cross_entropy()"
NAMES = {
    "1-conv2d": "0", "1-conv2d.weights": "0.weight", "1-conv2d.biases": "0.bias",
    "2-batch_norm.scale": "1.weight", "2-batch_norm.shift": "1.bias",
    "2-batch_norm.mean": "1.running_mean", "2-batch_norm.variance": "1.running_var",
    "4-output.weights": "3.weight", "4-output.biases": "3.bias",
}  # fmt: skip


def theirs(samples: Any) -> Any:
    """Return a network of PyTorch that has been trained, so that its running statistics have moved."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten(), torch.nn.Linear(36, 4)
    )
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(samples), torch.arange(len(samples)) % 4).backward()
        optimiser.step()
    return model.eval()


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_a_network_of_torch_with_running_statistics_predicts_the_same(kind: str, tmp_path: Path) -> None:
    samples = np.random.default_rng(0).normal(1.0, 2.0, (24, 2, 6, 5)).astype("float32")
    model = theirs(torch.tensor(samples))
    arrays = {name: x.numpy() for name, x in model.state_dict().items()}
    assert np.abs(arrays["1.running_mean"]).max() > 0.1
    arrays["3.weight"] = arrays["3.weight"].T.copy()  # layers of Sigma hold (inputs, outputs)
    path = tmp_path / f"theirs.{kind}"
    save_file(arrays, path) if kind == "safetensors" else np.savez(path, **arrays)
    trainer = Environment("ours", seed=1).create_trainer(
        data=(samples, np.arange(24) % 4), network=NETWORK, batch_size=8, backend="numpy", optimiser="adam",
        initialisers={"start": ("**", {"type": "from_file", "path": str(path), "map": NAMES})},
    )  # fmt: skip
    with torch.no_grad():
        wanted = torch.softmax(model(torch.tensor(samples)), 1).numpy()
    np.testing.assert_allclose(trainer.predict(samples), wanted, 1e-5, 1e-6)
