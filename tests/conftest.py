"""The rule that tests which need missing rooms are skipped."""

from __future__ import annotations

import pytest

from sigma_kernel.plugins.catalogue import catalogue

ENGINE = {
    "sigma-curation",
    "sigma-run",
    "sigma-store",
    "sigma-training",
}  # what tox installs beside the kernel to test it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if {plugin.name for plugin in catalogue().plugins} - ENGINE:
        return
    for item in items:
        if item.get_closest_marker("rooms"):
            item.add_marker(pytest.mark.skip(reason="needs rooms, and none is installed"))
