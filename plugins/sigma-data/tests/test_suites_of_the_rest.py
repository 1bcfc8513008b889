"""The data sets, sources and preprocessors of this room that other files do not run in the suites of their kinds."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import (
    Arrays,
    Cast,
    Csv,
    Digits,
    File,
    Frame,
    Iris,
    Mnist,
    Npy,
    NpyReader,
    Records,
    SamplesReader,
    Saved,
    Scale,
    Shares,
    Synthetic,
    Table,
    Url,
    Wdbc,
    Xor,
)
from sigma_kernel import Dataset, Extractor, Preprocessor, Reader, Source
from sigma_testing import DatasetSuite, ExtractorSuite, PreprocessorSuite, ReaderSuite, SourceSuite


# -- data sets ---------------------------------------------------------------------------------------------------------
class TestDigits(DatasetSuite):
    def make(self) -> Dataset:
        return Digits()["training"]


class TestIris(DatasetSuite):
    def make(self) -> Dataset:
        return Iris()["training"]


class TestWdbc(DatasetSuite):
    def make(self) -> Dataset:
        return Wdbc()["training"]


class TestXor(DatasetSuite):
    def make(self) -> Dataset:
        return Xor()["training"]


class TestSynthetic(DatasetSuite):
    def make(self) -> Dataset:
        return Synthetic(rows=20)["training"]


class TestShares(DatasetSuite):
    def make(self) -> Dataset:
        return Shares(Arrays(inputs=np.arange(20.0), targets=np.arange(20)))["training"]


class _OfFiles(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path


class TestMnist(_OfFiles):
    def make(self) -> Dataset:
        images, labels = np.arange(5 * 784, dtype=np.uint32).astype(np.uint8), np.array([3, 1, 4, 1, 5], np.uint8)
        for split in ("train", "t10k"):
            head = bytes([0, 0, 8, 3]) + struct.pack(">3I", 5, 28, 28)
            (self.folder / f"{split}-images-idx3-ubyte").write_bytes(head + images.tobytes())
            head = bytes([0, 0, 8, 1]) + struct.pack(">I", 5)
            (self.folder / f"{split}-labels-idx1-ubyte").write_bytes(head + labels.tobytes())
        return Mnist(folder=self.folder)["training"]


class TestCsv(_OfFiles):
    def make(self) -> Dataset:
        rows = [f"{i},{i / 2},{'yes' if i % 3 else 'no'}" for i in range(20)]
        (self.folder / "table.csv").write_text("\n".join(["a,b,c", *rows]))
        return Csv(self.folder / "table.csv", "c")["training"]


class TestNpy(_OfFiles):
    def make(self) -> Dataset:
        for name, values in {"x": np.arange(40.0).reshape(20, 2), "y": np.arange(20)}.items():
            np.save(self.folder / f"{name}.npy", values)
        return Npy(self.folder / "x.npy", self.folder / "y.npy")["training"]


class TestRecords(_OfFiles):
    def make(self) -> Dataset:
        np.save(self.folder / "x.npy", np.arange(40.0).reshape(20, 2))
        return Records(File(self.folder / "x.npy"), NpyReader())["training"]


class TestFrame(DatasetSuite):
    def make(self) -> Dataset:
        return Frame(pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20) % 2}), "b")["training"]


class TestSaved(_OfFiles):
    def make(self) -> Dataset:
        rows = Arrays(inputs=np.arange(20.0), targets=np.arange(20))
        path = self.folder / "rows.safetensors"
        data = Saved.bytes_of({"training": rows})
        path.write_bytes(data)
        return Saved(path, sha256(data).hexdigest())["training"]


# -- preprocessors -----------------------------------------------------------------------------------------------------
class _OfNumbers(PreprocessorSuite):
    def values(self) -> np.ndarray:
        return np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


class TestScale(_OfNumbers):
    def make(self) -> Preprocessor:
        return Scale(0.5, 1.0)


class TestCast(_OfNumbers):
    def make(self) -> Preprocessor:
        return Cast("float64")


# -- sources, readers, extractors --------------------------------------------------------------------------------------
class TestUrl(SourceSuite):
    @pytest.fixture(autouse=True)
    def _served(self, server: Any, tmp_path: Path) -> None:
        server.files["/data.bin"] = b"some bytes"
        self.address, self.cache = server.address, tmp_path / "cache"

    def _of(self, path: str) -> Url:
        return Url(self.address + path, sha256(b"some bytes").hexdigest(), cache=self.cache, attempts=1)

    def make(self) -> Source:
        return self._of("/data.bin")

    def missing(self) -> Source:
        return self._of("/nowhere.bin")


class TestSamples(ReaderSuite):
    name = "samples.npy"

    def make(self) -> Reader:
        return SamplesReader((3,))

    def data(self) -> bytes:
        file = io.BytesIO()
        np.save(file, np.arange(12.0).reshape(4, 3))
        return file.getvalue()


class TestTable(ExtractorSuite):
    def make(self) -> Extractor:
        return Table(("b", "a"))

    def records(self) -> Mapping[str, np.ndarray]:
        return {"a": np.arange(6.0), "b": np.arange(6.0) ** 2}
