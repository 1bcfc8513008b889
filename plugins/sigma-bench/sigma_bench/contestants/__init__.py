"""Who takes part: Sigma on any backend, and peers, one file each.

A peer is made of a :class:`~sigma_bench.work.Work`.  A new one is a file here and a row of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sigma_kernel.errors import SigmaConfigError, near

PEERS = {"numpy-loop": "sigma_bench.contestants.numpy_loop:NumpyLoop"}


def peer(name: str) -> Callable[..., Any]:
    """Return what makes a peer of work, imported now; raises SigmaConfigError if there is none of that name."""
    if name not in PEERS:
        raise SigmaConfigError(f"peer {name!r}: there is none.{near(name, PEERS)} There are: {', '.join(PEERS)}.")
    module, _, attribute = PEERS[name].partition(":")
    made: Callable[..., Any] = getattr(import_module(module), attribute)
    return made
