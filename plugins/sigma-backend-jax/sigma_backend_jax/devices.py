"""The devices of JAX, with types of 64 bits, and its errors when they are out of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from sigma_kernel.errors import SigmaMemoryError


@contextmanager
def use_device(device: jax.Device) -> Iterator[None]:
    """Compute on a device; raises SigmaMemoryError if it is out of memory."""
    try:
        with jax.enable_x64(True), jax.default_device(device):
            yield
    except jax.errors.JaxRuntimeError as error:
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        raise SigmaMemoryError(
            f"backend 'jax': {device} has too little memory ({str(error).splitlines()[0].rstrip('.')}). Choose a "
            "smaller batch_size, fewer units, or another device."
        ) from error
