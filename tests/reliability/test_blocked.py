"""Runs on tables that are read in blocks compute what they do in memory, to the bit, for settings that are drawn."""

from __future__ import annotations

import pytest

import sigma_data  # noqa: F401  # left out where this room is not installed
from tests.reliability.amount import SEED, amount
from tests.reliability.blocked import compare, draw_case

pytestmark = pytest.mark.rooms


@pytest.mark.long_cases("3", "5")
@pytest.mark.parametrize("number", range(amount(8, 50, 1000)))
def test_a_run_on_a_table_in_blocks_computes_what_it_does_in_memory(number: int) -> None:
    case = draw_case(SEED + number)
    assert not compare(case), case
