"""Arrays of PyTorch and JAX as data, as parameters and as results: the same bits, and no copy where none is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from sigma_data import Arrays, Stream
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaDataError
from sigma_run.config.stored import open_stored

DRAW = np.random.default_rng(8)
X = DRAW.normal(size=(40, 3)).astype(np.float32)
Y = X.argmax(axis=1).astype(np.int32)
SHORT = X.view(np.uint32) & 0xFFFF0000  # the bits of the numbers that bfloat16 has
SHORT = SHORT.view(np.float32)


def made(data: Any, backend: str = "numpy", **settings: Any) -> Any:
    network = "input(3) + dense(4, activation='tanh') + output(3) + softmax_cross_entropy()"
    chosen = {"network": network, "optimiser": "adam", **settings}
    return Environment("arrays", seed=1).create_trainer(data=data, backend=backend, **chosen)


def trained(data: Any, **settings: Any) -> Any:
    trainer = made(data, **settings)
    trainer.fit(epochs=2)
    return trainer


class OnlyDlpack:
    def __init__(self, values: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = values.__dlpack__, values.__dlpack_device__


GIVEN = {
    "torch": lambda x: torch.from_numpy(x.copy()),
    "torch with a gradient": lambda x: torch.from_numpy(x.copy()).requires_grad_(),
    "a parameter of torch": lambda x: torch.nn.Parameter(torch.from_numpy(x.copy())),
    "transposed in torch": lambda x: torch.from_numpy(x.T.copy()).T,
    "a list of tensors": lambda x: [*torch.from_numpy(x.copy()).requires_grad_()],
    "torch.float64": lambda x: torch.from_numpy(x.astype(float)),
    "jax": jnp.array,
    "a list of jax arrays": lambda x: [*jnp.array(x)],
    "only DLPack, of torch": lambda x: OnlyDlpack(torch.from_numpy(x.copy())),
    "only DLPack, of jax": lambda x: OnlyDlpack(jnp.array(x)),
}


@pytest.mark.parametrize("name", GIVEN)
def test_arrays_of_every_library_train_and_predict_to_the_same_bits(name: str) -> None:
    x = GIVEN[name](X)
    for y in (torch.from_numpy(Y.copy()), jnp.array(Y), torch.from_numpy(Y.astype(np.uint8)), [*torch.from_numpy(Y)]):
        found, wanted = trained((x, y)), trained((X, Y))
        assert found.predict(x).tobytes() == wanted.predict(X).tobytes()
        assert found.evaluate("training") == wanted.evaluate("training")


@pytest.mark.parametrize("short", [lambda x: torch.from_numpy(x).bfloat16(), lambda x: jnp.array(x, jnp.bfloat16)])
def test_bfloat16_becomes_float32(short: Any) -> None:
    assert trained((short(SHORT), Y)).predict(short(SHORT)).tobytes() == trained((SHORT, Y)).predict(SHORT).tobytes()
    assert trained(Arrays(inputs=short(SHORT), targets=Y)).predict(SHORT[:1]).shape == (1, 3)


def test_samples_of_a_stream_may_be_tensors() -> None:
    samples = Stream([(x.requires_grad_(), y) for x, y in zip(torch.from_numpy(X.copy()), Y, strict=True)])
    assert trained(samples).predict(X).tobytes() == trained((X, Y)).predict(X).tobytes()


@pytest.mark.parametrize(("values", "message"), [
    (torch.from_numpy(X).to("meta"), "NotImplementedError: Cannot copy out of meta tensor"),
    (torch.from_numpy(X).to_sparse(), r"can't convert Sparse layout tensor to numpy\. Use Tensor.to_dense"),
    (OnlyDlpack(torch.from_numpy(X).bfloat16()), r"Unsupported dtype in DLTensor\. Give a NumPy array"),
    ([torch.zeros(3), torch.zeros(2)], "samples have different shapes"),
])  # fmt: skip
def test_tensors_that_cannot_be_converted_are_refused(values: Any, message: str) -> None:
    with pytest.raises(SigmaDataError, match=f"section 'inputs'.*{message}"):
        trained((values, Y))
    with pytest.raises(SigmaDataError, match=message):
        trained((X, Y)).predict(values)


class OnAnotherDevice(torch.Tensor):
    """A tensor that NumPy cannot read before it is copied to the host, as one of CUDA."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    def cpu(self, *_: Any, **__: Any) -> torch.Tensor:
        return torch.Tensor(self.tolist())

    def detach(self) -> Any:
        return self


def test_a_tensor_on_another_device_is_copied_to_the_host() -> None:
    x = torch.from_numpy(X.copy()).as_subclass(OnAnotherDevice)
    assert trained((x, Y)).predict(x).tobytes() == trained((X, Y)).predict(X).tobytes()


# -- memory ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["torch", "torch with a gradient", "jax", "only DLPack, of torch"])
def test_data_of_the_right_type_are_not_copied(name: str) -> None:
    x = GIVEN[name](X)
    feed = made((x, Y)).session.setup.feed
    own = np.from_dlpack(x.detach() if isinstance(x, torch.Tensor) else x)
    assert np.shares_memory(feed.dataset.block(0)["inputs"], own)
    assert np.shares_memory(feed.prepare(feed.dataset.block(0))["inputs"], own)


