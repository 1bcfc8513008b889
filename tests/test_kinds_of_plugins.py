"""Kinds that plugins have of their own: records of them are listed, found by name, and suggested."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.specs import is_kind, place_of

pytestmark = pytest.mark.rooms
MAZE = '"acme-worlds:world", "maze", "acme_maze.maze:Maze", "Find the way out."'
LAKE = '"acme-worlds:world", "lake", "acme_worlds.lake:Lake", "Stay on the ice."'


@pytest.fixture
def worlds(distribution: Callable[..., Any]) -> None:
    """Install a plugin with a kind of its own, and one that offers another component of it."""
    assert distribution("acme-worlds", LAKE, lake="class Lake: step = None\n").state == "ready"
    assert distribution("acme-maze", MAZE, maze="class Maze: step = None\n").state == "ready"


def test_components_of_two_distributions_are_found_by_name(worlds: None) -> None:
    loaded = [catalogue().load("acme-worlds:world", name) for name in ("maze", "lake", "acme-maze:maze")]
    assert [made.__name__ for made in loaded] == ["Maze", "Lake", "Maze"]  # type: ignore[attr-defined]


def test_a_name_that_nobody_offers_is_an_error_that_suggests_another(worlds: None) -> None:
    with pytest.raises(SigmaConfigError, match=r"acme-worlds:world 'mase': no plugin offers it\. Did you mean 'maze'"):
        catalogue().load("acme-worlds:world", "mase")


def test_the_command_lists_them_after_the_kinds_of_the_kernel(sigma: Any, worlds: None) -> None:
    code, out, error = sigma("components", "acme-worlds:world", "--json")
    assert code == 0, error
    assert [(row["name"], row["distribution"]) for row in json.loads(out)["components"]] == [
        ("lake", "acme-worlds"), ("maze", "acme-maze"),
    ]  # fmt: skip
    every = json.loads(sigma("components", "--json")[1])["components"]
    assert [row["kind"] for row in every[-2:]] == ["acme-worlds:world"] * 2
    code, out, error = sigma("components", "acme-worlds:world", "maze")
    assert code == 0, error
    assert "acme-worlds:world acme-maze:maze: Find the way out." in out
    code, _, error = sigma("components", "wrold")
    assert code == 2
    assert "'wrold' is not one of" in error


@pytest.mark.parametrize("kind", ["world", "acme-worlds:", ":world", "Acme:world", "a:b:c", "acme_worlds:world", ""])
def test_a_kind_of_another_form_is_refused(distribution: Callable[..., Any], kind: str) -> None:
    assert not is_kind(kind)
    plugin = distribution("acme-wrong", f'"{kind}", "maze", "acme_wrong.maze:Maze", "Find the way out."')
    assert plugin.state == "quarantined"
    assert f"there is no kind {kind!r}" in str(plugin.reason)


def test_kinds_of_the_kernel_stand_before_those_of_plugins() -> None:
    assert sorted(["b:a", "trainer", "a:b", "backend"], key=place_of) == ["backend", "trainer", "a:b", "b:a"]
