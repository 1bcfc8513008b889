"""A browser for the tests of this folder. They are marked, so that nothing else needs one: ``tox -e browser``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PLAYWRIGHT = "The browser is driven by Playwright, which is not installed: python -m pip install playwright"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browsers() -> Any:
    """Return the module that finds and drives browsers."""
    try:
        return import_module("figures.browser")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "playwright":
            raise
        return _lacking(PLAYWRIGHT)


def _lacking(text: str) -> None:
    """Fail loudly where all tests must run, and skip on a machine of somebody who has no browser."""
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@pytest.fixture(scope="session")
def chromium(browsers: Any) -> Iterator[Any]:
    """Return a headless Chromium."""
    try:
        browsers.CHROMIUM.executable()
    except browsers.NoBrowserError as error:
        _lacking(str(error))
    with browsers.browser() as found:
        yield found


@pytest.fixture
def visit(browsers: Any, chromium: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens an empty window with storage of its own."""
    windows = []

    def begin(*arguments: Any) -> Any:
        windows.append(browsers.Visit.begin(chromium, *arguments))
        return windows[-1]

    yield begin
    for window in windows:
        window.end()


@pytest.fixture(scope="module")
def training(browsers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a run with a dashboard that trains as long as the tests of a module need."""
    with browsers.run(tmp_path_factory.mktemp("run"), "digits", *browsers.ENDLESS, *browsers.SLOWLY) as run:
        yield run