BACKENDS = ("numpy", "numba", "torch", "jax")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_block_that_stays_is_read_where_it_is(backend: str) -> None:
    tensor = torch.from_numpy(X.copy()).clone()  # PyTorch aligns what it allocates
    session = made((tensor, Y), backend=backend).session
    block = session.loop.batches(1).block["inputs"]
    assert np.shares_memory(np.from_dlpack(block), tensor.numpy())
    several = made([(tensor[:20], Y[:20]), (tensor[20:], Y[20:])], backend=backend).session
    assert not np.shares_memory(np.from_dlpack(several.loop.batches(1).block["inputs"]), tensor.numpy())
    before = tensor.clone()
    found = trained((tensor, Y), backend=backend)
    assert found.predict(tensor).tobytes() == trained((X, Y), backend=backend).predict(X).tobytes()
    assert torch.equal(tensor, before)


# -- parameters --------------------------------------------------------------------------------------------------------
WEIGHTS = "network.layers.1-dense.weights"
KINDS = {"numpy": np.ndarray, "numba": np.ndarray, "torch": torch.Tensor, "jax": jax.Array}


@pytest.mark.parametrize("backend", BACKENDS)
def test_parameters_are_copies_of_the_backends_kind_that_other_libraries_read_without_a_copy(backend: str) -> None:
    trainer = trained((X, Y), backend=backend)
    found = trainer.parameters()
    assert [*found] == [f"network.layers.{one}" for one in (
        "1-dense.biases", "1-dense.weights", "2-output.biases", "2-output.weights"
    )]  # fmt: skip
    weights = found[WEIGHTS]
    assert isinstance(weights, KINDS[backend])
    before = np.array(trainer.registry.get(WEIGHTS))
    assert np.array_equal(np.from_dlpack(weights), before)
    tensor = torch.from_dlpack(weights)
    assert np.shares_memory(tensor.numpy(), np.from_dlpack(weights))
    if backend != "jax":  # whose arrays never change
        tensor.zero_()
        assert not np.from_dlpack(weights).any()
    assert np.array_equal(trainer.registry.get(WEIGHTS), before)
    trainer.fit(epochs=1)
    assert not np.array_equal(trainer.registry.get(WEIGHTS), before)
    assert np.array_equal(np.from_dlpack(found["network.layers.2-output.biases"]).shape, (3,))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [lambda x: torch.nn.Parameter(torch.from_numpy(x)), jnp.array, OnlyDlpack])
def test_parameters_are_set_from_arrays_of_every_library(backend: str, kind: Any) -> None:
    trainer, values = made((X, Y), backend=backend), DRAW.normal(size=(3, 4)).astype(np.float32)
    trainer.prepare()
    trainer.registry.set(WEIGHTS, kind(values))
    assert np.array_equal(trainer.registry.get(WEIGHTS), values)
    with pytest.raises(SigmaAddressError, match=r"holds float32 of shape \(3, 4\)"):
        trainer.registry.set(WEIGHTS, torch.zeros(4, 3))
    with pytest.raises(SigmaAddressError, match=r"holds float32 of shape \(3, 4\)"):
        trainer.registry.set(WEIGHTS, torch.zeros(3, 4).to("meta"))


def test_parameters_that_a_tensor_has_set_are_replayed(tmp_path: Path) -> None:
    sigma = Environment("set", seed=1, folder=tmp_path)
    trainer = sigma.create_trainer(
        data=(X, Y), network="input(3) + output(3) + softmax_cross_entropy()", optimiser="adam", backend="numpy"
    )
    trainer.fit(epochs=1)
    sigma.set("trainer.network.layers.1-output.weights", torch.ones(3, 3, requires_grad=True))
    sigma.set("trainer.optimiser.learning_rate", torch.tensor(0.25))
    assert sigma.get("trainer.optimiser.learning_rate") == 0.25
    trainer.fit(epochs=1)
    sigma.close()
    assert sigma.run_folder is not None
    _, again = open_stored(sigma.run_folder)
    _, differences = again.replay(sigma.run_folder)
    assert differences == {}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [torch.from_numpy, jnp.array, OnlyDlpack, lambda x: torch.from_numpy(x.T.copy()).T])
def test_a_backend_copies_arrays_of_every_library_to_its_device(backend: str, kind: Any) -> None:
    place: Any = made((X, Y), backend=backend).session.setup.programs.backend
    x = X.copy()
    given = kind(x)
    found = place.to_device(given)
    assert isinstance(found, KINDS[backend])
    assert np.array_equal(place.to_host(found), X)
    assert not np.shares_memory(np.from_dlpack(found), np.from_dlpack(given))


def test_predictions_are_tensors_without_a_copy() -> None:
    found = trained((X, Y)).predict(X)
    tensor = torch.from_dlpack(found)
    tensor[0] = 7.0
    assert (found[0] == 7.0).all()
    assert np.array_equal(jax.dlpack.from_dlpack(found), found)
