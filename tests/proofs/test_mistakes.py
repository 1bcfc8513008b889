"""Mistakes in files and in Python are told in the sentences that were recorded."""

from __future__ import annotations

from tests.proofs import mistakes


def test_mistakes_are_told_in_the_sentences_that_were_recorded() -> None:
    assert mistakes.text() == mistakes.RECORDED.read_text("utf-8")


def test_no_recorded_mistake_ends_in_an_error_of_python() -> None:
    lines = mistakes.RECORDED.read_text("utf-8").splitlines()
    assert not [line for line in lines if line.startswith(("    TypeError", "    AttributeError", "    KeyError"))]
