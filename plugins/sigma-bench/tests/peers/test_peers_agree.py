"""PyTorch and JAX agree with Sigma: the same losses from the same parameters, in float64."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("torch")

from sigma_bench import command  # noqa: E402
from sigma_bench.contestants import compiler, jax_loop, torch_loop  # noqa: E402
from sigma_bench.contestants.sigma import Sigma  # noqa: E402
from sigma_bench.entry import Entry  # noqa: E402
from sigma_bench.translation import to_workload  # noqa: E402
from sigma_bench.work import Workload  # noqa: E402
from sigma_layers.plugin import ACTIVATIONS  # noqa: E402
from sigma_run.config import load  # noqa: E402
from sigma_run.launcher import main  # noqa: E402

CONFIGURATION = """
format = 1

[run]
name = "small"
seed = 7
precision = "float64"

[data]
dataset = "synthetic"
rows = 53                   # of which 42 are for training: the last batch is smaller
shape = [2, 7, 6]
classes = 3
batch_size = 10

[network]
architecture = "input(2, 7, 6) + flatten() + dense(7, activation='relu') + output(3) + softmax_cross_entropy()"

[trainer]
optimiser = { type = "gradient_descent", learning_rate = 0.1 }
"""
TAIL = " + output(3) + softmax_cross_entropy()"


def net(middle: str) -> list[str]:
    return [f"network.architecture=input(2, 7, 6) + {middle}{TAIL}"]


WORKS = {
    "as it is": [],
    "whole batches only": ["data.last_batch=drop"],
    "momentum": ["trainer.optimiser={ type = 'momentum', learning_rate = 0.1, momentum = 0.8 }"],
    "adam": ["trainer.optimiser={ type = 'adam', learning_rate = 0.01, beta1 = 0.8, epsilon = 1e-4 }"],
    "adagrad": ["trainer.optimiser={ type = 'adagrad', epsilon = 0.1, initial_accumulator = 0.5 }"],
    "without bias": net("flatten() + dense(7, bias=false, activation='tanh')"),
    "sums over the last axis": net("dense(5, activation='softmax') + flatten()"),
    "convolution and pooling": net(
        "conv2d(4, 3, padding=1, activation='relu') + max_pool(2) + conv2d(3, (2, 3), stride=(1, 2), padding=(0, 1),"
        " bias=false) + average_pool(2, stride=1) + activation('tanh') + flatten() + dense(5, activation='relu')"
    ),
    "windows that are padded unevenly": net(
        "conv2d(3, (2, 4), padding='same') + max_pool(2, stride=1, padding='same') + average_pool(2, stride=1,"
        " padding='same') + flatten()"
    ),
    "groups, dilation and separate channels": net(
        "conv2d(4, (3, 2), dilation=(2, 1), groups=2, padding='same', activation='tanh')"
        " + depthwise_conv2d(3, stride=2) + flatten()"
    ),
    "convolutions of sequences": [
        "data.shape=[3, 8]",
        f"network.architecture=input(3, 8) + conv1d(4, padding=1) + batch_norm(affine=false) + flatten(){TAIL}",
    ],
    "convolutions of volumes": [
        "data.shape=[2, 4, 5, 3]",
        f"network.architecture=input(2, 4, 5, 3) + conv3d(4, 2, bias=false) + global_average_pool(){TAIL}",
    ],
    "residual connections": net(
        "conv2d(4, padding='same', bias=false) + batch_norm(epsilon=0.01) + activation('relu')"
        " + residual(conv2d(4, padding='same') + batch_norm() + activation('relu') + conv2d(4, padding='same'))"
        " + residual(conv2d(6, stride=2, padding='same', activation='relu') + dropout(0.0)"
        " + residual(conv2d(6, 1)), projection=conv2d(6, 1, stride=2))"
        " + global_average_pool() + dense(7) + batch_norm() + residual(dense(7, activation='tanh'))"
    ),
    "sums between windows": net("conv2d(3) + dense(4, activation='softmax') + max_pool(2) + flatten()"),
    "pools of sequences": [
        "data.shape=[3, 8]",
        f"network.architecture=input(3, 8) + max_pool(2) + average_pool(2) + flatten(){TAIL}",
    ],
    **{
        f"transformer, {norm}-norm": [
            "data.teacher=chain",
            "data.shape=[6]",
            "data.classes=5",
            "network.architecture=input(6, dtype='int32') + embedding(5, 8) + learned_positions()"
            f" + 2 * transformer_encoder(2, hidden=12, norm='{norm}', activation='gelu'{rest}) + layer_norm()"
            " + output(5) + softmax_cross_entropy()",
        ]
        for norm, rest in (("pre", ", causal=true"), ("post", ", bias=false, epsilon=1e-3"))
    },
    **{
        f"{cell} over sequences": [
            "data.shape=[7, 4]",
            f"network.architecture=input(7, 4) + {cell}(5, sequence=true) + {cell}(3){TAIL}",
        ]
        for cell in ("simple_rnn", "gru", "lstm")
    },
    "recurrence inside of a residual connection": [
        "data.shape=[7, 4]",
        "network.architecture=input(7, 4) + residual(lstm(5, sequence=true) + gru(4, sequence=true) + dense(4))"
        f" + residual(gru(3) + dense(6), projection=simple_rnn(6)){TAIL}",
    ],
    "every activation": net(" + ".join(["flatten()", *(f"dense(7, activation='{name}')" for name in ACTIVATIONS)])),
}
PEERS = [torch_loop.Torch, jax_loop.Jax, jax_loop.JaxScan]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Compile in half the time, as nothing here depends on what XLA optimises, and leave JAX as it was."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.config.update("jax_enable_x64", False)


@cache
def sigma(*overrides: str) -> tuple[Workload, np.ndarray]:
    """Return the work and Sigma's first losses of it."""
    contestant = Sigma(load(CONFIGURATION, overrides))
    work = to_workload(contestant.trainer)
    contestant.run(20)
    return work, contestant.losses


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
@pytest.mark.parametrize("overrides", WORKS.values(), ids=WORKS)
def test_twenty_losses_equal_sigmas(overrides, peer):
    work, expected = sigma(*overrides)
    contestant = peer(work)
    contestant.run(-(-20 // contestant.unit) * contestant.unit)
    np.testing.assert_allclose(contestant.losses[:20], expected, rtol=1e-9)


@pytest.mark.skipif(not compiler(), reason="there is no C++ compiler")
@pytest.mark.filterwarnings("ignore")  # torch's own messages while compiling
def test_compiled_peer_losses_equal_sigmas():
    work, expected = sigma()
    contestant = torch_loop.TorchCompile(work)
    contestant.run(20)
    np.testing.assert_allclose(contestant.losses, expected, rtol=1e-9)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_dropout_draws_new_elements_in_every_iteration(peer):
    work, _ = sigma(*net("flatten() + dropout(0.5)"), "trainer.optimiser.learning_rate=0.0")
    contestant, still = peer(work), peer(work.without_dropout())
    for one in (contestant, still):
        one.run(5 * one.unit)
    means = [one.losses[: 5 * (len(one.losses) // 5)].reshape(-1, 5).mean(axis=1) for one in (contestant, still)]
    assert len(means[0]) == 1 or np.ptp(means[0]) > 1e-3
    assert not np.allclose(contestant.losses[:5], still.losses[:5])


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_they_compute_in_float32_for_float32(peer):
    contestant = peer(to_workload(Sigma(load(CONFIGURATION, ["run.precision=float32"])).trainer))
    contestant.run(contestant.unit)
    kinds = (
        {str(x.dtype) for x in contestant.carry[0].values()}
        if isinstance(contestant, jax_loop.Jax)
        else {str(x.dtype).removeprefix("torch.") for x in contestant.module.parameters()}
    )
    assert kinds == {"float32"}


def test_the_command_measures_peers_and_reports_the_comparison(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(command, "Entry", partial(Entry, least=0.001))
    path = tmp_path / "small.toml"
    path.write_text(CONFIGURATION.replace('"float64"', '"float32"').replace("flatten()", "flatten() + dropout(0.2)"))
    given = ["--peers", "torch,jax-scan,numpy-loop", "--rounds", "1", "--json"]
    assert main(["bench", str(path), *given]) == 0
    out, err = capsys.readouterr()
    assert [one["name"] for one in json.loads(out)["contestants"]] == ["numpy", "torch", "jax-scan", "numpy-loop"]
    assert "are Sigma's, in float64; of torch, jax-scan without dropout" in err
