"""The suite of encoders fails for planted faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sigma_kernel import Encoder, SigmaDataError
from sigma_testing import EncoderSuite

from .faults import check_caught


class Share(Encoder):
    """The share of the training rows that have a value; one without precedent is refused."""

    section = "inputs"
    kinds: ClassVar[tuple[str, ...]] = ("category",)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        counts: dict[str, int] = {}
        rows = 0
        for column in columns:
            self.refuse(pc.is_null(column), rows)
            for pair in pc.value_counts(column).to_pylist():
                counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
            rows += len(column)
        return {"counts": dict(sorted(counts.items())), "rows": rows}

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        places = pc.index_in(column, value_set=pa.array([*state["counts"]], pa.string()))
        self.refuse(pc.is_null(places))
        shares = np.array([*state["counts"].values()]) / state["rows"]
        return shares[places.to_numpy(zero_copy_only=False).astype(int)][:, None]

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        return (column,)

    def refuse(self, wrong: Any, before: int = 0) -> None:
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            raise SigmaDataError("a value is missing. Give one.", row=before + row)


class OfNothing(Share):
    kinds: ClassVar[tuple[str, ...]] = ("words",)


class Flat(Share):
    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        return super().apply(column, state)[:, 0]


class SingleFloats(Share):
    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        return super().apply(column, state).astype(np.float32)


class NamesTwice(Share):
    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        return (column, column)


class LearnsArrays(Share):
    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        return {**super().fit(columns, targets), "rows": np.int64(4)}


class KeepsItsState(Share):
    def __init__(self) -> None:
        self.state: Any = {"counts": {}, "rows": 0}

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        self.state = super().fit(columns, targets)
        return {}

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        return super().apply(column, self.state)


class CountsBatches(Share):
    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        return {**super().fit(columns, targets), "batches": sum(1 for _ in columns)}


class Indexes(Share):
    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        return super().fit([columns[i] for i in range(len(columns))])  # type: ignore[index, arg-type]


class Accumulates(Share):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        self.seen += [*columns]
        return super().fit(self.seen)


class SharesOfTheBatch(Share):
    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        return super().apply(column, {**state, "rows": len(column)})


class TrainsByPlace(Share):
    def apply_training(self, column: Any, state: Mapping[str, Any], rows: np.ndarray) -> np.ndarray:
        return self.apply(column, state) * np.arange(len(column))[:, None]


class NothingOfNothing(Share):
    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        return super().apply(column, state) if len(column) else np.zeros((0, 0))


class RefusesWithoutARow(Share):
    def refuse(self, wrong: Any, before: int = 0) -> None:
        if pc.any(wrong).as_py():
            raise SigmaDataError("a value is missing. Give one.")


class RefusesByRowOfTheBatch(Share):
    def refuse(self, wrong: Any, before: int = 0) -> None:
        super().refuse(wrong)


class UnseenIsNoNumber(Share):
    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        places = pc.index_in(column, value_set=pa.array([*state["counts"]], pa.string()))
        return places.to_numpy(zero_copy_only=False).astype(float)[:, None]


class LearnsWhileApplying(Share):
    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        encoded = super().apply(column, state)
        state["counts"]["a"] += 1
        return encoded


MANY = "test_a_value_becomes_as_many_finite_numbers_as_there_are_names"
SAVED = "test_the_state_is_saved_as_json_and_is_all_that_another_encoder_needs"
LAYOUT = "test_the_state_does_not_depend_on_the_layout_of_batches"
ALONE = "test_each_row_is_encoded_alone"
PRECEDENT = "test_a_value_without_precedent_is_encoded_or_refused_by_row"
ENCODERS: dict[type[Encoder], str] = {
    Share: "",
    OfNothing: "test_it_declares_the_kinds_of_columns_that_it_takes",
    Flat: MANY,
    SingleFloats: MANY,
    NamesTwice: MANY,
    LearnsArrays: SAVED,
    KeepsItsState: SAVED,
    CountsBatches: LAYOUT,
    Indexes: LAYOUT,
    Accumulates: "test_fitting_again_forgets_what_was_fitted_before",
    SharesOfTheBatch: ALONE,
    TrainsByPlace: ALONE,
    NothingOfNothing: "test_a_batch_without_rows_has_the_same_width",
    RefusesWithoutARow: PRECEDENT,
    UnseenIsNoNumber: PRECEDENT,
    RefusesByRowOfTheBatch: "test_a_missing_training_value_is_used_or_refused_by_row",
    LearnsWhileApplying: "test_applying_changes_no_state",
}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_fault_in_an_encoder_is_caught(encoder: type[Encoder]) -> None:
    class Suite(EncoderSuite):
        def make(self) -> Encoder:
            return encoder()

        def column(self) -> Any:
            return pa.array(["a", "b", "a", "c", "b", "a"])

        def unseen(self) -> Any:
            return pa.array(["d"])

    check_caught(Suite(), ENCODERS[encoder])
