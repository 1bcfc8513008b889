"""Find a program by its job in memory or on disk; otherwise plan it, compile its units and keep their object code.

The key covers the job (the graph and how its inputs arrive), the source of this package, the version of LLVM and its
level of optimisation, and the processor.  A damaged file is compiled again; without a usable directory, every process
compiles its own programs.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import os
import threading
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sigma_backend_numba.cache import files, units
from sigma_backend_numba.cache.units import assemble, pack, unpack
from sigma_backend_numba.compiler import language
from sigma_backend_numba.compiler.machine_code import Burst, load_burst
from sigma_backend_numba.compiler.units import ProgramText
from sigma_backend_numba.emit.program_text import ROUGHLY, Needs
from sigma_backend_numba.lower.kernels import Compiled, Kernel
from sigma_kernel import graph

_loaded: dict[str, tuple[Needs, Burst]] = {}
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # LLVM and its lock must be at rest in a child, which has no other threads
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def load(
    job: str, make: Callable[[], tuple[Needs, str]], kernels: Mapping[str, Kernel] = MappingProxyType({})
) -> tuple[Needs, Burst]:
    """Return a program's requirements and its burst; each job is planned and compiled at most once per process.

    ``make`` returns the requirements and the text.  It is not called for a known program.  ``kernels`` are the external
    functions that the program calls, by symbol.
    """
    name = key(job)
    with _lock:
        if name not in _loaded:
            entry = files.read(f"{name}.o") or _compile_and_store(name, make, kernels)
            (needs, apart, _), codes = unpack(entry)
            _loaded[name] = needs, load_burst(codes, {symbol: kernels[symbol].address() for symbol in apart})
        return _loaded[name]


def fresh(make: Callable[[], tuple[Needs, str]]) -> tuple[Needs, Burst]:
    """Return a freshly compiled program without caching it."""
    needs, text = make()
    codes, _ = assemble(ProgramText(text, _names(text)), {}, keep=False)
    return needs, load_burst(codes)


def key(job: str) -> str:
    """Return the cache key of a program."""
    return "sigma_" + hashlib.sha256("\0".join([job, makers(), *units.describe_target()]).encode()).hexdigest()[:32]


@cache
def makers() -> str:
    """Return a program's dependencies besides its job: the source and data of this package, and LLVM's version.

    A test that patches these modules must patch this function too.
    """
    folders = (Path(__file__).parents[1], Path(graph.__file__).parent)
    sources = (path for folder in folders for kind in ("py", "json") for path in sorted(folder.rglob(f"*.{kind}")))
    return "\0".join([importlib.metadata.version("llvmlite"), *(path.read_text("utf-8") for path in sources)])


def _compile_and_store(name: str, make: Callable[[], tuple[Needs, str]], kernels: Mapping[str, Kernel]) -> bytes:
    """Return a program's requirements and the symbols of its external kernels, as a line, and its code; store them."""
    needs, text = make()
    scalars = {symbol: x.code for symbol, x in kernels.items() if isinstance(x, Compiled)}
    outside = {symbol: kernel.outside for symbol, kernel in kernels.items()}
    source = ProgramText(text, _names(text) | outside, units.key(ROUGHLY if text.startswith(ROUGHLY) else ""))
    codes, joined = assemble(source, scalars)
    entry = pack([needs, sorted(kernels.keys() - joined)], codes)
    files.write(f"{name}.o", entry)
    files.prune()
    return entry


def _names(text: str) -> dict[str, Any]:
    """Return the names that a program's text may use."""
    from sigma_backend_numba import runtime  # not needed if the code is cached

    names = {**vars(language), **vars(runtime), "inf": math.inf, "nan": math.nan}
    return names | runtime.ROUGH if text.startswith(ROUGHLY) else names
