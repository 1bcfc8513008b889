"""The array namespace of PyTorch, with its own functions in place of the array API's wrappers, which cost microseconds.

PyTorch has no arithmetic for uint32: such values are computed as int64, and cut to 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp
from attrs import frozen
from torch.nn import functional

from sigma_backend_torch import windows
from sigma_kernel import Lowerings
from sigma_kernel.contracts import Array
from sigma_kernel.graph import MEANINGS, Namespace, Node, check_indices, philox

NAMES = ("float32", "float64", "int32", "int64", "bool")
WORD = 0xFFFFFFFF
aten = torch.ops.aten


def _check(op: str, places: Array, side: int) -> None:
    check_indices(op, places.cpu().numpy(), side)


def _mod(ns: Namespace, x: Array, y: Array) -> Array:
    """Return the remainder, whose zeros have the sign of the divisor; that of an integer by 0 is 0."""
    if x.dtype.is_floating_point:
        rest = torch.remainder(x, y)
        return torch.where(rest == 0, torch.copysign(rest, y), rest)
    return torch.where(y == 0, 0, torch.remainder(x, torch.where(y == 0, 1, y)))


# -- without a detour by the array API's wrappers: they cost microseconds an op ----------------------------------------
def _without_namespace(run: Callable[..., Array]) -> Callable[..., Array]:
    return lambda ns, *operands: run(*operands)


SAME = "add sub mul div pow maximum minimum neg abs exp expm1 log log1p sqrt sin cos tanh logical_and logical_or"
DIRECT: dict[str, Callable[..., Any]] = {  # which take the operands and nothing else
    **{name: getattr(torch, name) for name in (*SAME.split(), "logical_not", "where", "matmul", "relu", "sigmoid")},
    "equal": torch.eq,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "is_finite": torch.isfinite,
    "torch:swap": torch.t,
    "torch:tanh_slope": aten.tanh_backward.default,
    "torch:logistic_slope": aten.sigmoid_backward.default,
}
PLAIN: dict[str, Callable[..., Any]] = {
    **{name: _without_namespace(run) for name, run in DIRECT.items()},
    "array": lambda ns, *, value, dtype: torch.tensor(value.array, dtype=ns.dtype(dtype)),  # a copy: it is read-only
    "reshape": lambda ns, x, *, shape: x.reshape(shape),
    "permute": lambda ns, x, *, axes: x.permute(*axes),
    "stretch": lambda ns, x, *, shape: x.expand(*shape),
    "concat": lambda ns, *operands, axis: torch.cat(operands, axis),
    "sum": lambda ns, x, *, axis: torch.sum(x, axis, keepdim=True, dtype=x.dtype) if axis else x,
    "max": lambda ns, x, *, axis: torch.amax(x, axis, keepdim=True) if axis else x,
    "softmax": lambda ns, x, *, axis: torch.softmax(x, axis),
    "log_softmax": lambda ns, x, *, axis: torch.log_softmax(x, axis),
}


# -- orders and running sums -------------------------------------------------------------------------------------------
def _cumsum(ns: Namespace, x: Array, *, axis: int, reverse: bool) -> Array:
    """Add in the order of the entries on a processor; elsewhere in pairs, whose order is the same each time."""
    given = x.flip(axis) if reverse else x
    if x.device.type == "cpu":
        total = torch.cumsum(given, axis, dtype=x.dtype)
    else:
        total, side, step = given, x.shape[axis], 1
        while step < side:
            later = total.narrow(axis, step, side - step) + total.narrow(axis, 0, side - step)
            total, step = torch.cat((total.narrow(axis, 0, step), later), axis), 2 * step
    return total.flip(axis) if reverse else total


def _argsort(ns: Namespace, x: Array, *, axis: int, descending: bool) -> Array:
    return torch.sort(x, stable=True, dim=axis, descending=descending)[1].to(torch.int32)


# -- linear algebra, without errors: where there is no result, it is NaN -----------------------------------------------
def _solve(a: Array, b: Array) -> Array:
    result, failed = torch.linalg.solve_ex(a, b)
    return torch.where(failed[..., None, None] == 0, result, torch.nan)


def _cholesky(x: Array) -> Array:
    result, failed = torch.linalg.cholesky_ex(x)
    return torch.where(failed[..., None, None] == 0, result, torch.nan)


# -- patterns: see :mod:`sigma_backend_torch.fusing` -------------------------------------------------------------------
def _addmm(ns: Namespace, other: Array, x: Array, w: Array) -> Array:
    """Return a product of matrices, or of a batch of matrices and one, plus biases."""
    if x.ndim == 2:
        return torch.addmm(other, x, w)
    return torch.addmm(other, x.reshape(-1, x.shape[-1]), w).view(*x.shape[:-1], w.shape[-1])


def _mask_values(ns: Namespace, condition: Array, x: Array) -> Array:
    """Return values where a condition holds, else 0: a comparison with a threshold is computed in vectors."""
    return aten.threshold_backward(x, condition.to(x.dtype), 0.5)


def _attend(ns: Namespace, q: Array, k: Array, v: Array, *, causal: bool) -> tuple[Array, Array]:
    """Return attention, and the logarithms of the sums of its exponentials, which only a processor's has."""
    if q.device.type != "cpu":
        result = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return result, result
    run = aten._scaled_dot_product_flash_attention_for_cpu.default
    return run(_rows(q), _rows(k), _rows(v), 0.0, causal)  # type: ignore[no-any-return]


