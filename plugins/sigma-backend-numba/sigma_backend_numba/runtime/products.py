"""Small matrix products: what a call of BLAS spends on packing its operands is a third of the time of these.

A tile of four rows and sixteen columns stays in registers while it is summed up.  The second operand lies as it is, the
first may lie transposed: ``down`` and ``along`` say by how much its rows and columns lie apart.
"""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.words import at, driver, f4, put, spread, wide


@driver
def tile(
    a: Any, down: Any, along: Any, b: Any, ldb: Any, k: Any, alpha: Any, beta: Any, c: Any, ldc: Any
) -> None:  # fmt: skip
    """Write four rows and sixteen columns of ``alpha * a @ b + beta * c``."""
    nothing = spread(f4(0.0))
    p, q, r, s = nothing, nothing, nothing, nothing
    for j in range(k):
        row = wide(at(b, j * ldb))
        p += spread(a[j * along]) * row
        q += spread(a[j * along + down]) * row
        r += spread(a[j * along + 2 * down]) * row
        s += spread(a[j * along + 3 * down]) * row
    by = spread(alpha)
    keep(c, p * by, beta)
    keep(at(c, ldc), q * by, beta)
    keep(at(c, 2 * ldc), r * by, beta)
    keep(at(c, 3 * ldc), s * by, beta)


@driver
def keep(c: Any, values: Any, beta: Any) -> None:
    """Write sixteen numbers, or add them to what is there."""
    if beta == 0.0:
        put(c, values)
    else:
        put(c, wide(c) + values)


@driver
def small(
    m: Any, n: Any, k: Any, alpha: Any, a: Any, down: Any, along: Any, b: Any, ldb: Any, beta: Any, c: Any, ldc: Any
) -> None:  # fmt: skip
    """Write ``c = alpha * a @ b + beta * c``; ``beta`` is 0 or 1, rows come in fours and columns in sixteens."""
    for i in range(0, m, 4):
        for j in range(0, n, 16):
            tile(at(a, i * down), down, along, at(b, j), ldb, k, alpha, beta, at(c, i * ldc + j), ldc)
