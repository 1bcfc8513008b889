"""Shared memory without a name: a descriptor that processes pass to each other, and that vanishes with the last one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from mmap import ACCESS_COPY, mmap
from tempfile import TemporaryFile

ALIGNMENT = 64  # bytes: of a cache line, and more than any dtype needs


def align(size: int, to: int = ALIGNMENT) -> int:
    """Return the size, rounded up to a multiple."""
    return -(-size // to) * to


def create_segment() -> int:
    """Return the descriptor of an empty segment: memory where the system offers that, or else a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("sigma", os.MFD_CLOEXEC)
    with TemporaryFile() as file:
        return os.dup(file.fileno())


def grow_segment(descriptor: int, size: int) -> None:
    """Let a segment have ``size`` bytes at least; raise OSError if there is no room for them.

    Several processes may do so at once. A page that were missing would end the process that touches it.
    """
    if os.fstat(descriptor).st_size < size:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)


def write_segment(buffers: Sequence[memoryview]) -> int:
    """Return the descriptor of a new segment that holds buffers of bytes, each aligned."""
    descriptor, offset = create_segment(), 0
    for buffer in buffers:
        start, offset = offset, align(offset + buffer.nbytes)
        written = 0
        while written < buffer.nbytes:
            written += os.pwrite(descriptor, buffer[written:], start + written)
    os.ftruncate(descriptor, max(offset, 1))
    return descriptor


def map_buffers(descriptor: int, sizes: Sequence[int]) -> list[memoryview]:
    """Return the buffers of a segment, by their sizes: writable, and copied page by page when they are written to."""
    memory, offset, buffers = memoryview(mmap(descriptor, 0, access=ACCESS_COPY)), 0, list[memoryview]()
    for size in sizes:
        buffers.append(memory[offset : offset + size])
        offset = align(offset + size)
    return buffers
