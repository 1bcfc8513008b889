"""The devices of PyTorch, and its errors when they are out of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from sigma_kernel.errors import SigmaMemoryError

FULL = ("can't allocate memory", "not enough memory", "out of memory")  # in the errors of the allocators


@contextmanager
def use_device(device: torch.device) -> Iterator[None]:
    """Let ops make arrays on a device; raises SigmaMemoryError if it is out of memory."""
    try:
        with nullcontext() if device.type == "cpu" else device:
            yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not any(words in str(error) for words in FULL):
            raise
        reason = brief(error).rpartition("Allocator: ")[2]
        raise SigmaMemoryError(
            f"backend 'torch': {str(device)!r} has too little memory ({reason}). Choose a smaller batch_size, fewer "
            "units, or another device."
        ) from error


def brief(error: Exception) -> str:
    """Return the first line of an error, without its full stop."""
    return str(error).strip().splitlines()[0].rstrip(".")
