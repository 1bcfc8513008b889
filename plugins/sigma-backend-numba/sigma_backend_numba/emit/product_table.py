"""How a matrix product is computed: tiles in registers, tiles over packed panels, or BLAS."""

from __future__ import annotations

from sigma_backend_numba.compiler.processor import registers

TILES, PANELS, BLAS = "tiles", "panels", "blas"
SMALL, TURNED, FEW = 600_000, 300_000, 60_000  # floating-point operations up to which nothing is packed


def way(rows: int, columns: int, inner: int, turned: bool) -> str:
    """Return the fastest way; ``turned``: the second operand is transposed."""
    if 2 * rows * columns * inner <= (SMALL if not turned else TURNED if rows >= 16 else FEW):
        return TILES
    if registers() == 512:
        return PANELS if rows >= 8 and columns >= 8 else BLAS
    return PANELS if registers() == 256 and rows >= (96 if turned else 24) and columns >= 64 else BLAS
