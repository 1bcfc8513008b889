"""The table of performance.md that compares the recipes with PyTorch."""

from __future__ import annotations

import re

import pytest

from figures import recipe_table

PERFECT = {"sigma": [1.0, 0.9], "same": [1.0, 0.9], "own": [0.9, 0.9]}


def test_the_page_has_the_scores_that_were_kept():
    page = recipe_table.PAGE.read_text("utf-8")
    assert recipe_table.insert(page, recipe_table.read()) == page, "Run python -m figures.recipes in docs/"


@pytest.mark.rooms
def test_every_recipe_that_trains_has_a_row():
    assert {name.partition(",")[0] for name in recipe_table.read()} == recipe_table.trained()


@pytest.mark.parametrize("name", recipe_table.read())
def test_a_row_has_five_seeds_or_more_and_means_as_close_as_the_page_says(name):
    one = recipe_table.read()[name]
    assert len(one["own"]) == 5
    assert len(one["sigma"]) == len(one["same"]) >= 5
    assert recipe_table.agrees(one["measure"], one)


def test_accuracies_differ_in_points_and_errors_in_shares():
    further = {**PERFECT, "same": [0.95, 0.93]}
    assert recipe_table.difference("accuracy", further) == pytest.approx(1.0)
    assert recipe_table.agrees("accuracy", {**PERFECT, "same": [0.95, 0.931]})
    assert not recipe_table.agrees("accuracy", {**PERFECT, "same": [0.95, 0.929]})
    assert recipe_table.difference("squared error", PERFECT, "own") == pytest.approx(0.95 / 0.9 - 1)
    assert not recipe_table.agrees("squared error", {**PERFECT, "same": [0.92, 0.92]})


def test_the_error_of_a_difference_is_that_of_its_pairs():
    apart = {**PERFECT, "same": [0.95, 0.81]}  # differences 0.05 and 0.09: 0.07 on average, with an error of 0.02
    assert recipe_table.error("squared error", apart) == pytest.approx(0.02 / 0.88)
    assert recipe_table.error("accuracy", apart) == pytest.approx(2.0)


def test_a_row_shows_means_spreads_and_the_difference():
    (row,) = re.findall(r"^\| `it`.*$", recipe_table.table({"it": {"measure": "accuracy", **PERFECT}}), re.MULTILINE)
    assert row == "| `it` | accuracy | 2 | 95.00 ± 7.07 | 95.00 ± 7.07 | 90.00 ± 0.00 | +0.00 ± 0.00 points |"
    error = {"measure": "squared error", **PERFECT, "same": [0.5, 0.45]}
    assert "| 0.475 ± 0.0354 | 0.900 ± 0.00 | +100.0% ± 5.3% |" in recipe_table.table({"it": error})
