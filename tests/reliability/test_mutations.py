"""Faults that are planted in the code differ from it in one place each."""

from __future__ import annotations

import ast

from tests.reliability.mutations import mutants

CODE = """\
def first(items, n):
    if n < 0 and items:
        return items[n + 1]
    return None
"""


def test_each_mutant_changes_one_place_and_restores_it():
    tree = ast.parse(CODE)
    before, found = ast.unparse(tree), {}
    for line, what in mutants(tree):
        text = ast.unparse(tree)
        assert sum(a != b for a, b in zip(text.splitlines(), before.splitlines(), strict=True)) == 1
        found[what] = line
    assert ast.unparse(tree) == before
    assert found == {
        "And -> Or": 2, "Lt -> LtE": 2, "0 -> 1": 2, "return items[n + 1] -> return None": 3, "Add -> Sub": 3,
        "1 -> 2": 3,
    }  # fmt: skip
