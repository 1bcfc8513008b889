"""Readers, extractors and iterators pass the kernel's suites."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping

import numpy as np
import pytest

from sigma_data import (
    BytesReader,
    Column,
    Columns,
    CsvReader,
    Field,
    IdxReader,
    ImageReader,
    LinesReader,
    Minibatch,
    NpyReader,
    Offsets,
    Sequential,
    Shuffle,
)
from sigma_kernel import Extractor, Iterator, Reader
from sigma_testing import ExtractorSuite, IteratorSuite, ReaderSuite


class TestBytes(ReaderSuite):
    def make(self) -> Reader:
        return BytesReader(4, skip=2)

    def data(self) -> bytes:
        return b"XX" + bytes(range(12))


class TestCsv(ReaderSuite):
    def make(self) -> Reader:
        return CsvReader(text=("name",))

    def data(self) -> bytes:
        return b'a,b,name\n1,2.5,"x, y"\n-3,4e2,z\n5,6,"""q"""\n'


class TestIdx(ReaderSuite):
    def make(self) -> Reader:
        return IdxReader()

    def data(self) -> bytes:
        return struct.pack(">HBBII", 0, 8, 2, 3, 5) + bytes(range(15))


class TestImage(ReaderSuite):
    def make(self) -> Reader:
        return ImageReader()

    def data(self) -> bytes:
        images = pytest.importorskip("PIL.Image", reason="images need Pillow")
        file = io.BytesIO()
        images.fromarray(np.arange(60, dtype=np.uint8).reshape(6, 10)).save(file, "png")
        return file.getvalue()


class TestLines(ReaderSuite):
    def make(self) -> Reader:
        return LinesReader()

    def data(self) -> bytes:
        return "one\n\ntwo, déjà\r\nthree".encode()


class TestNpy(ReaderSuite):
    def make(self) -> Reader:
        return NpyReader()

    def data(self) -> bytes:
        file = io.BytesIO()
        np.save(file, np.arange(12, dtype=">i4").reshape(4, 3))
        return file.getvalue()


class TestColumns(ExtractorSuite):
    def make(self) -> Extractor:
        return Columns({"inputs": Column(("*",)), "targets": Column("kind", dtype="class")})

    def records(self) -> Mapping[str, np.ndarray]:
        kinds = np.array([0, 1, 2, 0, 1, 2])
        return {"a": np.arange(6.0), "b": np.arange(6.0) ** 2, "kind": kinds}


class TestOffsets(ExtractorSuite):
    def make(self) -> Extractor:
        return Offsets({"targets": Field(0), "inputs": Field(1, shape=(2, 2), scale=0.5)})

    def records(self) -> Mapping[str, np.ndarray]:
        return {"records": np.arange(30, dtype=np.uint8).reshape(6, 5)}


class TestMinibatch(IteratorSuite):
    def make(self) -> Iterator:
        return Minibatch()


class TestSequential(IteratorSuite):
    def make(self) -> Iterator:
        return Sequential()


class TestShuffle(IteratorSuite):
    def make(self) -> Iterator:
        return Shuffle()
