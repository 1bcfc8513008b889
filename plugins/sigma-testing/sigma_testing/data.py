"""Conformance suites for sources, datasets and preprocessors, to inherit in a plugin's tests.

::

    class TestMySource(SourceSuite):
        def make(self) -> Source:
            return MySource(...)

        def missing(self) -> Source:
            return MySource("nowhere")
"""

from __future__ import annotations

import io
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel.contracts import Dataset, Label, Preprocessor, Source
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, symbol
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.processes import other_process
from sigma_testing.suite import Suite, alike


class SourceSuite(Suite):
    """Conformance tests of a source: inherit, and override :meth:`make` and :meth:`missing`."""

    @abstractmethod
    def make(self) -> Source:
        """Return a source that opens, with at least one byte."""

    @abstractmethod
    def missing(self) -> Source:
        """Return a source of the same kind that cannot be opened."""

    def test_it_returns_the_same_bytes_each_time_it_is_opened(self) -> None:
        """Return a new file, in binary mode, from each open()."""
        source = self.make()
        with source.open() as first, source.open() as second:
            a, b = first.read(), second.read()
        assert isinstance(a, bytes)
        assert a
        assert a == b

    def test_it_has_a_name_for_error_messages(self) -> None:
        """Set `name`, a string by which people recognise the source."""
        assert self.make().name
        assert str(self.make().name) == self.make().name

    def test_an_unreadable_source_is_a_data_error_that_names_it(self) -> None:
        """Raise SigmaDataError with the source's name."""
        source = self.missing()
        with pytest.raises(SigmaDataError) as caught, source.open() as file:
            file.read()
        assert source.name in str(caught.value)


