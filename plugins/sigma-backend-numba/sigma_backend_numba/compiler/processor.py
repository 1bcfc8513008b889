"""The processor that programs are compiled for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


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
