"""Conformance suites for readers, extractors and iterators, to inherit in a plugin's tests.

::

    class TestNpy(ReaderSuite):
        def make(self) -> Reader:
            return Npy()

        def data(self) -> bytes:
            file = io.BytesIO()
            np.save(file, np.arange(12.0).reshape(4, 3))
            return file.getvalue()
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import IO, Any, ClassVar

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel.contracts import Extractor, Iterator, Reader, Source
from sigma_kernel.errors import SigmaDataError
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.suite import alike


@frozen
class Memory(Source):
    """A source of bytes in memory."""

    data: bytes
    name: str = "some bytes"

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Return the bytes as a file."""
        return io.BytesIO(self.data)


class Unopenable(Source):
    """A source that cannot be opened."""

    name = "nowhere"

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Raise SigmaDataError."""
        raise SigmaDataError(f"{self.name}: no such file. Give another.")


class ReaderSuite(DeterministicSuite):
    """Conformance tests of a reader: inherit, and override :meth:`make` and :meth:`data`."""

    name: ClassVar[str] = "some bytes"  # of the source, for a reader that looks at it

    @abstractmethod
    def make(self) -> Reader:
        """Return the reader under test."""

    @abstractmethod
    def data(self) -> bytes:
        """Return the bytes of a valid file with at least two records."""

    def read(self, data: bytes) -> dict[str, np.ndarray]:
        """Return the rows that a new reader reads from bytes."""
        return self.make().read(Memory(data, self.name))

    def use(self) -> None:
        """Make it, and use it once."""
        self.read(self.data())

    def results(self) -> Mapping[str, Any]:
        """Return the rows."""
        return {"rows": self.read(self.data())}

    def test_it_returns_named_arrays_with_one_row_per_record(self) -> None:
        """Return arrays of equal length by name, none of objects."""
        arrays = self.read(self.data())
        assert arrays
        assert all(isinstance(name, str) and isinstance(values, np.ndarray) for name, values in arrays.items())
        assert len({len(values) for values in arrays.values()}) == 1
        assert not any(values.dtype.kind == "O" for values in arrays.values())

    def test_reading_twice_gives_the_same_and_shares_nothing(self) -> None:
        """Return new arrays from each read()."""
        reader, source = self.make(), Memory(self.data(), self.name)
        first, second = reader.read(source), reader.read(source)
        assert first.keys() == second.keys()
        for name, values in first.items():
            assert alike(values.tobytes(), second[name].tobytes())
            assert not np.shares_memory(values, second[name])

    def test_a_file_cut_anywhere_is_read_or_refused_with_a_data_error(self) -> None:
        """Raise SigmaDataError for whatever the format does not allow."""
        data = self.data()
        for size in {len(data) * i // 24 for i in range(24)}:
            self._try_reading(data[:size])

    def test_a_file_with_changed_bytes_is_read_or_refused_with_a_data_error(self) -> None:
        """Raise SigmaDataError for whatever the format does not allow."""
        data, draw = self.data(), np.random.default_rng(0)
        for _ in range(100):
            changed = bytearray(data)
            for place in draw.integers(len(data), size=3):
                changed[place] = draw.integers(256)
            self._try_reading(bytes(changed))

    def _try_reading(self, data: bytes) -> None:
        try:
            arrays = self.read(data)
        except SigmaDataError:
            return
        assert len({len(values) for values in arrays.values()}) <= 1

    def test_errors_of_the_source_pass_unchanged(self) -> None:
        """Catch no SigmaError of source.open()."""
        with pytest.raises(SigmaDataError, match="nowhere"):
            self.make().read(Unopenable())


class ExtractorSuite(DeterministicSuite):
    """Conformance tests of an extractor: inherit, and override :meth:`make` and :meth:`records`."""

    @abstractmethod
    def make(self) -> Extractor:
        """Return the extractor under test."""

    @abstractmethod
    def records(self) -> Mapping[str, np.ndarray]:
        """Return the arrays of a reader, at least three rows that differ."""

    def extract(self, step: int = 1) -> dict[str, np.ndarray]:
        """Return the sections of the records, or of every ``step``-th one, from a new extractor."""
        return self.make().extract({name: values[::step] for name, values in self.records().items()})

    def results(self) -> Mapping[str, Any]:
        """Return the sections."""
        return {"sections": self.extract()}

    def test_sections_have_one_row_per_sample(self) -> None:
        """Return arrays of equal length by name, none of objects."""
        sections = self.extract()
        assert sections
        assert len({len(values) for values in sections.values()}) == 1
        assert all(isinstance(values, np.ndarray) and values.dtype.kind != "O" for values in sections.values())

    def test_records_are_unchanged(self) -> None:
        """Copy arrays before changing them."""
        records = {name: values.copy() for name, values in self.records().items()}
        self.make().extract(records)
        for name, values in self.records().items():
            np.testing.assert_array_equal(records[name], values)

    def test_samples_are_in_the_order_of_their_records(self) -> None:
        """Keep the order, and treat each record alone."""
        forward, backward = self.extract(), self.extract(-1)
        assert forward.keys() == backward.keys()
        for name, values in forward.items():
            np.testing.assert_array_equal(values[::-1], backward[name])

    def test_a_missing_array_is_a_data_error(self) -> None:
        """Raise SigmaDataError with the name of the array."""
        with pytest.raises(SigmaDataError):
            self.make().extract({})


class IteratorSuite(DeterministicSuite):
    """Conformance tests of an iterator: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Iterator:
        """Return the iterator under test."""

    def indices(self, seed: int = 0, epoch: int = 0, block: int = 0, rows: int = 23) -> np.ndarray:
        """Return the order of a new iterator."""
        return np.asarray(self.make().indices(seed, epoch, block, rows))

    def results(self) -> Mapping[str, Any]:
        """Return the order of a block."""
        return {"order": self.indices(3, 1)}

    @pytest.mark.parametrize("rows", [1, 2, 23, 1000])
    def test_every_row_comes_once(self, rows: int) -> None:
        """Return a permutation of range(rows), as integers."""
        for epoch, block in ((0, 0), (1, 0), (0, 1), (7, 3)):
            indices = self.indices(3, epoch, block, rows)
            assert indices.dtype.kind in "iu"
            assert sorted(indices.tolist()) == [*range(rows)]
            assert not self.make().keeps_order or indices.tolist() == [*range(rows)], "keeps_order declares range(rows)"

    def test_the_order_depends_on_the_arguments_alone(self) -> None:
        """Draw from a generator of seed, epoch and block; keep no state."""
        iterator = self.make()
        first = np.array(iterator.indices(5, 2, 1, 23))
        np.random.default_rng(0)
        iterator.indices(6, 3, 0, 17)
        np.testing.assert_array_equal(iterator.indices(5, 2, 1, 23), first)
        np.testing.assert_array_equal(self.indices(5, 2, 1), first)

    def test_rows_drawn_by_a_section_depend_on_the_arguments_alone(self) -> None:
        """Return as many rows as there are values; without a section, the order of ``indices``."""
        codes = np.arange(23, dtype=np.int32) % 3
        first = np.array(self.make().draw(5, 2, 1, codes))
        assert first.shape == (23,)
        assert first.dtype.kind in "iu"
        assert {*first.tolist()} <= {*range(23)}
        np.testing.assert_array_equal(self.make().draw(5, 2, 1, codes), first)
        if not self.make().section:
            np.testing.assert_array_equal(self.indices(5, 2, 1), first)

    def test_seeds_and_epochs_beyond_32_bits_are_taken(self) -> None:
        """Pass them to numpy.random.default_rng as a list."""
        assert sorted(self.indices(2**64 - 1, 2**31, 2**20).tolist()) == [*range(23)]

    def test_an_order_may_be_overwritten(self) -> None:
        """Return a new array each time."""
        iterator = self.make()
        first = iterator.indices(0, 0, 0, 23)
        kept = np.array(first)
        if np.asarray(first).flags.writeable:
            first[:] = 0
        np.testing.assert_array_equal(iterator.indices(0, 0, 0, 23), kept)
