"""Products as calls of cuBLAS, which is column-major: the transpose of the result is a product of transposes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from attrs import frozen

from sigma_backend_cupy.graphs.views import StridedProduct
from sigma_kernel.graph import BYTES


@frozen
class Gemm:
    """The arguments of ``cublasGemmStridedBatchedEx``, and where the arrays begin, in bytes.

    The first matrix of the call is the second operand of the product.
    """

    transposed: tuple[bool, bool]
    sides: tuple[int, int, int]  # m, n, k
    distances: tuple[int, int, int]  # of columns: of both operands and of the result
    strides: tuple[int, int, int]  # of matrices in the batch
    count: int
    offsets: tuple[int, int, int]


def gemms(product: StridedProduct) -> Iterator[Gemm]:
    """Yield the calls that compute a product."""
    x, y = product.x.matrix, product.y.matrix
    assert x is not None
    assert y is not None
    rows, columns, length = product.shape[-2], product.shape[-1], product.x.shape[-1]
    (count, over_x, over_y, over), batches = product.batches()
    given, result = BYTES[product.narrow or product.dtype], BYTES[product.dtype]
    for at_x, at_y, at in batches if prod(product.shape) else ():
        yield Gemm(
            (y[0], x[0]), (columns, rows, length), (y[1], x[1], columns), (over_y, over_x, over), count,
            (at_y * given, at_x * given, at * result),
        )  # fmt: skip
