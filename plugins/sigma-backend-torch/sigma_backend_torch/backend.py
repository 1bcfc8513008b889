"""The PyTorch backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from attrs import frozen

from sigma_backend_torch.devices import brief, use_device
from sigma_backend_torch.namespace import namespace
from sigma_backend_torch.program import WORDS, TorchProgram, simplify
from sigma_backend_torch.source import function
from sigma_kernel.contracts import Array, Backend, Step
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Graph


@frozen
class TorchBackend(Backend):
    """Compute training steps with PyTorch; ``backend = "torch"`` is all that changes.

    The graph has its own gradient, so that PyTorch records nothing.

    Args:
        device: Where to compute: ``cpu``, ``cuda``, ``cuda:1``, ``mps``. Raises SigmaConfigError if PyTorch has no
            such device.
        compiled: Compile each step with ``torch.compile``, which needs a C++ compiler.
        graphs: On CUDA, record each step as a CUDA graph and replay it, unless it is compiled.
    """

    device: str = "cpu"
    compiled: bool = False
    graphs: bool = True

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if the device does not exist."""
        self._place()

    def _place(self) -> torch.device:
        try:
            torch.empty(0, device=self.device)
            return torch.device(self.device)
        except (RuntimeError, AssertionError) as error:
            raise SigmaConfigError(
                f"backend 'torch': there is no device {self.device!r} here ({brief(error)}). Use 'cpu', or install "
                "the PyTorch of that device: https://pytorch.org/get-started"
            ) from error

    @property
    def dtypes(self) -> frozenset[str]:  # type: ignore[override]
        """Return the dtypes of the device: Metal has no float64."""
        return Backend.dtypes - ({"float64"} if self._place().type == "mps" else set())

    @property
    def runtime(self) -> Mapping[str, str]:
        """Return the version of PyTorch, the device, and its threads on the processor: products depend on them."""
        place, version = self._place(), {"PyTorch": torch.__version__}
        if place.type == "cuda":
            return {**version, "device": torch.cuda.get_device_name(place)}
        return {**version, "device": place.type, "threads": str(torch.get_num_threads())}

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Array]]:
        """Return a function that computes a graph; results take no storage of inputs."""
        place, ns = self._place(), namespace()
        check(graph, place)
        with use_device(place), torch.no_grad():
            run = function(simplify(graph), ns, None if self.compiled else {})
        compute = torch.compile(run, dynamic=False) if self.compiled else run
        kinds = [ns.dtype(x.dtype) for x in graph.inputs]
        words = [x.dtype == "uint32" for x in graph.outputs]

        def call(*arrays: Any) -> Sequence[Array]:
            with use_device(place), torch.no_grad():
                given = [_to_input(x, kind, place) for x, kind in zip(arrays, kinds, strict=True)]
                taken = {x.untyped_storage().data_ptr() for x in given}
                return [_copy_if_shared(x, taken, word) for x, word in zip(compute(*given), words, strict=True)]

        return call

    def compile(self, step: Step, in_place: bool = True) -> TorchProgram:
        """Return the program of a step."""
        check(step.graph, place := self._place())
        return TorchProgram(step, place, in_place, self.compiled, self.graphs)

    def to_device(self, host: Any) -> Array:
        """Return a copy on the device; an array of another library that is there already is copied there."""
        with use_device(place := self._place()):
            if not hasattr(host, "__dlpack__") or isinstance(host, np.ndarray | np.generic):
                return torch.from_numpy(np.array(host, order="C")).to(place)
            given = host.detach() if isinstance(host, torch.Tensor) else torch.from_dlpack(host)
            return given.to(place, copy=True, memory_format=torch.contiguous_format)

    def share(self, host: np.ndarray) -> Array:
        """Return a tensor of the same memory if the device is the processor, else a copy."""
        shares = self._place().type == "cpu" and host.flags.c_contiguous
        return torch.from_dlpack(host) if shares else self.to_device(host)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy on the host."""
        return np.array(array.cpu().numpy(), order="C")

    def take(self, array: Array, rows: np.ndarray) -> Array:
        """Return rows of an array, on the device."""
        return array[torch.from_numpy(rows.astype(np.int64)).to(array.device)]


def check(graph: Graph, device: torch.device) -> None:
    """Raise SigmaConfigError if a device lacks a dtype of a graph."""
    if device.type == "mps" and any(x.dtype == "float64" for x in (*graph.inputs, *graph)):
        raise SigmaConfigError("backend 'torch': the device 'mps' has no float64. Use another precision, or device.")


def _to_input(x: Any, kind: torch.dtype, place: torch.device) -> Array:
    """Return an input, which may be a number, in the type that PyTorch computes with."""
    if isinstance(x, torch.Tensor):
        return x if x.dtype == kind else x.to(kind)
    return torch.as_tensor(x, dtype=kind, device=place)


def _copy_if_shared(x: Array, taken: set[int], word: bool) -> Array:
    """Return a result in its own storage, which other results do not share."""
    tensor = x.to(WORDS) if word else x
    whole = tensor.untyped_storage()
    if whole.data_ptr() in taken or whole.nbytes() != tensor.nbytes:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    taken.add(tensor.untyped_storage().data_ptr())
    return tensor
