"""Conformance suite for generators of text, to inherit in a plugin's tests.

::

    class TestCharacters(GeneratorSuite):
        text = "To be"

        def make(self) -> TextGenerator:
            return Characters()

        def trainer(self) -> Trainer:
            return trained_on_a_text()
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from sigma_kernel.contracts import TextGenerator
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.steering import state_bytes

WRONG = ({"length": -1}, {"length": 1.5}, {"temperature": -1.0}, {"temperature": float("nan")}, {"seed": -1})


class GeneratorSuite(DeterministicSuite):
    """Conformance tests of a generator of text: inherit, and override :meth:`make`, :meth:`trainer` and ``text``."""

    text: ClassVar[str]  # which a network continues

    @abstractmethod
    def make(self) -> TextGenerator:
        """Return the generator under test."""

    @abstractmethod
    def trainer(self) -> Any:
        """Return a trainer with a network that can continue the text."""

    def pieces(self, text: str | None = None, **how: Any) -> list[str]:
        """Return what continues a text, by default that of the suite."""
        trainer = self.trainer()
        trainer.prepare()
        evaluator, steps = trainer.view.evaluator_and_steps()
        how = {"length": 6, **how}
        return [*self.make().continuation(steps, evaluator, self.text if text is None else text, **how)]

    def use(self) -> None:
        """Make it, and use it once."""
        self.pieces(length=1)

    def results(self) -> Mapping[str, Any]:
        """Return what continues the text."""
        return {"text": self.pieces(seed=3)}

    def test_as_many_pieces_come_as_were_asked_for(self) -> None:
        """Yield `length` texts, none of them empty."""
        for length in (0, 1, 7):
            pieces = self.pieces(length=length)
            assert len(pieces) == length
            assert all(isinstance(piece, str) and piece for piece in pieces)

    def test_the_same_seed_continues_a_text_in_the_same_way(self) -> None:
        """Draw from sigma_kernel.graph.Draw(seed, stream) alone, one piece after another."""
        first = self.pieces(length=12, seed=3)
        assert first == self.pieces(length=12, seed=3)
        assert first[:5] == self.pieces(length=5, seed=3)

    def test_at_temperature_0_the_seed_makes_no_difference(self) -> None:
        """Take the most probable piece there."""
        assert self.pieces(temperature=0, seed=1) == self.pieces(temperature=0, seed=2)

    def test_wrong_settings_are_refused(self) -> None:
        """Raise SigmaConfigError for a setting out of range, SigmaDataError for an empty text."""
        for wrong in WRONG:
            with pytest.raises(SigmaConfigError):
                self.pieces(**wrong)
        with pytest.raises(SigmaDataError):
            self.pieces("")

    def test_the_trainer_stays_as_it_was(self) -> None:
        """Write to no array of the steps, and close nothing."""
        trainer = self.trainer()
        before = state_bytes(trainer)
        evaluator, steps = trainer.view.evaluator_and_steps()
        assert [*self.make().continuation(steps, evaluator, self.text, 3)]
        assert state_bytes(trainer) == before
