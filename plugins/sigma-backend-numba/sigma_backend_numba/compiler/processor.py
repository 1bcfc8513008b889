"""The processor that programs are compiled for.

``$SIGMA_NUMBA_REGISTERS=256`` compiles for a processor of this kind without AVX-512.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from importlib import import_module
from typing import Any

from sigma_backend_numba.compiler.workers import run_apart

AMX, DOTS = "AMX", "dot products of AVX-512"  # forms of products of bfloat16
TILES, PAIRS = ("amx-tile", "amx-bf16", "avx512f", "avx512bw"), ("avx512bf16", "avx512f", "avx512bw")  # their features
AMD = "znver"  # what LLVM's names of such processors begin with
PERMISSION, REQUEST, TILE_DATA = 158, 0x1023, 18  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
WIDER = ("avx512", "avx10", "evex512", "amx")  # features of processors with registers of 512 bits


@cache
def llvm() -> Any:
    """Import the LLVM library, which has no type annotations, on first use."""
    return import_module("llvmlite.binding")


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def processor() -> tuple[str, str]:
    """Return the name of this processor and its features."""
    name, features = run_apart(
        lambda: (llvm().get_host_cpu_name(), llvm().get_host_cpu_features().flatten().split(","))
    )
    if os.environ.get("SIGMA_NUMBA_REGISTERS") == "256":
        features = [f"-{each[1:]}" if each[1:].startswith(WIDER) else each for each in features]
    if "+avx2" in features:  # LLVM would vectorise the outer one of two short loops, whose elements are strided
        features += ["+prefer-no-gather", "+prefer-no-scatter"]
    if "+avx512f" in features:
        features.append("-prefer-256-bit")  # LLVM would fill half a register on most of these processors
    return name, ",".join(features)


@cache
def registers() -> int:
    """Return the bits of a vector register."""
    features = processor()[1].split(",")
    return 512 if "+avx512f" in features else 256 if "+avx2" in features and "+fma" in features else 128


@cache
def mixed_form() -> str:
    """Return how this processor multiplies numbers of bfloat16 faster than those of float32, or "" if it does not.

    AMX multiplies tiles, if the system lets this process use their registers.  A dot product of AVX-512 is two
    products: AMD's processors compute as many in a cycle as products of float32, Intel's fewer, and so gain nothing.
    """
    name, features = processor()[0], processor()[1].split(",")
    if platform.system() == "Linux" and all(f"+{each}" in features for each in TILES) and _can_use_tiles():
        return AMX
    return DOTS if name.startswith(AMD) and all(f"+{each}" in features for each in PAIRS) else ""


def _can_use_tiles() -> bool:
    """Return whether the system lets this process use tile registers, which takes a request."""
    refused: int = ctypes.CDLL(None).syscall(PERMISSION, REQUEST, TILE_DATA)
    return not refused
