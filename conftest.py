"""Train on the backend numpy where a test names none: it has nothing to compile.

Compiled programs are not optimised, except in the tests of their backend: most run for a moment.  No run is steered
from other shells, except where a test is about that.  Tests of rooms that are not installed are left out; those that
import rooms are marked, so that each test runs once: with the kernel alone, or with its rooms. So are cases that are
long.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ENGINE = {"sigma_kernel", "sigma_run", "sigma_store", "sigma_testing"}  # what tox installs to test the kernel
pytest_plugins = ["sigma_testing.fixtures"]
os.environ.setdefault("SIGMA_BACKEND", "numpy")
os.environ.setdefault("SIGMA_CONTROL", "off")
os.environ.setdefault("SIGMA_NUMBA_OPTIMISATION", "0")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore test files that import rooms which are not installed, so that some can be tested alone."""
    if collection_path.suffix != ".py" or "peers" in collection_path.parts:
        return None
    missing = {name for name in _rooms_imported(collection_path) if find_spec(name) is None}
    return True if missing else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of files that import rooms, besides those of the engine, and cases that are long."""
    for item in items:
        if _rooms_imported(item.path) - ENGINE:
            item.add_marker("rooms")
        cases = item.get_closest_marker("long_cases")
        if cases is not None and isinstance(item, pytest.Function) and item.callspec.id in cases.args:
            item.add_marker("long")


@cache
def _rooms_imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "tests":
            names.update(*(_rooms_imported(path.with_name(f"{alias.name}.py")) for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return {name for name in names if name.startswith("sigma_")}
