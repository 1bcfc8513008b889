"""The suites of data sets, preprocessors and sources fail for planted faults."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel import Dataset, Preprocessor, SigmaDataError, Source, Spec, functions as f
from sigma_kernel.graph import Node
from sigma_testing import DatasetSuite, Memory, PreprocessorSuite, SourceSuite

from .faults import check_caught


# -- data sets ---------------------------------------------------------------------------------------------------------
class Numbers(Dataset):
    """Three blocks of numbers."""

    sizes: Sequence[int] = (4, 4, 2)

    @property
    def sections(self) -> Mapping[str, Spec]:
        return {"inputs": Spec((3,), "float32"), "targets": Spec((), "int32")}

    @property
    def blocks(self) -> int:
        return len(self.sizes)

    def rows(self, block: int) -> int:
        return self.sizes[block]

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        rows = np.arange(self.sizes[block], dtype=np.int32) + 10 * block
        return {"inputs": np.repeat(rows[:, None], 3, axis=1).astype(np.float32), "targets": rows}


class ByProcess(Numbers):
    def block(self, block: int) -> Mapping[str, np.ndarray]:
        rows = super().block(block)
        return {**rows, "inputs": rows["inputs"] + np.float32(os.getpid() % 7)}


class BigEndian(Numbers):
    def block(self, block: int) -> Mapping[str, np.ndarray]:
        rows = super().block(block)
        return {**rows, "inputs": rows["inputs"].astype(">f4")}


class SharesArrays(Numbers):
    def __init__(self) -> None:
        self.held = [super(SharesArrays, self).block(n) for n in range(3)]

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        return self.held[block]


class RefillsOneArray(Numbers):
    def __init__(self) -> None:
        self.held = {name: np.zeros((4, *spec.shape), spec.dtype) for name, spec in self.sections.items()}

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        for name, values in super().block(block).items():
            self.held[name][: len(values)] = values
        return {name: values[: self.sizes[block]] for name, values in self.held.items()}


class CallOrder(Numbers):
    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        noise = self.random.normal(size=(self.sizes[block], 3)).astype(np.float32)
        return {**super().block(block), "inputs": noise}


class OnlyOnce(Numbers):
    def __init__(self) -> None:
        self.seen: set[int] = set()

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        found = super().block(block)
        again = block in self.seen
        self.seen.add(block)
        return {name: x * 0 for name, x in found.items()} if again else found


class AfterTheLast(Numbers):
    last = 0

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        found = super().block(block)
        found = {**found, "inputs": found["inputs"] + self.last}
        self.last = block
        return found


class Lies(Numbers):
    def rows(self, block: int) -> int:
        return 4


class LiesAboutItsLength(Numbers):
    def __len__(self) -> int:
        return 12


class AnotherDtype(Numbers):
    def block(self, block: int) -> Mapping[str, np.ndarray]:
        return {name: x.astype(np.float64) for name, x in super().block(block).items()}


class Undeclared(Numbers):
    def block(self, block: int) -> Mapping[str, np.ndarray]:
        found = super().block(block)
        return {**found, "weights": found["targets"]}


class EncodesItself(Numbers):
    shift = 0

    def encode(self, section: str, classes: int | None, names: Sequence[str] = ()) -> Dataset:
        self.shift += 1
        return self

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        return {name: x + np.asarray(self.shift, x.dtype) for name, x in super().block(block).items()}


class EncodesNothing(Numbers):
    def encode(self, section: str, classes: int | None, names: Sequence[str] = ()) -> Any:
        return None


class MaybeNumbered(Numbers):
    has_row_numbers = "perhaps"  # type: ignore[assignment]


class LosesItsNumbers(Numbers):
    def encode(self, section: str, classes: int | None, names: Sequence[str] = ()) -> Dataset:
        made = Numbered()
        made.has_row_numbers = False
        return made


class Numbered(Numbers):
    has_row_numbers = True


class NamedColumns(Numbers):
    def column_names(self, section: str) -> Sequence[str]:
        return ("a", "b", "c") if section == "inputs" else ()

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        return {name: x + np.arange(3, dtype=x.dtype) if x.ndim == 2 else x for name, x in super().block(block).items()}


class ReadByPosition(NamedColumns):
    def align(self, training: Dataset) -> Dataset:
        return self


class OnlyNamesMoved(NamedColumns):
    names: Sequence[str] = ("a", "b", "c")

    def column_names(self, section: str) -> Sequence[str]:
        return self.names if section == "inputs" else ()

    def align(self, training: Dataset) -> Dataset:
        found, wanted = OnlyNamesMoved(), training.column_names("inputs")
        if {*wanted} != {*self.names}:
            raise SigmaDataError("other columns")
        found.names = wanted
        return found


class TakesAnyColumn(NamedColumns):
    def align(self, training: Dataset) -> Dataset:
        wanted = training.column_names("inputs")
        return self if "a" not in wanted else super().align(training)


class FindsOneText(Numbers):
    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> Sequence[str]:
        return "column 'id' is an identifier."


class FindsWords(Numbers):
    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> Sequence[str]:
        return ["id"]


SENTENCES = "test_findings_are_sentences_and_leave_the_rows_as_they_were"
BY_NAME = "test_columns_are_matched_by_name_and_never_by_position"
OTHER_BLOCKS = "test_blocks_do_not_depend_on_what_was_read_before"
DATASETS: dict[type[Dataset], str] = {
    Numbers: "",
    ByProcess: "test_blocks_do_not_depend_on_the_process",
    BigEndian: "test_blocks_have_the_declared_shapes_and_dtypes",
    SharesArrays: "test_a_block_that_a_reader_overwrites_is_read_again_as_it_was",
    RefillsOneArray: "test_a_block_stays_as_it_is_while_others_are_read",
    CallOrder: OTHER_BLOCKS,
    AfterTheLast: OTHER_BLOCKS,
    OnlyOnce: "test_reading_a_block_twice_gives_the_same_values",
    Lies: "test_blocks_have_the_declared_shapes_and_dtypes",
    LiesAboutItsLength: "test_the_length_of_a_stream_is_that_of_all_blocks",
    AnotherDtype: "test_blocks_have_the_declared_shapes_and_dtypes",
    Undeclared: "test_blocks_have_the_declared_shapes_and_dtypes",
    EncodesItself: "test_encoding_a_section_leaves_the_data_set_and_its_rows_as_they_were",
    EncodesNothing: "test_encoding_a_section_leaves_the_data_set_and_its_rows_as_they_were",
    MaybeNumbered: "test_it_says_whether_its_rows_have_stable_numbers",
    LosesItsNumbers: "test_encoding_a_section_leaves_the_data_set_and_its_rows_as_they_were",
    NamedColumns: "",
    ReadByPosition: BY_NAME,
    OnlyNamesMoved: BY_NAME,
    TakesAnyColumn: BY_NAME,
    FindsOneText: SENTENCES,
    FindsWords: SENTENCES,
}


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_fault_in_a_data_set_is_caught(dataset: type[Dataset]) -> None:
    class Suite(DatasetSuite):
        def make(self) -> Dataset:
            return dataset()

    check_caught(Suite(), DATASETS[dataset])


# -- preprocessors -----------------------------------------------------------------------------------------------------
class Centre(Preprocessor):
    """Subtract the mean of the training split."""

    section = "inputs"

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        total, rows = 0.0, 0
        for block in blocks:
            total, rows = total + block.sum(axis=0, dtype=float), rows + len(block)
        return {"mean": np.asarray(total / rows)}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return (values - state["mean"]).astype(values.dtype)


class Widens(Centre):
    """Return doubles."""

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return values - state["mean"]


class SaysThatItWidens(Widens):
    """Return doubles on purpose."""

    casts = True


class AddsInItsGraph(Centre):
    """Compute something else in the graph."""

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        return f.cast(values, "float64") + state["mean"]


class SubtractsTwice(Centre):
    """Subtract the mean once more, where it should be added."""

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        return values - state["mean"]


class LosesTheRows(Centre):
    """Return another shape from the inverse."""

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        return f.mean(values + state["mean"], axis=0)


class DoubleInItsGraph(Centre):
    """Return another type from the graph."""

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        return f.cast(values, "float64") - state["mean"]


class FitsOnEverything(Centre):
    """Take the mean of whatever it is applied to."""

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return (values - values.mean(axis=0)).astype(values.dtype)


class Accumulates(Centre):
    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        self.seen += [*blocks]
        return super().fit(self.seen)


class LearnsWhileApplying(Centre):
    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        found = values - state["mean"]
        state["mean"][...] = 0.5 * state["mean"] + 0.5 * values.mean(axis=0)
        return found


class KeepsItsState(Centre):
    def __init__(self) -> None:
        self.mean: Any = 0.0

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        self.mean = super().fit(blocks)["mean"]
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return values - self.mean


class FirstBlock(Centre):
    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        return super().fit([next(iter(blocks))])


class MeanOfMeans(Centre):
    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        return {"mean": np.mean([block.mean(axis=0, dtype=float) for block in blocks], axis=0)}


class Objects(Centre):
    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        return {"mean": super().fit(blocks)["mean"].astype(object)}


class Indexes(Centre):
    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        return super().fit([blocks[i] for i in range(len(blocks))])  # type: ignore[index, arg-type]


class InPlace(Centre):
    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        values -= state["mean"].astype(values.dtype)
        return values


class Squeezes(Centre):
    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        found = super().apply(values, state)
        return found if len(values) > 1 else found.astype(np.float64)


PREPROCESSORS: dict[type[Preprocessor], str] = {
    Centre: "",
    SaysThatItWidens: "",
    Widens: "test_floats_do_not_become_wider",
    AddsInItsGraph: "test_its_graph_computes_the_same",
    DoubleInItsGraph: "test_its_graph_computes_the_same",
    SubtractsTwice: "test_its_inverse_returns_what_it_was_applied_to",
    LosesTheRows: "test_its_inverse_returns_what_it_was_applied_to",
    FitsOnEverything: "test_a_preprocessor_treats_each_row_separately",
    Accumulates: "test_fitting_again_forgets_what_was_fitted_before",
    LearnsWhileApplying: "test_applying_learns_nothing",
    KeepsItsState: "test_the_fitted_values_can_be_saved",
    FirstBlock: "test_the_fitted_values_do_not_depend_on_the_blocks",
    MeanOfMeans: "test_the_fitted_values_do_not_depend_on_the_blocks",
    Objects: "test_the_fitted_values_can_be_saved",
    Indexes: "test_blocks_are_read_as_often_as_they_are_needed_and_stay_as_they_are",
    InPlace: "test_it_keeps_the_rows_and_does_not_modify_its_input",
    Squeezes: "test_a_single_row_is_transformed_to_the_dtype_of_many",
}


@pytest.mark.parametrize("preprocessor", PREPROCESSORS)
def test_a_fault_in_a_preprocessor_is_caught(preprocessor: type[Preprocessor]) -> None:
    class Suite(PreprocessorSuite):
        def make(self) -> Preprocessor:
            return preprocessor()

        def values(self) -> np.ndarray:
            return np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)

    check_caught(Suite(), PREPROCESSORS[preprocessor])


# -- sources -----------------------------------------------------------------------------------------------------------
@frozen
class Held(Source):
    """Bytes behind a function that opens them."""

    opens: Callable[[], Any] = lambda: io.BytesIO(b"some bytes")
    name: str = "held"

    def open(self) -> AbstractContextManager[IO[bytes]]:
        found: AbstractContextManager[IO[bytes]] = self.opens()
        return found


def _refuses() -> Any:
    raise SigmaDataError("held: cannot be opened. Give another.")


def _fails() -> Any:
    raise FileNotFoundError("held")


ONCE = io.BytesIO(b"read only once")
SOURCES: dict[str, tuple[Source, Source, str]] = {
    "right": (Memory(b"abc", name="held"), Held(_refuses), ""),
    "text": (Held(lambda: io.StringIO("abc")), Held(_refuses), "test_it_returns_the_same_bytes_each_time_it_is_opened"),
    "read once": (Held(lambda: ONCE), Held(_refuses), "test_it_returns_the_same_bytes_each_time_it_is_opened"),
    "no name": (Held(name=""), Held(_refuses), "test_it_has_a_name_for_error_messages"),
    "an error of the system": (Held(), Held(_fails), "test_an_unreadable_source_is_a_data_error_that_names_it"),
    "an error without a name": (
        Held(), Held(_refuses, name="elsewhere"), "test_an_unreadable_source_is_a_data_error_that_names_it"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_a_fault_in_a_source_is_caught(name: str) -> None:
    class Suite(SourceSuite):
        def make(self) -> Source:
            return SOURCES[name][0]

        def missing(self) -> Source:
            return SOURCES[name][1]

    check_caught(Suite(), SOURCES[name][2])
