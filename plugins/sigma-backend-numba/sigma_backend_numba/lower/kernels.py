"""Turn ops of plugins into calls of external functions: their kernels, or their meanings in Python.

An op that this backend does not have becomes one of three ops, which name a function by its symbol:

``call``: the kernel of an elementwise op, from one number for each operand to a number.
``rows``: the kernel of any other op.  It fills one row of the result, given the same row of each operand.
``python``: the meaning of an op that has no kernel, or whose kernel does not accept these operands.

A symbol holds a digest of all that the function depends on, so that another kernel means another program.  A kernel
compiled by Numba is linked into the program, unless it calls something that exists in its own process only.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import logging
import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from attrs import define, evolve

from sigma_backend_numba.compiler.language import Outside
from sigma_backend_numba.lower.fingerprint import identity
from sigma_backend_numba.scalars import SHORT
from sigma_kernel import Lowerings
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import (
    ELEMENTWISE,
    MEANINGS,
    OPS,
    Graph,
    Node,
    frozen_attrs,
    limit_blas,
    meaning_of,
    numpy_namespace,
    symbol,
)

LOWERINGS = Lowerings("numba")
LONGEST = 400  # characters of Numba's error message that are quoted
PYTHON_FAILED = 3  # the fault of a meaning that raised
BY_LIBRARY = {"argsort", "solve", "cholesky", "svd", "rfft", "irfft"}  # ops that NumPy computes at full speed
_ATTRIBUTES = re.compile(r"(?m)^attributes #\d++ = \{[^\n]*+")  # of functions; with them, Numba prevents inlining
_log = logging.getLogger("sigma.numba")
_warned: set[str] = set()  # ops, in this process
_raised: dict[int, BaseException] = {}  # exceptions of meanings, by the address of the burst's fault


@define(eq=False, slots=False)
class Compiled:
    """A plugin's kernel for given dtypes; Numba compiles it on first use."""

    op: str
    outside: Outside
    kernel: Any
    attrs: Mapping[str, Any]
    dtypes: tuple[str, ...]
    rows: bool

    def code(self) -> tuple[str, str]:
        """Return the kernel as LLVM text, and its name there."""
        return _ATTRIBUTES.sub(
            lambda line: line[0].replace("noinline", "nounwind"), self._function.inspect_llvm()
        ), self._function.native_name

    def address(self) -> int:
        """Return the address of the kernel in this process."""
        address: int = self._function.address
        return address

    @cached_property
    def _function(self) -> Any:
        numba = import_module("numba")
        kernel = self.kernel if hasattr(self.kernel, "py_func") else numba.njit(error_model="numpy")(self.kernel)
        names = {"kernel": kernel, "carray": numba.carray, "inf": math.inf, "nan": math.nan}
        exec(self._text(), names)  # our own text: a call of the kernel with its attributes
        try:
            return numba.cfunc(self._signature(numba.types), error_model="numpy")(names["called"])
        except numba.core.errors.NumbaError as error:
            reason = " ".join(str(error).split())[:LONGEST]
            raise SigmaGraphError(
                f"{self.op}: Numba cannot compile its kernel for {self.dtypes[-1]} ({reason}). See the README of the "
                "backend for a kernel's arguments."
            ) from error

    def _signature(self, types: Any) -> Any:
        kinds = [getattr(types, "boolean" if dtype == "bool" else dtype) for dtype in self.dtypes]
        if self.rows:
            return types.int64(*(x for kind in kinds for x in (types.CPointer(kind), types.int64)))
        return kinds[-1](*kinds[:-1])

    def _text(self) -> str:
        names = [f"x{k}" for k in range(len(self.dtypes) - (not self.rows))]
        settings = [f"{name}={value!r}" for name, value in self.attrs.items()]
        if not self.rows:
            return f"def called({', '.join(names)}):\n    return kernel({', '.join([*names, *settings])})\n"
        given = ", ".join([*(f"carray({x}, n{x})" for x in names), *settings])
        return f"def called({', '.join(f'{x}, n{x}' for x in names)}):\n    kernel({given})\n    return 0\n"


