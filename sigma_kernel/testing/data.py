"""Conformance suites for sources, datasets and preprocessors, to inherit in a plugin's tests.

::

    class TestMySource(SourceSuite):
        def make(self) -> Source:
            return MySource(...)

        def missing(self) -> Source:
            return MySource("nowhere")
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pytest

from sigma_kernel.contracts import Dataset, Preprocessor, Source
from sigma_kernel.errors import SigmaDataError


class SourceSuite(ABC):
    """Conformance tests of a source: inherit, and override :meth:`make` and :meth:`missing`."""

    @abstractmethod
    def make(self) -> Source:
        """Return a source that opens, with at least one byte."""

    @abstractmethod
    def missing(self) -> Source:
        """Return a source of the same kind that cannot be opened."""

    def test_it_returns_the_same_bytes_each_time_it_is_opened(self) -> None:
        source = self.make()
        with source.open() as first, source.open() as second:
            a, b = first.read(), second.read()
        assert isinstance(a, bytes)
        assert a
        assert a == b

    def test_it_has_a_name_for_error_messages(self) -> None:
        assert self.make().name
        assert str(self.make().name) == self.make().name

    def test_an_unreadable_source_is_a_data_error_that_names_it(self) -> None:
        source = self.missing()
        with pytest.raises(SigmaDataError) as caught, source.open() as file:
            file.read()
        assert source.name in str(caught.value)


class DatasetSuite(ABC):
    """Conformance tests of a dataset: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Dataset:
        """Return a small dataset to test."""

    def test_blocks_have_the_declared_shapes_and_dtypes(self) -> None:
        dataset = self.make()
        assert dataset.blocks > 0
        for number in range(dataset.blocks):
            block = dataset.block(number)
            assert set(block) == set(dataset.sections)
            for name, spec in dataset.sections.items():
                assert block[name].shape == (dataset.rows(number), *spec.shape), name
                assert str(block[name].dtype) == spec.dtype, name

    def test_the_length_of_a_stream_is_that_of_all_blocks(self) -> None:
        dataset = self.make()
        assert len(dataset) == sum(dataset.rows(number) for number in range(dataset.blocks)) > 0

    def test_reading_a_block_twice_gives_the_same_values(self) -> None:
        dataset = self.make()
        for number in reversed(range(dataset.blocks)):
            first, second = dataset.block(number), dataset.block(number)
            assert all(np.array_equal(first[name], second[name]) for name in first)


class PreprocessorSuite(ABC):
    """Conformance tests of a preprocessor: inherit, and override the two abstract methods."""

    @abstractmethod
    def make(self) -> Preprocessor:
        """Return the preprocessor under test."""

    @abstractmethod
    def values(self) -> np.ndarray:
        """Return values of its section, at least four rows."""

    def test_it_keeps_the_rows_and_does_not_modify_its_input(self) -> None:
        preprocessor, values = self.make(), self.values()
        before = values.copy()
        changed = preprocessor.apply(values, preprocessor.fit([values]))
        assert len(changed) == len(values)
        assert np.array_equal(values, before)

    def test_the_fitted_values_are_arrays_and_sufficient_to_apply(self) -> None:
        values = self.values()
        fitted = self.make().fit([values[: len(values) // 2]])
        assert all(isinstance(value, np.ndarray) for value in fitted.values())
        first, second = (self.make().apply(values, fitted) for _ in range(2))
        assert np.array_equal(first, second)

    def test_a_preprocessor_treats_each_row_separately(self) -> None:
        preprocessor, values = self.make(), self.values()
        fitted = preprocessor.fit([values])
        whole, part = preprocessor.apply(values, fitted), preprocessor.apply(values[1:3], fitted)
        assert np.array_equal(whole[1:3], part)

    def test_the_fitted_values_do_not_depend_on_the_blocks(self) -> None:
        preprocessor, values = self.make(), self.values()
        whole, cut = preprocessor.fit([values]), preprocessor.fit([values[:1], values[1:3], values[3:]])
        assert whole.keys() == cut.keys()
        for name, value in whole.items():
            np.testing.assert_allclose(cut[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
