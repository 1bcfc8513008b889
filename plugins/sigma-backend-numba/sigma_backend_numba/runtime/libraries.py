"""What numba, llvmlite and OpenBLAS lend, without types: theirs differ from release to release, or are not there."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

njit: Callable[..., Any] = import_module("numba").njit
types: Any = import_module("numba").types
intrinsic: Callable[[Any], Any] = import_module("numba.extending").intrinsic
Compiler: Any = import_module("numba.core.compiler").Compiler
cgutils: Any = import_module("numba.core.cgutils")
ir: Any = import_module("llvmlite.ir")
llvm: Any = import_module("llvmlite.binding")
openblas: Any = import_module("scipy_openblas32")
