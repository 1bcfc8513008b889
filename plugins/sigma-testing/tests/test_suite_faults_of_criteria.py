"""The suite of criteria fails for planted faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel import Criterion, Moment
from sigma_testing import CriterionSuite

from .faults import check_caught


@frozen
class Above(Criterion):
    value: str
    limit: float = 0.0

    def addresses(self) -> tuple[str, ...]:
        return (self.value,)

    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        value = lookup(self.value)
        return None if value is None or value != value else bool(value > self.limit)


class Undeclared(Above):
    def addresses(self) -> tuple[str, ...]:
        return ()


class OneAddress(Above):
    def addresses(self) -> Any:
        return self.value


class OfNumPy(Above):
    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> Any:
        answer = super().answer(lookup, memory, moment)
        return None if answer is None else np.bool_(answer)


class Certain(Above):
    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        return not (lookup(self.value) or 0.0) <= self.limit


class Optimistic(Above):
    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        return super().answer(lookup, memory, moment) is not False


class Forgetful(Above):
    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        memory[1] = memory.get(1, 0) + 1  # type: ignore[index]
        return super().answer(lookup, memory, moment) if memory[1] < 3 else False  # type: ignore[index]


class Unequal(Above):
    def __init__(self, value: str, limit: float = 0.0) -> None:
        self.__attrs_init__(value, limit)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]


class Wrong(Above):
    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        return super().answer(lookup, memory, moment) is None


@frozen
class Aboves(CriterionSuite):
    made: type[Above]

    def make(self) -> Criterion:
        return self.made("x", 1.0)

    def rows(self) -> list[dict[str, float]]:
        return [{"x": x} for x in (2.0, 0.5, 3.0, 4.0)]

    def expected(self) -> list[bool | None]:
        return [True, False, True, True]


@pytest.mark.parametrize(
    ("made", "test"),
    [
        (Above, ""),
        (Wrong, "test_it_answers_what_is_expected"),
        (Undeclared, "test_it_answers_what_is_expected"),
        (OneAddress, "test_it_declares_a_list_of_addresses"),
        (OfNumPy, "test_it_answers_what_is_expected"),
        (Forgetful, "test_its_memory_is_plain_data_and_is_its_only_state"),
        (Optimistic, "test_it_does_not_hold_where_values_are_unpublished_or_not_numbers"),
        (Certain, "test_it_does_not_hold_where_values_are_unpublished_or_not_numbers"),
        (Unequal, "test_its_text_is_read_back_as_an_equal_criterion"),
    ],
)
def test_the_suite_fails_for_planted_faults(made: type[Above], test: str) -> None:
    check_caught(Aboves(made), test)
