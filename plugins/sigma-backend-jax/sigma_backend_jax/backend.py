"""The JAX backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from attrs import evolve, frozen

from sigma_backend_jax.devices import use_device
from sigma_backend_jax.namespace import JaxFunctions
from sigma_backend_jax.program import JaxProgram, check, to_traceable
from sigma_kernel.contracts import Array, Backend, Step
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Graph, rewrite


@frozen
class JaxBackend(Backend):
    """Compile whole training steps with JAX; ``backend = "jax"`` is all that changes.

    Args:
        device: Where to compute: a platform of JAX (``cpu``, ``gpu``, ``tpu``), with a number if there are several
            (``gpu:1``); the default device of JAX if empty. Raises SigmaConfigError if there is no such device.
    """

    device: str = ""

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if the device does not exist."""
        self._place()

    def _place(self) -> jax.Device:
        platform, _, number = self.device.partition(":")
        try:
            devices = jax.devices(platform or None)
            return devices[int(number or 0)]
        except (RuntimeError, ValueError, IndexError) as error:
            names = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
            raise SigmaConfigError(
                f"backend 'jax': there is no device {self.device!r}. Use one of: {names}. For others, install the JAX "
                "of that platform: https://docs.jax.dev/en/latest/installation.html"
            ) from error

    @property
    def runtime(self) -> Mapping[str, str]:
        """Return the version of JAX, and the device."""
        return {"JAX": jax.__version__, "device": self._place().device_kind}

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Array]]:
        """Compile a graph to a function; XLA decides which of its arrays share storage."""
        place = self._place()
        with jax.enable_x64(True):  # for constants
            compiled = jax.jit(to_traceable(rewrite(graph, keep=JaxFunctions())))

        def call(*arrays: Array) -> Sequence[Array]:
            with use_device(place):
                results, reaches = compiled(*arrays)
                check(reaches)
            return list(results)

        return call

    def compile(self, step: Step, in_place: bool = True) -> JaxProgram:
        """Return the program of a step; a burst is one call."""
        return JaxProgram(evolve(step, graph=rewrite(step.graph, keep=JaxFunctions())), self._place(), in_place)

    def to_device(self, host: Any) -> Array:
        """Return a copy on the device; an array of another library that is there already is copied there."""
        own = not hasattr(host, "__dlpack__") or isinstance(host, np.ndarray | np.generic | jax.Array)
        with use_device(place := self._place()):
            return jnp.array(host if own else jax.dlpack.from_dlpack(host), device=place)

    def share(self, host: np.ndarray) -> Array:
        """Return an array of the same memory if the device is the processor and JAX can read it there, else a copy."""
        with jax.enable_x64(True):
            return jax.device_put(host, self._place(), may_alias=True)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy on the host."""
        return np.array(array, order="C")
