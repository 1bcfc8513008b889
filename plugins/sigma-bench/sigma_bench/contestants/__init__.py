"""Contestants: Sigma on any backend, and peers.

A peer is created from a :class:`~sigma_bench.work.Workload`.  To add one, write a class here and a row of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from shutil import which

from attrs import frozen

from sigma_kernel.errors import SigmaConfigError, SigmaPluginError, suggest_name


@frozen
class Peer:
    """Import path of a peer, the library it needs, and whether its dropout drops the same elements as Sigma's."""

    path: str
    library: str = "numpy"
    same_draws: bool = False


PEERS = {
    "numpy-loop": Peer("sigma_bench.contestants.numpy_loop:NumpyLoop", same_draws=True),
    "torch": Peer("sigma_bench.contestants.torch_loop:Torch", "torch"),
    "torch-compile": Peer("sigma_bench.contestants.torch_loop:TorchCompile", "torch"),
    "jax": Peer("sigma_bench.contestants.jax_loop:Jax", "jax"),
    "jax-scan": Peer("sigma_bench.contestants.jax_loop:JaxScan", "jax"),
}


def select_peers(names: Iterable[str], tell: Callable[[str], None]) -> Iterator[str]:
    """Yield the peers of these names; without a compiler, torch replaces torch-compile, with a message.

    Raises SigmaConfigError for an unknown name, and SigmaPluginError if a library is not installed.
    """
    for name in names:
        if name not in PEERS:
            raise SigmaConfigError(
                f"peer {name!r}: no such peer.{suggest_name(name, PEERS)} There are: {', '.join(PEERS)}."
            )
        require_library(f"peer {name!r}", PEERS[name].library)
        if name == "torch-compile" and not compiler():
            tell("peer 'torch-compile': there is no C++ compiler; using 'torch'. Install g++, or set CXX.")
            name = "torch"
        yield name


def require_library(where: str, library: str) -> None:
    """Raise SigmaPluginError, with the command to install it, if a library is missing."""
    if find_spec(library) is None:
        raise SigmaPluginError(f"{where}: {library} is not installed. Run: python -m pip install {library}")


def compiler() -> str | None:
    """Return the C++ compiler that torch.compile would call."""
    return next(filter(None, map(which, filter(None, (os.environ.get("CXX"), "g++", "clang++", "cl")))), None)
