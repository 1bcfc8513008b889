"""The values that trials are asked for: choices of any type, and grids of any size."""

from __future__ import annotations

import tomllib
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from sigma_search import Dimension, Outcome, SearchSettings, propose
from sigma_search.results import inline


def settings(space, sampler="random"):
    return SearchSettings(trials=9, maximise="score", sampler=sampler, space=space)


@pytest.mark.parametrize("sampler", ["random", "tpe"])
@pytest.mark.parametrize(
    "choices", [[1, 1.0], [1.0, 1], [0, False], [True, 1, 1.0], [[1], [1.0]], [{"a": 0}, {"a": False}]]
)
def test_equal_choices_of_other_types_are_others(choices, sampler, monkeypatch):
    import optuna

    indices = []
    create = optuna.trial.create_trial
    monkeypatch.setattr(optuna.trial, "create_trial", lambda **a: indices.append(a["params"]["x"]) or create(**a))
    known = [({"x": choice}, Outcome("finished", 0.5)) for choice in choices]
    value = propose(settings({"x": Dimension(choices=choices)}, sampler), 0, len(known), known, [])["x"]
    assert indices == [*range(len(choices))]
    assert inline(value) in map(inline, choices)


@given(st.recursive(st.text(st.characters(exclude_categories=["Cs"])) | st.booleans() | st.integers(), st.lists))
def test_values_are_read_back_from_their_texts(value):
    read = tomllib.loads(f"value = {inline(value)}")["value"]
    assert (read, inline(read)) == (value, inline(value))


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False)))
def test_tables_are_read_back_from_their_texts(table):
    assert tomllib.loads(f"value = {inline(table)}")["value"] == table


def test_a_trial_of_a_large_grid_takes_no_more_than_its_point():
    space = {name: Dimension(low=1, high=60) for name in "abc"}
    grid = settings(space, "grid")
    tracemalloc.start()
    try:
        assert propose(grid, 0, 61, [], []) == {"a": 1, "b": 2, "c": 2}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1e5  # a list of all points takes more than 1e7
