"""Run the tests of a suite on a component with a planted fault, and tell which fail."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)  # skipped: it cannot be used at all
RECORDS = {"record_property": lambda name, value: None}  # fixtures of pytest that tests of suites use


def failed(suite: Any) -> set[str]:
    """Return the names of the tests that a component fails; test_second_process.py has those that need a session."""
    found = set()
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        for given in _cases(test) if name.startswith("test_") else ():
            try:
                test(**given)
            except FAILURES:
                found.add(name)
    return found


def check_caught(suite: Any, test: str) -> None:
    """Assert that a suite fails in the test that is meant for a fault; in no test, if none is named."""
    found = failed(suite)
    assert test in found if test else not found, f"{test or 'nothing'} should fail; failed: {found}"


def _cases(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    names = [mark.args[0] for mark in marks]
    if "request" in inspect.signature(test).parameters:
        return
    fixtures = {name: RECORDS[name] for name in inspect.signature(test).parameters if name in RECORDS}
    for values in product(*(mark.args[1] for mark in marks)):
        yield {**fixtures, **dict(zip(names, values, strict=True))}


def check_fails(suite: Any, test: str) -> None:
    """Assert that the one test of a suite that is meant for a fault fails; quicker than running all."""
    with pytest.raises(FAILURES):
        getattr(suite, test)()
