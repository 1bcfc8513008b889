"""Sources, datasets and preprocessors pass the kernel's suites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sigma_data
from sigma_data import Arrays, Compressed, File, Multi, Normalise, OneHot, Standardise, Stream, Subset
from sigma_kernel.contracts import Dataset, Preprocessor, Source
from sigma_testing import DatasetSuite, PreprocessorSuite, SourceSuite

SHIPPED = Path(sigma_data.__file__).parent / "files"


class TestFile(SourceSuite):
    def make(self) -> Source:
        return File(next(SHIPPED.glob("iris*")))

    def missing(self) -> Source:
        return File("no/such/file.csv")


class TestMulti(SourceSuite):
    def make(self) -> Source:
        return Multi([File("no/such/file.csv"), TestFile().make()])

    def missing(self) -> Source:
        return Multi([File("no/such/file.csv")])


class TestCompressed(SourceSuite):
    @pytest.fixture(autouse=True)
    def _packed(self, tmp_path: Path) -> None:
        import gzip

        self.path = tmp_path / "numbers.csv.gz"
        self.path.write_bytes(gzip.compress(b"1,2\n3,4\n"))

    def make(self) -> Source:
        return Compressed(File(self.path))

    def missing(self) -> Source:
        return Compressed(File("no/such/file.csv.gz"))


def _arrays() -> Arrays:
    return Arrays(inputs=np.arange(30, dtype=np.float32).reshape(10, 3), targets=np.arange(10, dtype=np.int32) % 3)


class TestArrays(DatasetSuite):
    def make(self) -> Dataset:
        return _arrays()


class TestSubset(DatasetSuite):
    def make(self) -> Dataset:
        return Subset(_arrays(), np.array([7, 1, 4]))


class TestStream(DatasetSuite):
    def make(self) -> Dataset:
        samples = [{"inputs": np.full(3, i, np.float32), "targets": np.int32(i % 2)} for i in range(10)]
        return Stream(samples, block_rows=4)


class _Values(PreprocessorSuite):
    def values(self) -> np.ndarray:
        return np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


class TestNormalise(_Values):
    def make(self) -> Preprocessor:
        return Normalise()


class TestStandardise(_Values):
    def make(self) -> Preprocessor:
        return Standardise()


class TestOneHot(PreprocessorSuite):
    def make(self) -> Preprocessor:
        return OneHot(3)

    def values(self) -> np.ndarray:
        return np.array([0, 2, 1, 1, 0, 2, 2, 1])
