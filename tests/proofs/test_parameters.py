"""Recipes end in the parameters and losses that were recorded in ``parameters.json``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.proofs.machine import differences, machine
from tests.proofs.parameters import BACKENDS, FILE, SHORT, train
from tests.reliability.amount import DAILY, LONG

pytestmark = pytest.mark.rooms

FAST = [("bench-iris", "numpy"), ("digits", "numpy"), ("iris", "numpy"), ("wdbc", "numpy")]
ALL = [(recipe, backend) for backend in BACKENDS for recipe in SHORT]
RUNS = pytest.mark.parametrize(("recipe", "backend"), ALL if LONG or DAILY else FAST)


def recorded() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8"))


@RUNS
def test_a_recipe_ends_in_the_losses_that_were_recorded(recipe: str, backend: str) -> None:
    then, now = recorded()[backend][recipe], train(recipe, backend)
    assert now["iterations"] == then["iterations"]
    assert now["metrics"] == pytest.approx(then["metrics"], rel=0.01)


@RUNS
def test_a_recipe_ends_in_the_bits_that_were_recorded(recipe: str, backend: str) -> None:
    if elsewhere := differences(recorded()["machine"][backend], machine(backend)):
        pytest.skip(elsewhere)
    assert train(recipe, backend) == recorded()[backend][recipe]


def test_every_recipe_was_recorded_on_both_backends() -> None:
    assert all(list(recorded()[backend]) == list(SHORT) for backend in BACKENDS)
