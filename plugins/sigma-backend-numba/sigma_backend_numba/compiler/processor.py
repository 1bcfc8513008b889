"""The processor that programs are compiled for."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from importlib import import_module
from typing import Any

TILES = ("amx-tile", "amx-bf16", "avx512f", "avx512bw")
PERMISSION, REQUEST, TILE_DATA = 158, 0x1023, 18  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)


@cache
def llvm() -> Any:
    """Import the LLVM library, which has no type annotations, on first use."""
    return import_module("llvmlite.binding")


@cache
def processor() -> tuple[str, str]:
    """Return the name of this processor and its features."""
    return llvm().get_host_cpu_name(), llvm().get_host_cpu_features().flatten()


@cache
def registers() -> int:
    """Return the bits of a vector register."""
    features = processor()[1].split(",")
    return 512 if "+avx512f" in features else 256 if "+avx2" in features and "+fma" in features else 128


@cache
def has_tiles() -> bool:
    """Return whether this processor multiplies tiles of bfloat16 (AMX), and the system lets this process use them."""
    features = processor()[1].split(",")
    if platform.system() != "Linux" or not all(f"+{name}" in features for name in TILES):
        return False
    refused: int = ctypes.CDLL(None).syscall(PERMISSION, REQUEST, TILE_DATA)
    return not refused
