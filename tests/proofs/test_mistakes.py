"""Mistakes in files and in Python are told in the sentences that were recorded."""

from __future__ import annotations

import pytest

from tests.proofs import mistakes
from tests.reliability.amount import DAILY, LONG

pytestmark = pytest.mark.rooms


SOME = 1 if LONG or DAILY else 4


def test_mistakes_are_told_in_the_sentences_that_were_recorded() -> None:
    recorded = mistakes.RECORDED.read_text("utf-8").rstrip("\n").split("\n\n")
    here = list(mistakes.entries(SOME))
    assert [entry for entry in here if entry not in recorded] == []
    assert len(here) == len(recorded) or SOME > 1


def test_no_recorded_mistake_ends_in_an_error_of_python() -> None:
    lines = mistakes.RECORDED.read_text("utf-8").splitlines()
    assert not [line for line in lines if line.startswith(("    TypeError", "    AttributeError", "    KeyError"))]
