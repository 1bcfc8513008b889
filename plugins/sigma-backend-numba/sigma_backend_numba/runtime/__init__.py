"""What generated programs are made of: pointers, arithmetic, random bits, matrix products, pieces for threads.

Everything here is compiled into the programs.  The text of this package is part of their key in the cache.
"""

from sigma_backend_numba.runtime.arithmetic import exponential, larger, sign, smaller, tangent
from sigma_backend_numba.runtime.blas import dgemm, sgemm
from sigma_backend_numba.runtime.memory import (
    address,
    as_b1,
    as_f4,
    as_f8,
    as_i4,
    as_i8,
    as_u4,
    at,
    copied,
    driver,
    f4,
    f8,
    i1,
    i4,
    i8,
    program,
    radd,
    sel,
    span,
    task,
    u4,
    within,
)
from sigma_backend_numba.runtime.random import bits, word
from sigma_backend_numba.runtime.threads import claim, finish, flush, restore

__all__ = [
    "address", "as_b1", "as_f4", "as_f8", "as_i4", "as_i8", "as_u4", "at", "bits", "claim", "copied", "dgemm",
    "driver", "exponential", "f4", "f8", "finish", "flush", "i1", "i4", "i8", "larger", "program", "radd",
    "restore", "sel", "sgemm", "sign", "smaller", "span", "tangent", "task", "u4", "within", "word",
]  # fmt: skip
