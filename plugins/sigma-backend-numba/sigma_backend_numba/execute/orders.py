"""Draw orders of rows in one call of compiled code, without the interpreter's lock: other threads go on meanwhile."""

from __future__ import annotations

from array import array
from functools import cache
from itertools import accumulate

import numpy as np

from sigma_backend_numba.cache.lookup import load
from sigma_backend_numba.compiler.machine_code import Burst
from sigma_backend_numba.compiler.tile_sizes import ORDER_KINDS
from sigma_backend_numba.execute.alignment import empty
from sigma_kernel import graph
from sigma_kernel.graph import ORDER, philox

FEW = 2048  # rows below which NumPy, which draws orders of several epochs at once, takes no longer
TEXT = """\
def burst(table, n, t, T):
    tab = as_i8(table)
    words = as_u4(tab[6])
    bits(words, 0, (n + 1) // 2, tab[0], tab[1], tab[2], tab[3], tab[4])
    order(as_i4(tab[5]), words, as_i8(tab[7]), as_i8(tab[8]), as_i8(tab[9]), as_i8(tab[10]), n)
    return 0
"""


def permutation(seed: int, stream: int, epoch: int, rows: int) -> np.ndarray:
    """Return the order of :func:`sigma_kernel.graph.permutation`; int32, unless NumPy draws it."""
    if rows < FEW:
        return graph.permutation(seed, stream, epoch, rows)
    order, sizes = empty((rows,), "int32"), (rows + 1, rows + 1, rows, ORDER_KINDS, ORDER_KINDS)
    work = empty((sum(sizes),), "int64")
    starts = [work.ctypes.data + 8 * start for start in accumulate(sizes[:-1], initial=0)]
    starts[1] += 8  # the item before the first one ends searches
    table = array("q", [stream, epoch, ORDER, *philox.words(seed), order.ctypes.data, *starts])
    _program()(table.buffer_info()[0], rows, 0, 1)
    return order


@cache
def _program() -> Burst:
    return load(TEXT, lambda: ({}, TEXT))[1]