class DatasetSuite(DeterministicSuite):
    """Conformance tests of a dataset: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Dataset:
        """Return a small dataset to test."""

    def use(self) -> None:
        """Make it, and use it once."""
        self.make().block(0)

    def results(self) -> Mapping[str, Any]:
        """Return the rows of the first blocks."""
        dataset = self.make()
        return {"rows": [dataset.block(number) for number in range(min(dataset.blocks, 4))]}

    def test_blocks_have_the_declared_shapes_and_dtypes(self) -> None:
        """Let `sections` and rows() say what block() returns."""
        dataset = self.make()
        assert dataset.blocks > 0
        for number in range(dataset.blocks):
            block = dataset.block(number)
            assert set(block) == set(dataset.sections)
            for name, spec in dataset.sections.items():
                assert block[name].shape == (dataset.rows(number), *spec.shape), name
                assert str(block[name].dtype) == spec.dtype, name
                assert block[name].dtype.isnative, f"{name}: bytes are in another order than this machine's"

    def test_the_length_of_a_stream_is_that_of_all_blocks(self) -> None:
        """Sum rows() over all blocks in __len__()."""
        dataset = self.make()
        assert len(dataset) == sum(dataset.rows(number) for number in range(dataset.blocks)) > 0

    def _blocks(self, dataset: Dataset, numbers: Sequence[int]) -> dict[int, dict[str, bytes]]:
        return {n: {name: x.tobytes() for name, x in dataset.block(n).items()} for n in numbers}

    def test_it_says_whether_its_rows_have_stable_numbers(self) -> None:
        """Set numbered to True if a row keeps its number, else to False."""
        assert isinstance(self.make().has_row_numbers, bool), "has_row_numbers must be True or False"

    def test_every_row_of_a_block_has_its_number_in_the_split(self) -> None:
        """Leave numbers() and counts as they are, unless rows of another dataset are left out."""
        dataset = self.make()
        numbers = [dataset.numbers(block).tolist() for block in range(dataset.blocks)]
        assert [*map(len, numbers)] == [dataset.rows(block) for block in range(dataset.blocks)]
        assert dataset.counts["rows"] == len(dataset)
        if not dataset.counts["excluded"]:
            assert [number for block in numbers for number in block] == [*range(len(dataset))]

    def test_reading_a_block_twice_gives_the_same_values(self) -> None:
        """Make a block from its number alone."""
        dataset = self.make()
        for number in reversed(range(dataset.blocks)):
            assert alike(self._blocks(dataset, [number]), self._blocks(dataset, [number]))

    def test_blocks_do_not_depend_on_what_was_read_before(self) -> None:
        """Make a block from its number alone, without a position that moves."""
        used, order = self.make(), [*range(self.make().blocks)]
        first = self._blocks(used, order)
        assert all(alike(self._blocks(dataset, order[::-1]), first) for dataset in (used, self.make()))

    def test_a_block_stays_as_it_is_while_others_are_read(self) -> None:
        """Give each block arrays of its own."""
        dataset = self.make()
        for number in range(dataset.blocks):
            held = dataset.block(number)
            before = {name: x.tobytes() for name, x in held.items()}
            for other in range(dataset.blocks):
                dataset.block(other)
            refilled = [name for name, x in held.items() if x.tobytes() != before[name]]
            assert not refilled, f"{refilled}: reading another block changes block {number}. Return new arrays."

    def test_a_block_that_a_reader_overwrites_is_read_again_as_it_was(self) -> None:
        """Keep the source of blocks separate from them."""
        dataset = self.make()
        for number in range(dataset.blocks):
            before = self._blocks(dataset, [number])
            for values in dataset.block(number).values():
                if values.flags.writeable:
                    values[...] = values.max(initial=0)
                    values[...] = 1
            assert self._blocks(dataset, [number]) == before, "return copies, or arrays that are not writeable"

    def test_blocks_can_be_read_by_several_threads_at_once(self) -> None:
        """Protect what reading changes, such as an open file."""
        dataset = self.make()
        wanted = self._blocks(dataset, range(dataset.blocks))
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(lambda n: self._blocks(dataset, [n]), [*range(dataset.blocks)] * 8))
        for part in parts:
            assert part.items() <= wanted.items()

    def test_blocks_do_not_depend_on_the_process(self) -> None:
        """Read rows from the data alone: a run is resumed in another process, and read by workers in others."""
        dataset = self.make()
        wanted = self._blocks(dataset, range(dataset.blocks))
        for number in (1, 2):
            with other_process(number):
                other = self.make()
                blocks = self._blocks(other, range(other.blocks))
            assert alike(blocks, wanted), "rows differ by process"

    def _encode(self, dataset: Dataset, section: str) -> Dataset:
        try:
            return dataset.encode(section, None)
        except SigmaDataError:  # words, which are no numbers
            return dataset.encode(section, 0)

    def test_encoding_a_section_leaves_the_data_set_and_its_rows_as_they_were(self) -> None:
        """Return another data set from encode()."""
        dataset = self.make()
        before = self._blocks(dataset, range(dataset.blocks))
        for name in dataset.sections:
            encoded = self._encode(dataset, name)
            assert isinstance(encoded, Dataset)
            assert encoded.has_row_numbers == dataset.has_row_numbers, (
                "encoding does not change whether rows have stable numbers"
            )
            assert [encoded.rows(n) for n in range(encoded.blocks)] == [dataset.rows(n) for n in range(dataset.blocks)]
            assert {*encoded.sections} == {*dataset.sections}
            assert all(isinstance(label, Label) for label in encoded.class_names(name))
            columns = [*encoded.column_names(name)]
            assert not columns or encoded.sections[name].shape == (len(columns),), "name all columns of a vector"
        assert self._blocks(dataset, range(dataset.blocks)) == before

    def test_findings_are_sentences_and_leave_the_rows_as_they_were(self) -> None:
        """Return a list of sentences from findings(), and write to no array."""
        dataset = self.make()
        before = self._blocks(dataset, range(dataset.blocks))
        for classes in ([], [*dataset.sections]):
            findings = dataset.findings(classes, {"validation": self.make()})
            assert not isinstance(findings, str), "findings() must be a list of sentences"
            assert all(isinstance(text, str) and text.rstrip().endswith(".") for text in findings), findings
        assert self._blocks(dataset, range(dataset.blocks)) == before

    def test_columns_are_matched_by_name_and_never_by_position(self) -> None:
        """Return the columns that `training` has from align(), in its order; raise SigmaDataError for others."""
        dataset = self.make()
        for section, names in {name: [*dataset.column_names(name)] for name in dataset.sections}.items():
            for wanted in (names, names[::-1]) if names else ():
                with suppress(SigmaDataError) if wanted != names else nullcontext():  # another order may be refused
                    self._check_columns(dataset, section, wanted)
            if names:
                with pytest.raises(SigmaDataError):
                    dataset.align(_training_columns(section, [*names[1:], f"{names[0]} of others"]))

    def _check_columns(self, dataset: Dataset, section: str, wanted: Sequence[str]) -> None:
        result, names = dataset.align(_training_columns(section, wanted)), [*dataset.column_names(section)]
        assert [*result.column_names(section)] == [*wanted], "match columns by name in align()"
        places = [names.index(name) for name in wanted]
        for block in range(dataset.blocks):
            moved = dataset.block(block)[section][:, places]
            assert np.array_equal(result.block(block)[section], moved), "move columns with their names"


def _training_columns(section: str, columns: Sequence[str]) -> Any:
    """Return the columns of a training split, as a run has saved them."""
    return SimpleNamespace(column_names=lambda name: columns if name == section else ())


@frozen
class _Lazy(Iterable[np.ndarray]):
    """Blocks that can be iterated over again, but have neither a length nor an index."""

    blocks: Sequence[np.ndarray]

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.blocks)


class PreprocessorSuite(DeterministicSuite):
    """Conformance tests of a preprocessor: inherit, and override the two abstract methods."""

    @abstractmethod
    def make(self) -> Preprocessor:
        """Return the preprocessor under test."""

    @abstractmethod
    def values(self) -> np.ndarray:
        """Return values of its section, at least four rows."""

    def use(self) -> None:
        """Make it, and use it once."""
        preprocessor, values = self.make(), self.values()
        preprocessor.apply(values, preprocessor.fit([values]))

    def results(self) -> Mapping[str, Any]:
        """Return the fitted values, and the rows that they transform."""
        preprocessor, values = self.make(), self.values()
        fitted = preprocessor.fit([values])
        return {"fitted values": fitted, "rows": preprocessor.apply(values, fitted)}

    def test_it_keeps_the_rows_and_does_not_modify_its_input(self) -> None:
        """Return a new array with as many rows from apply()."""
        preprocessor, values = self.make(), self.values()
        before = values.copy()
        changed = preprocessor.apply(values, preprocessor.fit([values]))
        assert len(changed) == len(values)
        assert np.array_equal(values, before)

    def test_the_fitted_values_are_arrays_and_sufficient_to_apply(self) -> None:
        """Return all that apply() needs from fit(), as arrays."""
        values = self.values()
        fitted = self.make().fit([values[: len(values) // 2]])
        assert all(isinstance(value, np.ndarray) for value in fitted.values()), "fit() must return arrays"
        names = [name for name in fitted if not re.fullmatch(r"\w++", name)]
        assert not names, f"{names}: names of fitted values have letters, digits and _, as files have them, too"
        first, second = (self.make().apply(values, fitted) for _ in range(2))
        assert np.array_equal(first, second)

    def test_a_preprocessor_treats_each_row_separately(self) -> None:
        """Take statistics from the fitted rows, not from the rows to transform."""
        preprocessor, values = self.make(), self.values()
        fitted = preprocessor.fit([values])
        whole, part = preprocessor.apply(values, fitted), preprocessor.apply(values[1:3], fitted)
        assert np.array_equal(whole[1:3], part)

    def test_fitting_again_forgets_what_was_fitted_before(self) -> None:
        """Keep nothing on the preprocessor."""
        used, values = self.make(), self.values()
        used.fit([values[:2] + values[:2]])
        used.apply(values, used.fit([values[1:]]))
        state, wanted = used.fit([values]), self.make().fit([values])
        assert alike(*({name: x.tobytes() for name, x in arrays.items()} for arrays in (state, wanted)))

    def test_its_graph_computes_the_same(self) -> None:
        """Return what apply() returns from graph(), if there is one."""
        preprocessor, values = self.make(), self.values()
        if type(preprocessor).graph is Preprocessor.graph:
            return
        fitted, wide = preprocessor.fit([values]), {"int8", "int16", "uint8", "uint16"}
        given = values.astype("int32") if values.dtype.name in wide else values
        node = symbol(given.shape, given.dtype.name)
        (result,) = interpret(Graph((node,), (preprocessor.graph(node, fitted),)), numpy_namespace())(given)
        wanted = preprocessor.apply(values, fitted)
        assert result.dtype == wanted.dtype, f"graph() has {result.dtype}, apply() {wanted.dtype}"
        same, size = np.array_equal(result, wanted), float(np.abs(wanted).max(initial=1.0))
        if preprocessor.approximate_graph:
            np.testing.assert_allclose(
                result, wanted, rtol=0, atol=1e-5 * size, err_msg="graph() computes other values"
            )
        else:
            assert same, "graph() rounds otherwise than apply(). If it must, declare `approximate_graph = True`."

    def test_its_inverse_returns_what_it_was_applied_to(self) -> None:
        """Return the values before apply() from inverse(), if there is one."""
        preprocessor, values = self.make(), self.values()
        fitted = preprocessor.fit([values])
        given = np.asarray(preprocessor.apply(values, fitted), np.float64)
        node = symbol(given.shape, "float64")
        if (inverse := preprocessor.inverse(node, fitted)) is None:
            return
        assert (inverse.shape, inverse.dtype) == (values.shape, "float64"), "keep the shape and the dtype in inverse()"
        (result,) = interpret(Graph((node,), (inverse,)), numpy_namespace())(given)
        size = float(np.abs(values).max())  # of which float32 keeps seven digits
        np.testing.assert_allclose(result, values, rtol=1e-5, atol=1e-5 * size, err_msg="undo apply() in inverse()")

    def test_applying_learns_nothing(self) -> None:
        """Change neither the preprocessor nor the fitted values in apply()."""
        preprocessor, values = self.make(), self.values()
        fitted = preprocessor.fit([values[: len(values) // 2]])
        first, before = preprocessor.apply(values[:2], fitted), {name: x.tobytes() for name, x in fitted.items()}
        preprocessor.apply(values[2:], fitted)
        assert alike({name: x.tobytes() for name, x in fitted.items()}, before)
        assert np.array_equal(preprocessor.apply(values[:2], fitted), first)

    def test_the_fitted_values_can_be_saved(self) -> None:
        """Return arrays of numbers from fit(), no objects."""
        values, fitter = self.values(), self.make()
        fitted = fitter.fit([values])
        saved: dict[str, np.ndarray] = {}
        for name, value in fitted.items():
            file = io.BytesIO()
            np.save(file, value, allow_pickle=False)
            file.seek(0)
            saved[name] = np.load(file)
        assert np.array_equal(self.make().apply(values, saved), fitter.apply(values, fitted))

    def test_blocks_are_read_as_often_as_they_are_needed_and_stay_as_they_are(self) -> None:
        """Iterate over the blocks, and change none."""
        values = self.values()
        kept = values.copy()
        lazy = _Lazy([values[:3], values[3:]])
        fitted, wanted = self.make().fit(lazy), self.make().fit([kept])
        assert np.array_equal(values, kept)
        for name, value in wanted.items():
            np.testing.assert_allclose(fitted[name], value, rtol=1e-9, atol=1e-12, err_msg=name)

    def test_a_single_row_is_transformed_to_the_dtype_of_many(self) -> None:
        """Choose the dtype from that of the values, and keep the axis of rows."""
        preprocessor, values = self.make(), self.values()
        fitted = preprocessor.fit([values])
        many, row = preprocessor.apply(values, fitted), preprocessor.apply(values[:1], fitted)
        assert (row.dtype, row.shape) == (many.dtype, (1, *many.shape[1:]))

    def test_floats_do_not_become_wider(self) -> None:
        """Round to the dtype of the values: fitted values in float64 would double the memory of data in float32."""
        preprocessor, values = self.make(), self.values()
        if values.dtype.kind != "f" or preprocessor.casts:
            return
        given = values.astype(np.float32)
        changed = preprocessor.apply(given, preprocessor.fit([given])).dtype
        assert changed != np.float64, f"apply() makes {changed} of {given.dtype}. If it must, declare `casts = True`"

    def test_the_fitted_values_do_not_depend_on_the_blocks(self) -> None:
        """Merge the statistics of blocks weighted by their rows."""
        preprocessor, values = self.make(), self.values()
        whole, cut = preprocessor.fit([values]), preprocessor.fit([values[:1], values[1:3], values[3:]])
        assert whole.keys() == cut.keys()
        for name, value in whole.items():
            np.testing.assert_allclose(cut[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
