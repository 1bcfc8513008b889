"""Find columns that give the answer away, and those that may name groups of rows."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np

from sigma_data.profiling.profile import MOST, ColumnProfile, Profile

CERTAIN = 0.999  # correlation, or share of rows, from which a column gives the target away
ENOUGH = 20  # rows below which chance can look like a leak
GROUPS = re.compile(
    r"(?:^|[_\s.-])(?:person|patient|subject|user|customer|client|participant|session|visit|household|family|group|"
    r"site|hospital|school|store|shop|device|machine|sensor|station)(?:$|[_\s.-]|id$|no$)",
    re.IGNORECASE,
)


def find_leaks(table: Any, target: str, classes: bool, inputs: tuple[str, ...]) -> dict[str, str]:
    """Return the inputs that give the target away, each with the reason.

    A number leaks numbers that it is proportional to, and classes that one threshold for each tells apart; a word leaks
    the class that all of its rows have.
    """
    table = table.slice(0, MOST)
    with_target = np.asarray(table[target].is_valid())
    if with_target.sum() < ENOUGH:
        return {}
    goal = _codes(table[target]) if classes else _floats(table[target])
    reasons = {}
    for name in inputs:
        column = table[name]
        numeric = _is_numeric(column)
        there = with_target & np.asarray(column.is_valid())
        if there.sum() < max(ENOUGH, with_target.sum() / 2):
            continue
        values = _floats(column) if numeric else _codes(column)
        there &= np.isfinite(values)
        if reason := describe_leak(values[there], goal[there], numeric, classes):
            reasons[name] = reason
    return reasons


def describe_leak(values: np.ndarray, goal: np.ndarray, numeric: bool, classes: bool) -> str:
    """Return why values give a goal away; empty if they do not."""
    if len(np.unique(goal)) < 2 or len(np.unique(values)) < 2:
        return ""
    if numeric and not classes:
        correlation = abs(float(np.corrcoef(values, goal)[0, 1]))
        return f"its correlation with the target is {correlation:.4f}" if correlation >= CERTAIN else ""
    if numeric:
        return "thresholds on it tell all classes apart" if _separates(values, goal) else ""
    few = len(np.unique(values)) <= len(values) / 4
    return "each of its values has one target" if few and _is_function(values, goal) else ""


def _separates(values: np.ndarray, goal: np.ndarray) -> bool:
    """Return whether the classes follow each other in the order of the values, without a value in two classes."""
    order = np.lexsort((goal, values))
    ordered = goal[order]
    runs = 1 + int((ordered[1:] != ordered[:-1]).sum())
    return runs == len(np.unique(goal)) and _is_function(values, goal)


def _is_function(values: np.ndarray, goal: np.ndarray) -> bool:
    """Return whether rows with equal values have equal goals."""
    order = np.argsort(values, kind="stable")
    values, goal = values[order], goal[order]
    same = values[1:] == values[:-1]
    return bool((goal[1:][same] == goal[:-1][same]).all())


def find_groups(profile: Profile, target: str) -> list[ColumnProfile]:
    """Return the columns that may name the person, place or session of several rows."""
    return [
        column
        for column in profile.columns
        if column.name != target
        and GROUPS.search(column.name)
        and column.kind in ("number", "category", "identifier")
        and 2 < column.distinct <= column.rows / 2
    ]


def _is_numeric(column: Any) -> bool:
    types = import_module("pyarrow").types
    return bool(types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type))


def _floats(column: Any) -> np.ndarray:
    """Return a column of numbers or booleans as float64, NaN where missing."""
    pc = import_module("pyarrow.compute")
    number = column.cast("int8") if import_module("pyarrow").types.is_boolean(column.type) else column
    return np.asarray(pc.fill_null(pc.cast(number, "float64", safe=False), float("nan")), np.float64)


def _codes(column: Any) -> np.ndarray:
    """Return a number for each distinct value, -1 where missing."""
    pc, pa = import_module("pyarrow.compute"), import_module("pyarrow")
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    whole = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
    whole = whole.chunk(0) if hasattr(whole, "chunk") else whole
    return np.asarray(pc.fill_null(whole.indices, -1), np.int64)
