"""Recorded run folders replay without a difference, resume to the bits that were recorded, and predict as they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose

from tests.proofs.folders import EXPECTED, RUNS, by_command, copy_of, describe_resume, predictions
from tests.proofs.machine import differences, machine

pytestmark = pytest.mark.rooms

EACH = pytest.mark.parametrize("name", RUNS)


@pytest.fixture
def run(name: str, tmp_path: Path) -> Path:
    """Return a copy of a recorded run."""
    return copy_of(name, tmp_path)


@pytest.fixture
def expected(name: str) -> dict[str, Any]:
    return json.loads(EXPECTED.read_text("utf-8"))[name]


@pytest.fixture
def same_machine() -> None:
    """Skip a test of bits on another machine than that which recorded them."""
    if elsewhere := differences(json.loads(EXPECTED.read_text("utf-8"))["machine"], machine("numpy")):
        pytest.skip(elsewhere)


@EACH
@pytest.mark.usefixtures("same_machine")
def test_a_recorded_run_is_replayed_without_a_difference(run: Path) -> None:
    by_command("replay", str(run), "--check")


@EACH
@pytest.mark.usefixtures("same_machine")
def test_a_recorded_run_resumes_to_the_bits_that_were_recorded(run: Path, expected: dict[str, Any]) -> None:
    assert describe_resume(run) == expected["resumed"]


@EACH
def test_a_recorded_run_predicts_what_it_predicted(run: Path, expected: dict[str, Any]) -> None:
    if run.name == "text":
        assert predictions(run) == expected["predictions"]
    else:
        assert_allclose(predictions(run), expected["predictions"], rtol=1e-4)
