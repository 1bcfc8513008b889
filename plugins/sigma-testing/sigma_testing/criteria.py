"""Conformance suite for criteria, to inherit in a plugin's tests.

::

    class TestWithin(CriterionSuite):
        def make(self) -> Criterion:
            return Within("x", high=2.0)

        def rows(self) -> list[dict[str, float]]:
            return [{"x": 1.0}, {"x": 3.0}]

        def expected(self) -> list[bool]:
            return [True, False]
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from sigma_kernel.clock import Moment
from sigma_kernel.criteria import Criterion
from sigma_testing.determinism import DeterministicSuite


class CriterionSuite(DeterministicSuite):
    """Conformance tests of a criterion: inherit, and override the three abstract methods."""

    @abstractmethod
    def make(self) -> Criterion:
        """Return the criterion under test."""

    @abstractmethod
    def rows(self) -> Sequence[Mapping[str, float]]:
        """Return the published values by address, a row for each evaluation, at some of which it holds."""

    @abstractmethod
    def expected(self) -> Sequence[bool | None]:
        """Return the expected answers for each row: whether it holds, or None if unknown."""

    def answers(self, rows: Sequence[Mapping[str, Any]], anew: bool = False) -> list[bool | None]:
        """Return its answers; if ``anew``, each is that of a new criterion, with the memory read back from JSON."""
        criterion, memory, answers = self.make(), dict[str, Any](), []
        for at, row in enumerate(rows, 1):
            if anew:
                criterion, memory = self.make(), json.loads(json.dumps(memory))
            answer = criterion.answer(lambda address, row=row: self._read(row, address), memory, Moment(at, at))  # type: ignore[misc]
            assert answer is None or type(answer) is bool, f"it answers {answer!r}. Answer True, False or None."
            answers.append(answer)
        return answers

    def results(self) -> Mapping[str, Any]:
        """Return its answers."""
        return {"answers": self.answers(self.rows())}

    def test_it_declares_a_list_of_addresses(self) -> None:
        """Return a tuple or a list of addresses from addresses()."""
        declared = self.make().addresses()
        assert not isinstance(declared, str), f"addresses() is the text {declared!r}. Return ({declared!r},)."
        assert all(isinstance(address, str) and address for address in declared), f"no addresses: {declared!r}"

    def _read(self, row: Mapping[str, Any], address: str) -> Any:
        declared = self.make().addresses()
        assert address in declared, f"it reads {address!r} without declaring it. Return it from addresses()."
        return row.get(address)

    def test_it_answers_what_is_expected(self) -> None:
        """Compare answer() with expected(), row by row."""
        answers, wanted = self.answers(self.rows()), [*self.expected()]
        assert answers == wanted, f"expected {wanted} (got {answers})."
        assert True in answers, f"it never holds (got {answers}). Return rows at some of which it does."

    def test_its_memory_is_plain_data_and_is_its_only_state(self) -> None:
        """Keep nothing on the criterion, which is evaluated from a saved memory."""
        first, anew = self.answers(self.rows()), self.answers(self.rows(), anew=True)
        assert first == anew, f"with memory read back from JSON it answers {anew} (got {first}). Keep state in memory."

    def test_it_does_not_hold_where_values_are_unpublished_or_not_numbers(self) -> None:
        """Look for None and NaN before comparing."""
        for value in (None, nan):
            rows = [dict.fromkeys(row, value) for row in self.rows()]
            assert True not in self.answers(rows), f"it holds for values of {value}. Answer None, for unknown."

    def test_its_text_is_read_back_as_an_equal_criterion(self) -> None:
        """Use settings that are numbers, booleans or strings."""
        rule = self.make()
        read = Criterion.parse(str(rule)).bound(lambda kind, name: type(rule))
        assert read == rule, f"{rule} is read back as another criterion. Decorate its class with attrs.frozen."
