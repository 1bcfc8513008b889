"""The state after a burst has all fields of the state before, but for those that a burst changes."""

from __future__ import annotations

from attrs import evolve, fields

from sigma_training.session.state import RunState

CHANGED = ("arrays", "cursor", "moment", "published", "sums")


def test_a_burst_changes_some_fields_and_keeps_the_others():
    state = RunState(**{field.name: object() for field in fields(RunState)})
    new = {name: object() for name in CHANGED}
    after, evolved = state.after_burst(**new), evolve(state, **new)
    assert [getattr(after, field.name) for field in fields(RunState)] == [
        getattr(evolved, field.name) for field in fields(RunState)
    ]


def test_a_state_without_arrays_keeps_their_names():
    state = RunState(**{**{field.name: object() for field in fields(RunState)}, "arrays": {"a": 1, "b": 2}})
    bare = state.without_arrays()
    assert bare.arrays == {"a": None, "b": None}
    assert all(getattr(bare, f.name) is getattr(state, f.name) for f in fields(RunState) if f.name != "arrays")
