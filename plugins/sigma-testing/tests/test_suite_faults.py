"""The suites of small components fail for planted faults, each in the test that is meant for it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel import (
    Context,
    CostLayer,
    Exporter,
    Extractor,
    Inference,
    Iterator,
    Merger,
    Metric,
    Node,
    Reader,
    SigmaDataError,
    Source,
    Totals,
    functions as f,
)
from sigma_kernel.graph import Spec
from sigma_testing import (
    CostSuite,
    ExporterSuite,
    ExtractorSuite,
    IteratorSuite,
    MergerSuite,
    MetricSuite,
    ReaderSuite,
    inference,
)

from .faults import failed


# -- metrics -----------------------------------------------------------------------------------------------------------
class Error(Metric):
    better = "lower"

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(f.abs(prediction - targets))


class ItsOwnCount(Error):
    def value(self, totals: np.ndarray, rows: int) -> float:
        return float(totals) / len(ROWS[0])


class MeanOfEachBatch(Error):
    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.mean(f.abs(prediction - targets))


class PerRow(Error):
    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.abs(prediction - targets)

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.concatenate([a, b])

    def value(self, totals: np.ndarray, rows: int) -> float:
        return float(np.mean(totals))


class KeepsAFewRows(Error):
    keeps_rows = True

    def totals(self, prediction: Node, targets: Node) -> Node:
        rows = f.mean(f.abs(prediction - targets), axis=1)
        return f.concat(rows, rows[:1], axis=0)


class InPlace(Error):
    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a += b
        return a


class SortsWhatItIsGiven(Error):
    keeps_rows = True

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.abs(prediction - targets)

    def value(self, totals: np.ndarray, rows: int) -> float:
        totals.sort()
        return fsum(totals) / rows


class AddsInFloat32(Error):
    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(a + b, np.float32)


class RoundsEachBatch(Error):
    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sqrt(f.square(f.sum(f.abs(prediction - targets))))


class KeepsRowsAndAddsThemInOrder(Error):
    keeps_rows = True

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.abs(prediction - targets)

    def value(self, totals: np.ndarray, rows: int) -> float:
        return float(np.add.accumulate(totals)[-1]) / rows


class FromTheLeft(Error):
    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(a + b * (1.01 if a > 3 else 1.0))


class ByPlace(Error):
    def totals(self, prediction: Node, targets: Node) -> Node:
        place = f.cast(f.iota(shape=prediction.shape, axis=0, dtype="int32"), prediction.dtype)
        return f.sum(f.abs(prediction - targets) * (1.0 + place))


class AnArray(Error):
    def value(self, totals: np.ndarray, rows: int) -> Any:
        return np.atleast_1d(totals) / rows


class Remembers(Error):
    def __init__(self) -> None:
        self.seen = 0

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        self.seen += 1
        return a + b


class ForgetsRows(Error):
    def value(self, totals: np.ndarray, rows: int) -> float:
        return float(totals)


class OnlyWholeNumbers(Error):
    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.cast(f.sum(f.abs(prediction - targets)), "int32")


class Float32Only(Error):
    def totals(self, prediction: Node, targets: Node) -> Node:
        assert prediction.dtype == "float32"
        return super().totals(prediction, targets)


class OverlooksNaN(Error):
    def totals(self, prediction: Node, targets: Node) -> Node:
        away = f.abs(prediction - targets)
        return f.sum(f.where(f.equal(away, away), away, abs(ROWS[0] - ROWS[1]).mean()))


class Silent(Error):
    better = ""


class Upwards(Error):
    better = "higher"


DRAW = np.random.default_rng(0)
ROWS = (DRAW.normal(size=9).astype(np.float32), DRAW.normal(size=9).astype(np.float32))
METRICS = {
    Error: set(),
    ItsOwnCount: {"test_twice_the_rows_give_the_metric_of_all_of_them"},
    MeanOfEachBatch: {"test_batches_of_any_size_give_the_metric_of_all_rows"},
    PerRow: {"test_totals_have_the_same_shape_for_any_number_of_rows"},
    KeepsAFewRows: {"test_totals_have_the_same_shape_for_any_number_of_rows"},
    AddsInFloat32: {"test_any_batches_shards_and_order_give_the_same_bits"},
    RoundsEachBatch: {"test_any_batches_shards_and_order_give_the_same_bits"},
    KeepsRowsAndAddsThemInOrder: {"test_any_batches_shards_and_order_give_the_same_bits"},
    InPlace: {"test_merging_is_the_same_in_any_order_and_changes_no_operand"},
    SortsWhatItIsGiven: {"test_it_is_what_others_compute"},
    FromTheLeft: {"test_merging_is_the_same_in_any_order_and_changes_no_operand"},
    ByPlace: {"test_the_order_of_rows_does_not_matter"},
    AnArray: {"test_the_value_can_be_published"},
    Remembers: {"test_it_has_no_memory"},
    ForgetsRows: {"test_it_is_what_others_compute"},
    OnlyWholeNumbers: {"test_it_is_what_others_compute"},
    Float32Only: {"test_both_precisions_give_the_same"},
    OverlooksNaN: {"test_predictions_that_are_not_finite_do_not_pass_as_the_best"},
    Silent: {"test_better_says_which_values_are_better"},
    Upwards: {"test_better_says_which_values_are_better"},
}


@pytest.mark.parametrize("metric", METRICS)
def test_a_fault_in_a_metric_is_caught(metric: type[Metric]) -> None:
    class Suite(MetricSuite):
        def make(self) -> Metric:
            return metric()

        def batch(self) -> tuple[np.ndarray, np.ndarray]:
            return ROWS[0].copy(), ROWS[1].copy()

        def expected(self, prediction: np.ndarray, targets: np.ndarray) -> float:
            return float(np.mean(np.abs(prediction.astype(float) - targets)))

    found = failed(Suite())
    assert found >= METRICS[metric]
    assert bool(found) == bool(METRICS[metric])


# -- mergers -----------------------------------------------------------------------------------------------------------
MERGERS: dict[str, tuple[Callable[..., Any], str]] = {
    "a + b": (lambda a, b: np.asarray(a + b), ""),
    "mean": (lambda a, b: np.asarray((a + b) / 2), "test_equal_shards_give_what_one_of_them_would"),
    "first": (lambda a, b: a, "test_operands_are_not_part_of_the_result"),
    "in place": (lambda a, b: np.add(a, b, out=a), "test_operands_are_unchanged"),
    "float64": (lambda a, b: np.add(a, b, dtype=float), "test_a_result_has_the_shape_and_dtype_of_its_operands"),
    "flat": (lambda a, b: np.ravel(a + b), "test_a_result_has_the_shape_and_dtype_of_its_operands"),
    "without NaN": (lambda a, b: np.nan_to_num(a) + np.nan_to_num(b), "test_a_value_that_is_not_finite_is_not_hidden"),
    "noise": (lambda a, b: a + b + 1e-4 * np.random.normal(), "test_equal_operands_give_equal_bits"),
}


@pytest.mark.parametrize("name", MERGERS)
def test_a_fault_in_a_merger_is_caught(name: str) -> None:
    class Made(Merger):
        def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
            merged: np.ndarray = MERGERS[name][0](parts[0], parts[1]) if len(parts) == 2 else parts[0].copy()
            return merged

    class Suite(MergerSuite):
        def make(self) -> Merger:
            return Made()

    found = failed(Suite())
    assert (MERGERS[name][1] in found) if MERGERS[name][1] else not found


# -- iterators ---------------------------------------------------------------------------------------------------------
class Shuffled(Iterator):
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return np.random.default_rng([seed, epoch, block]).permutation(rows)


class Global(Iterator):
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return np.random.permutation(rows)


class Counting(Iterator):
    calls = 0

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        self.calls += 1
        return np.roll(np.arange(rows), self.calls)


class WithReplacement(Iterator):
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return np.random.default_rng([seed, epoch, block]).integers(rows, size=rows)


class Floats(Iterator):
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return np.arange(rows, dtype=float)


class SmallSeeds(Iterator):
    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return np.random.RandomState(seed).permutation(rows)


class Cached(Iterator):
    def __init__(self) -> None:
        self.kept: dict[tuple[int, ...], np.ndarray] = {}

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return self.kept.setdefault((seed, epoch, block, rows), Shuffled().indices(seed, epoch, block, rows))


class Unordered(Shuffled):
    keeps_order = True


ITERATORS: dict[type[Iterator], str] = {
    Unordered: "test_every_row_comes_once",
    Shuffled: "",
    Global: "test_the_order_depends_on_the_arguments_alone",
    Counting: "test_the_order_depends_on_the_arguments_alone",
    WithReplacement: "test_every_row_comes_once",
    Floats: "test_every_row_comes_once",
    SmallSeeds: "test_seeds_and_epochs_beyond_32_bits_are_taken",
    Cached: "test_an_order_may_be_overwritten",
}


@pytest.mark.parametrize("iterator", ITERATORS)
def test_a_fault_in_an_iterator_is_caught(iterator: type[Iterator]) -> None:
    class Suite(IteratorSuite):
        def make(self) -> Iterator:
            return iterator()

    found = failed(Suite())
    assert (ITERATORS[iterator] in found) if ITERATORS[iterator] else not found


# -- readers and extractors --------------------------------------------------------------------------------------------
class Numbers(Reader):
    """A count, then as many 32-bit numbers."""

    def read(self, source: Source) -> dict[str, np.ndarray]:
        with source.open() as file:
            data = file.read()
        if len(data) < 4 or struct.unpack("<I", data[:4])[0] * 4 != len(data) - 4:
            raise SigmaDataError(f"{source.name}: is cut off. Restore it from a copy.")
        return {"values": np.frombuffer(data[4:], "<i4").copy()}


class Trusting(Numbers):
    def read(self, source: Source) -> dict[str, np.ndarray]:
        with source.open() as file:
            (count,) = struct.unpack("<I", file.read(4))
            return {"values": np.array([struct.unpack("<i", file.read(4))[0] for _ in range(count % 1000)])}


class Shared(Numbers):
    memory = np.arange(5)

    def read(self, source: Source) -> dict[str, np.ndarray]:
        super().read(source)
        return {"values": self.memory}


class Uneven(Numbers):
    def read(self, source: Source) -> dict[str, np.ndarray]:
        values = super().read(source)["values"]
        return {"values": values, "first": values[:1]}


class Objects(Numbers):
    def read(self, source: Source) -> dict[str, np.ndarray]:
        return {"values": super().read(source)["values"].astype(object)}


class Swallowing(Numbers):
    def read(self, source: Source) -> dict[str, np.ndarray]:
        try:
            return super().read(source)
        except SigmaDataError:
            return {"values": np.zeros(0)}


READERS: dict[type[Reader], str] = {
    Numbers: "",
    Trusting: "test_a_file_cut_anywhere_is_read_or_refused_with_a_data_error",
    Shared: "test_reading_twice_gives_the_same_and_shares_nothing",
    Uneven: "test_it_returns_named_arrays_with_one_row_per_record",
    Objects: "test_it_returns_named_arrays_with_one_row_per_record",
    Swallowing: "test_errors_of_the_source_pass_unchanged",
}


@pytest.mark.parametrize("reader", READERS)
def test_a_fault_in_a_reader_is_caught(reader: type[Reader]) -> None:
    class Suite(ReaderSuite):
        def make(self) -> Reader:
            return reader()

        def data(self) -> bytes:
            return struct.pack("<I5i", 5, *range(5))

    found = failed(Suite())
    assert (READERS[reader] in found) if READERS[reader] else not found


def _needed(records: Mapping[str, np.ndarray]) -> np.ndarray:
    if "a" not in records:
        raise SigmaDataError("column 'a': is missing. Name another.")
    return records["a"]


EXTRACTORS: dict[str, tuple[Callable[[Mapping[str, np.ndarray]], dict[str, Any]], str]] = {
    "right": (lambda x: {"inputs": _needed(x) * 2, "targets": _needed(x)}, ""),
    "sorts": (lambda x: {"inputs": np.sort(_needed(x))}, "test_samples_are_in_the_order_of_their_records"),
    "shortens": (lambda x: {"inputs": _needed(x), "targets": _needed(x)[1:]}, "test_sections_have_one_row_per_sample"),
    "nothing": (lambda x: {}, "test_sections_have_one_row_per_sample"),
    "a list": (lambda x: {"inputs": _needed(x).tolist()}, "test_sections_have_one_row_per_sample"),
    "in place": (lambda x: {"inputs": np.negative(_needed(x), out=_needed(x))}, "test_records_are_unchanged"),
    "a KeyError": (lambda x: {"inputs": x["a"]}, "test_a_missing_array_is_a_data_error"),
}


@pytest.mark.parametrize("name", EXTRACTORS)
def test_a_fault_in_an_extractor_is_caught(name: str) -> None:
    class Made(Extractor):
        def extract(self, records: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            return EXTRACTORS[name][0](records)

    class Suite(ExtractorSuite):
        def make(self) -> Extractor:
            return Made()

        def records(self) -> Mapping[str, np.ndarray]:
            return {"a": np.array([3.0, 1.0, 2.0, 5.0])}

    found = failed(Suite())
    assert (EXTRACTORS[name][1] in found) if EXTRACTORS[name][1] else not found


# -- exporters ---------------------------------------------------------------------------------------------------------
class Lines(Exporter):
    def export(self, network: Inference, path: Path) -> None:
        path.write_text("".join(f"{name} {values.tolist()}\n" for name, values in network.arrays.items()))


class Elsewhere(Lines):
    def export(self, network: Inference, path: Path) -> None:
        super().export(network, path.with_suffix(".txt"))


class Nothing(Exporter):
    def export(self, network: Inference, path: Path) -> None:
        path.touch()


class Dated(Lines):
    def export(self, network: Inference, path: Path) -> None:
        super().export(network, path)
        path.write_text(f"{path.read_text()}{time.perf_counter_ns()}")


class WithoutBiases(Lines):
    def export(self, network: Inference, path: Path) -> None:
        weights = {name: values for name, values in network.arrays.items() if name.endswith("weights")}
        super().export(evolve(network, arrays=weights), path)


class Rounds(Lines):
    def export(self, network: Inference, path: Path) -> None:
        for values in network.arrays.values():
            np.round(values, 2, out=values)
        super().export(network, path)


class IntoTheCurrentDirectory(Lines):
    def export(self, network: Inference, path: Path) -> None:
        super().export(network, path)
        Path("log.txt").touch()


class IntoTheParent(Lines):
    def export(self, network: Inference, path: Path) -> None:
        super().export(network, path)
        (path.parent.parent / "log.txt").touch()


class WholeNumbers(Lines):
    def export(self, network: Inference, path: Path) -> None:
        super().export(evolve(network, arrays={name: np.round(x) for name, x in network.arrays.items()}), path)


class SixDigits(Lines):
    def export(self, network: Inference, path: Path) -> None:
        lines = (" ".join(f"{value:.6g}" for value in np.ravel(values)) for values in network.arrays.values())
        path.write_text("\n".join(lines))


class Sums(Lines):
    def export(self, network: Inference, path: Path) -> None:
        sums = {name: np.sum(np.sort(values, axis=None)) for name, values in network.arrays.items()}
        super().export(evolve(network, arrays=sums), path)


class ReadsZeros(Lines):
    def arrays(self, path: Path) -> dict[str, np.ndarray]:
        return {name: np.zeros_like(values) for name, values in inference().arrays.items()}


class ReadsNothing(Lines):
    def arrays(self, path: Path) -> dict[str, np.ndarray]:
        return {}


EXPORTERS: dict[type[Exporter], str] = {
    Lines: "",
    Elsewhere: "test_it_writes_the_file_it_is_asked_for",
    Nothing: "test_it_writes_the_file_it_is_asked_for",
    Dated: "test_it_writes_the_same_bytes_every_time",
    WithoutBiases: "test_the_parameters_are_in_the_file",
    IntoTheCurrentDirectory: "test_it_writes_the_file_it_is_asked_for",
    IntoTheParent: "test_it_writes_the_file_it_is_asked_for",
    WholeNumbers: "test_the_parameters_are_in_the_file",
    SixDigits: "test_the_parameters_are_in_the_file",
    Sums: "test_the_parameters_are_in_the_file",
    ReadsZeros: "test_it_reads_what_it_writes",
    ReadsNothing: "test_it_reads_what_it_writes",
    Rounds: "test_it_leaves_the_arrays_as_they_are",
}


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_a_fault_in_an_exporter_is_caught(exporter: type[Exporter]) -> None:
    class Suite(ExporterSuite):
        def make(self) -> Exporter:
            return exporter()

    found = failed(Suite())
    assert (EXPORTERS[exporter] in found) if EXPORTERS[exporter] else not found


# -- costs with sample weights -----------------------------------------------------------------------------------------
class Weighted(CostLayer):
    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        rows = f.mean(f.square(output - targets), axis=1)
        return f.mean(rows) if weights is None else self.weighed(rows, weights)

    def weighed(self, rows: Node, weights: Node) -> Node | Totals:
        return Totals(f.sum(rows * weights), f.sum(weights))


class Ignoring(Weighted):
    def weighed(self, rows: Node, weights: Node) -> Node:
        return f.mean(rows)


class DividingByRows(Weighted):
    def weighed(self, rows: Node, weights: Node) -> Node:
        return f.mean(rows * weights * 2.0)


class Squaring(Weighted):
    def weighed(self, rows: Node, weights: Node) -> Totals:
        return Totals(f.sum(rows * weights * weights), f.sum(weights * weights))


@pytest.mark.parametrize("cost", [Weighted, Ignoring, DividingByRows, Squaring])
def test_a_fault_in_the_sample_weights_of_a_cost_is_caught(cost: type[CostLayer]) -> None:
    class Suite(CostSuite):
        inputs = (Spec((3,)), Spec((3,)))

        def make(self) -> CostLayer:
            return cost()

    assert ("test_sample_weights_act_as_numbers_of_copies" in failed(Suite())) == (cost is not Weighted)