@define(eq=False, slots=False)
class Meant:
    """An op computed by its meaning, in Python, while the program waits."""

    outside: Outside
    node: Node

    def address(self) -> int:
        """Return the address of a function that calls Python."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    @cached_property
    def _callback(self) -> Any:
        node, run = self.node, meaning_of(self.node, numpy_namespace())

        def call(fault: int, *addresses: int) -> None:
            *given, out = (_array(at, x) for at, x in zip(addresses, (*node.inputs, node), strict=True))
            if fault not in _raised:
                try:
                    with limit_blas(), np.errstate(all="ignore"):
                        out[...] = _fitting(node, run(*given))
                except BaseException as error:  # no exception may pass through compiled code: raised after the burst
                    _raised[fault] = error
                    ctypes.c_int64.from_address(fault).value = PYTHON_FAILED

        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (len(node.inputs) + 2))(call)


Kernel = Compiled | Meant
_kernels: dict[str, Kernel] = {}  # by symbol; kept as long as programs may call them


def _array(address: int, node: Node) -> np.ndarray:
    """Return the array at an address."""
    dtype = np.dtype(node.dtype)
    memory = (ctypes.c_char * (math.prod(node.shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(node.shape, dtype, memoryview(memory))


def _fitting(node: Node, found: Any) -> np.ndarray:
    result = np.asarray(found)
    if (result.shape, result.dtype) != (node.shape, np.dtype(node.dtype)):
        raise SigmaGraphError(
            f"{node.op}: its meaning returned {result.dtype}{list(result.shape)} instead of {node.spec}. Correct the "
            "meaning, or the op's row in the table."
        )
    return result


def take_error(fault: int) -> BaseException | None:
    """Remove and return the exception that a meaning raised during the burst with this fault address."""
    return _raised.pop(fault, None)


# -- from ops to kernels -----------------------------------------------------------------------------------------------
def to_call(node: Node) -> Node:
    """Return a node that calls a function, in place of an op that this backend does not have."""
    kernel = LOWERINGS.get(node.op)
    kind = _kind(node) if kernel is not None else "python"
    if kind == "python":
        _warn(node, kernel)
        # not the whole graph, which may be freed
        alone = evolve(node, inputs=tuple(symbol(x.shape, x.dtype) for x in node.inputs))
        entry: Kernel = Meant(_external_function(kind, node, identity(MEANINGS.get(node.op))), alone)
    else:
        inputs = tuple(x.dtype for x in node.inputs)
        version = importlib.metadata.version("numba")
        outside = _external_function(kind, node, identity(kernel), version)
        entry = Compiled(node.op, outside, kernel, node.attrs, (*inputs, node.dtype), kind == "rows")
    named = _kernels.setdefault(entry.outside.symbol, entry).outside.symbol
    return Node(kind, node.inputs, {"symbol": named}, node.shape, node.dtype)


def _kind(node: Node) -> str:
    """Return how a kernel takes the operands of a node, or an empty text if they are neither numbers nor rows."""
    numbers = all(x.dtype != "bool" for x in (*node.inputs, node))
    if not numbers or any(isinstance(x, Graph) for x in node.attrs.values()):
        return "python"
    if OPS[node.op].shape in ELEMENTWISE:
        return "call"
    fits = (len(x.shape) < 2 or x.shape[:-1] == node.shape[:-1] for x in node.inputs)
    return "rows" if node.shape and all(fits) else "python"


def _external_function(kind: str, node: Node, *parts: str) -> Outside:
    """Return an external function: its symbol, and the kinds of its arguments and result."""
    every = (*node.inputs, node)
    specs = [str(x.spec) if kind == "python" else x.dtype for x in every]
    text = "\0".join([kind, node.op, *parts, repr(frozen_attrs(node.attrs)), *specs])
    name = f"sigma_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    kinds = [SHORT[x.dtype] for x in every]
    if kind == "call":
        return Outside(name, kinds[-1], tuple(kinds[:-1]))
    if kind == "rows":
        return Outside(name, "i8", tuple(_pairs(kinds)))
    return Outside(name, "", ("i8",) * (len(every) + 1))


def _pairs(kinds: list[str]) -> Iterator[str]:
    for kind in kinds:
        yield from (f"*{kind}", "i8")


def _warn(node: Node, kernel: Any) -> None:
    """Log once per op that it is computed in Python, and the remedy; raise if it has no meaning either."""
    short = node.op.rpartition(":")[2]
    row = OPS.get(node.op)
    if node.op not in MEANINGS and (row is None or row.expansion is None):
        raise SigmaGraphError(
            f"{node.op}: the numba backend has no code for this op. Give it a meaning, an expansion or a lowering "
            f"'{short}.numba'."
        )
    if node.op not in _warned | BY_LIBRARY:
        _warned.add(node.op)
        why = f"it has no expansion, and no lowering '{short}.numba'" if ":" in node.op else "it has no row in SCALARS"
        if kernel is not None:
            why = "its kernel takes numbers or rows, and these operands are neither"
        _log.warning("numba: %s runs in Python, which is slow: %s.", node.op, why)


def used(graph: Graph) -> dict[str, Kernel]:
    """Return the kernels that a graph calls, by symbol."""
    kernels: dict[str, Kernel] = {}
    for node in graph:
        if "symbol" in node.attrs:
            kernels[node.attrs["symbol"]] = _kernels[node.attrs["symbol"]]
        for inner in node.attrs.values():
            kernels |= used(inner) if isinstance(inner, Graph) else {}
    return kernels
