"""Workers that are killed or suspended at random moments change no bits."""

from __future__ import annotations

import pytest

import sigma_operator_processes  # noqa: F401
from tests.reliability.amount import SEED, amount
from tests.reliability.workers import train_disturbed, train_undisturbed


@pytest.mark.long
def test_workers_that_are_killed_or_suspended_change_no_bits() -> None:
    wanted = train_undisturbed()
    runs = [train_disturbed(seed) for seed in range(SEED, SEED + amount(1, 5, 200))]
    assert [hashed for hashed, _ in runs] == [wanted] * len(runs)
    assert sum(counts.total() for _, counts in runs) > 0
