"""Matrix products through the C interface of BLAS."""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import LanguageWord, driver

BY_ROWS, AS_IT_IS, TURNED = 101, 111, 112
sigma_sgemm, sigma_dgemm = LanguageWord("sigma_sgemm"), LanguageWord("sigma_dgemm")


@driver
def sgemm(
    ta: Any, tb: Any, m: Any, n: Any, k: Any, alpha: Any, a: Any, lda: Any, b: Any, ldb: Any, beta: Any, c: Any,
    ldc: Any,
) -> None:  # fmt: skip
    """Write ``alpha * a @ b + beta * c`` to ``c``; ``ta`` and ``tb`` say which operands are transposed."""
    if m > 0 and n > 0:
        first, second = TURNED if ta else AS_IT_IS, TURNED if tb else AS_IT_IS
        sigma_sgemm(BY_ROWS, first, second, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)


@driver
def dgemm(
    ta: Any, tb: Any, m: Any, n: Any, k: Any, alpha: Any, a: Any, lda: Any, b: Any, ldb: Any, beta: Any, c: Any,
    ldc: Any,
) -> None:  # fmt: skip
    """Compute the same in double precision."""
    if m > 0 and n > 0:
        first, second = TURNED if ta else AS_IT_IS, TURNED if tb else AS_IT_IS
        sigma_dgemm(BY_ROWS, first, second, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
