"""Arrays of PyTorch and JAX as data, as parameters and as results: the same bits, and no copy where none is needed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from sigma_data import Arrays, Stream
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaDataError

DRAW = np.random.default_rng(8)
X = DRAW.normal(size=(40, 3)).astype(np.float32)
Y = X.argmax(axis=1).astype(np.int32)
SHORT = X.view(np.uint32) & 0xFFFF0000  # the bits of the numbers that bfloat16 has
SHORT = SHORT.view(np.float32)


def made(data: Any, backend: str = "numpy", **settings: Any) -> Any:
    network = "input(3) + dense(4, activation='tanh') + output(3) + softmax_cross_entropy()"
    return Environment("arrays", seed=1).create_trainer(
        data=data, network=network, optimiser="adam", backend=backend, **settings
    )


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


def test_predictions_are_tensors_without_a_copy() -> None:
    found = trained((X, Y)).predict(X)
    tensor = torch.from_dlpack(found)
    tensor[0] = 7.0
    assert (found[0] == 7.0).all()
    assert np.array_equal(jax.dlpack.from_dlpack(found), found)
