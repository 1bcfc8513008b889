"""Which monitors watch an environment by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sigma_kernel.plugins.catalogue import Catalogue, catalogue
from sigma_kernel.watchers import find_progress_monitor, find_steering_monitor

SCREEN = """
from sigma_kernel import Monitor

class Screen(Monitor):
    talks = True

    def watch(self, view):
        pass
"""


def test_the_default_monitor_is_that_of_its_role_even_if_another_plugin_has_one_of_the_same_name(
    distribution: Callable[..., Any],
) -> None:
    record = "'monitor', 'screen', 'acme_{}.screen:Screen', 'A screen.'"
    distribution("acme-first", record.format("first"), screen=SCREEN)
    distribution("acme-second", record.format("second") + ", default_for='progress'", screen=SCREEN)
    known = Catalogue(tuple(plugin for plugin in catalogue().plugins if plugin.name.startswith("acme-")))
    (monitor,) = find_progress_monitor(known, True, {}).values()
    assert type(monitor).__module__ == "acme_second.screen"
    assert find_progress_monitor(known, True, {"loud": monitor}) == {}  # it writes to the terminal itself
    assert find_progress_monitor(known, False, {}) == {}


def test_no_monitor_steers_where_that_is_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_steering_monitor(catalogue(), False) == {}
    monkeypatch.setenv("SIGMA_CONTROL", "off")
    assert find_steering_monitor(catalogue(), True) == {}