def _attend_back(
    ns: Namespace, g: Array, q: Array, k: Array, v: Array, result: Array, sums: Array, *, causal: bool
) -> tuple[Array, ...]:
    """Return the gradients of queries, keys and values; other devices than a processor attend again."""
    if q.device.type == "cpu":
        run = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        return run(g, _rows(q), _rows(k), _rows(v), result, sums, 0.0, causal)  # type: ignore[no-any-return]
    with torch.enable_grad():
        own = [x.detach().requires_grad_() for x in (q, k, v)]
        output = functional.scaled_dot_product_attention(own[0], own[1], own[2], is_causal=causal)
    slopes: tuple[Array, ...] = torch.autograd.grad(output, own, g)
    return slopes


def _rows(x: Array) -> Array:
    """Return an array with contiguous rows, as the fused call requires."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _norm(ns: Namespace, x: Array, *, side: int, epsilon: float) -> tuple[Array, ...]:
    """Return rows with mean 0 and variance 1, the means, and the reciprocals of the deviations."""
    return torch.native_layer_norm(x, [side], None, None, epsilon)  # type: ignore[no-any-return]


def _norm_back(ns: Namespace, g: Array, x: Array, mean: Array, scale: Array, *, side: int) -> Array:
    return aten.native_layer_norm_backward(g, x, [side], mean, scale, None, None, [True, False, False])[0]


FUSED: dict[str, Callable[..., Any]] = {
    "torch:attend": _attend,
    "torch:attend_back": _attend_back,
    "torch:norm": _norm,
    "torch:norm_back": _norm_back,
    "torch:addcdiv": lambda ns, x, y, z, *, value: torch.addcdiv(x, y, z, value=value),
    "torch:addcmul": lambda ns, x, y, z, *, value: torch.addcmul(x, y, z, value=value),
    "torch:addmm": _addmm,
    "torch:kept": _mask_values,
    "torch:part": lambda ns, parts, *, index: parts[index],
    "torch:rectified": lambda ns, g, z: aten.threshold_backward(g, z, 0),
    "torch:total": lambda ns, x, *, axis: torch.sum(x, axis),
}


# -- scans and random bits ---------------------------------------------------------------------------------------------
def _scan(
    ns: Namespace, *operands: Array, run: Callable[..., tuple[Array, ...]], wanted: Mapping[int, Node],
    carries: int, sequences: int, length: int, reverse: bool,
) -> dict[int, Array]:  # fmt: skip
    """Return the wanted parts of a scan; see :func:`sigma_kernel.graph.meaning.scan`."""
    if not length:
        how = {"run": run, "wanted": wanted, "carries": carries, "sequences": sequences}
        arrays: dict[int, Array] = MEANINGS["scan"](ns, *operands, **how, length=length, reverse=reverse)
        return arrays
    carry, constants = operands[:carries], operands[carries + sequences :]
    rows = [*zip(*(x.unbind() for x in operands[carries : carries + sequences]), strict=True)] or [()] * length
    stacks: dict[int, list[Array]] = {index: [] for index in wanted if index >= carries}
    for row in reversed(rows) if reverse else rows:
        results = run(*carry, *row, *constants)
        for index, stack in stacks.items():
            stack.append(results[index] if index < len(results) else carry[index - len(results)])
        carry = results[:carries]
    return {index: _stack_rows(stacks[index], reverse) if index in stacks else carry[index] for index in wanted}


def _stack_rows(rows: list[Array], reverse: bool) -> Array:
    return torch.stack(rows[::-1] if reverse else rows)


def _random_bits(
    ns: Namespace, key: Array, iteration: Array, row: Array, scan: Array, *, shape: Sequence[int], stream: int
) -> Array:
    """Return Philox's bits in int64, where one product has both words of two; see :mod:`sigma_kernel.graph.philox`."""
    size, width = prod(shape), prod(shape[1:])
    if width % 4 or not size:
        return philox.random_bits(ns, key, iteration, row, scan, shape=shape, stream=stream)
    even, high, first, second = torch.empty((4, 2, size // 4), dtype=torch.int64, device=key.device)
    even[0] = torch.arange(size // 4, device=key.device).add_(row * (width // 4)).bitwise_and_(WORD)
    even[1] = iteration
    odd = (torch.full_like(even[0], stream), scan.expand(size // 4))  # of odd words, only the lower 32 bits count
    factors = _pair(*philox.MULTIPLIERS, key.device).unsqueeze(1)
    rounds = torch.arange(philox.ROUNDS, device=key.device).unsqueeze(1)
    keys = (rounds * _pair(*philox.WEYL, key.device)).add_(key).bitwise_and_(WORD).unsqueeze(2)
    for word in keys.unbind():
        torch.mul(even, factors, out=first)  # both words of a product: 64 bits, of which the sign is one
        torch.bitwise_right_shift(first, 32, out=high)
        torch.bitwise_xor(high[1], odd[0], out=even[0])
        torch.bitwise_xor(high[0], odd[1], out=even[1])
        even.bitwise_xor_(word).bitwise_and_(WORD)
        odd, first, second = (first[1], first[0]), second, first
    return torch.stack([even[0], odd[0] & WORD, even[1], odd[1] & WORD], -1).view(tuple(shape))


def _pair(first: int, second: int, device: torch.device) -> Array:
    """Return two numbers, without a copy from the host, which a CUDA graph cannot record."""
    return torch.arange(2, device=device).mul_(second - first).add_(first)


OWN: dict[str, Callable[..., Any]] = {
    **PLAIN,
    **FUSED,
    **windows.OWN,
    "argsort": _argsort,
    "cholesky": partial(MEANINGS["cholesky"], by=_cholesky),
    "cumsum": _cumsum,
    "solve": partial(MEANINGS["solve"], by=_solve),
    "mod": _mod,
    "random_bits": _random_bits,
    "scan": _scan,
}


LOWERINGS = Lowerings("torch")


@frozen
class TorchFunctions:
    """The composites that are not expanded: PyTorch, or a plugin, has functions for them."""

    further: Sequence[str] = ()

    def __contains__(self, op: object) -> bool:
        return op in OWN or op in self.further or op in LOWERINGS


class TorchNamespace(Namespace):
    """PyTorch's namespace; it makes arrays on the default device."""

    def array(self, value: Any, dtype: str) -> Array:
        """Return a number or a nested list as an array; a number is not copied from the host."""
        if np.ndim(value):
            return super().array(value, dtype)
        return torch.full((), np.asarray(value).item(), dtype=self.dtype(dtype))


def namespace() -> Namespace:
    """Return PyTorch's namespace."""
    return TorchNamespace(
        "torch",
        xp,
        {name: getattr(torch, name) for name in NAMES} | {"uint32": torch.int64},
        torch.int64,
        word=lambda x: x & WORD,
        erf=lambda xp, x: torch.erf(x),
        scatter_add=lambda xp, x, places, updates: x.index_add(0, places, updates),
        narrow=lambda ns, x, dtype: x.to(getattr(torch, dtype)).to(x.dtype),
        inside=_check,
        own=OWN,
        kernels=LOWERINGS,
    )
