"""Functions that generated programs call, written in the language of programs and compiled into them."""

from sigma_backend_numba.runtime.arithmetic import (
    exponential,
    larger,
    logarithm,
    modulo,
    remainder,
    rough_exponential,
    rough_logarithm,
    rough_tangent,
    sign,
    smaller,
    tangent,
    to_bfloat16,
    to_float16,
)
from sigma_backend_numba.runtime.blas import dgemm, sgemm
from sigma_backend_numba.runtime.dot_product import dot_product
from sigma_backend_numba.runtime.indexing import check_index, span
from sigma_backend_numba.runtime.orders import order
from sigma_backend_numba.runtime.pairs import pair_neighbours, pair_rows
from sigma_backend_numba.runtime.random import bits, word
from sigma_backend_numba.runtime.threads import claim, finish, flush
from sigma_backend_numba.runtime.tile_product import tile_product
from sigma_backend_numba.runtime.tile_shifts import tile_shifts

ROUGH = {"exponential": rough_exponential, "logarithm": rough_logarithm, "tangent": rough_tangent}

__all__ = [
    "ROUGH", "bits", "check_index", "claim", "dgemm", "dot_product", "exponential", "finish", "flush", "larger",
    "logarithm", "modulo", "order", "pair_neighbours", "pair_rows", "remainder", "sgemm", "sign", "smaller", "span",
    "tangent", "tile_product", "tile_shifts", "to_bfloat16", "to_float16", "word",
]  # fmt: skip
