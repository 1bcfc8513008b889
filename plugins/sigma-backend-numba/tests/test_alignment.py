"""Large arrays that are kept lie in huge pages, at any size and in any form."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.execute import alignment
from sigma_backend_numba.execute.alignment import HUGE, LARGE, allocate_huge
from sigma_kernel.graph import ALIGNMENT

PAGED = hasattr(mmap, "MADV_HUGEPAGE")


@pytest.mark.parametrize("size", [1, 63, LARGE - 1, LARGE, LARGE + 1, HUGE, 3 * HUGE + 5])
def test_memory_has_its_size_can_be_written_and_begins_with_a_line_or_a_huge_page(size: int) -> None:
    memory = allocate_huge(size)
    assert (memory.shape, memory.dtype) == ((size,), np.uint8)
    assert memory.ctypes.data % (HUGE if PAGED and size >= LARGE else ALIGNMENT) == 0
    memory[...] = 7
    assert (memory == 7).all()


@pytest.mark.skipif(not PAGED, reason="this system has no huge pages")
def test_a_kernel_without_huge_pages_gives_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Memory(mmap.mmap):
        def madvise(self, *how: int) -> None:
            asked.append(how)
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(alignment.mmap, "mmap", Memory)
    memory = allocate_huge(LARGE)
    memory[...] = 7
    assert asked == [(mmap.MADV_HUGEPAGE,)]
    assert memory.sum() == 7 * LARGE


@pytest.mark.parametrize("size", [1 << 60, (1 << 63) - HUGE - ALIGNMENT])
def test_more_than_there_is_raises_a_memory_error(size: int) -> None:
    with pytest.raises(MemoryError):
        allocate_huge(size)


@pytest.mark.parametrize(
    "made", [np.ones((600, 500)), np.ones((600, 1000)).T[::2], np.ones(600_000, bool), np.ones(())]
)
def test_a_backend_keeps_arrays_of_any_size_and_order(made: np.ndarray) -> None:
    held = NumbaBackend().to_device(made)
    np.testing.assert_array_equal(held, made)
    assert (held.dtype, held.flags.c_contiguous, held.flags.writeable) == (made.dtype, True, True)
    held[...] = 0
    assert made.all()
