"""``sm.search`` without and with the room that searches."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import sigma_ml as sm


def test_without_the_room_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sigma_search", None)
    with pytest.raises(sm.SigmaPluginError, match=r"sigma-search is not installed. Install it: python -m pip install"):
        sm.search("digits", trials=2)


def test_it_is_the_search_of_the_room(monkeypatch):
    room = SimpleNamespace(search=lambda *given, **more: (given, more))
    monkeypatch.setitem(sys.modules, "sigma_search", room)
    assert sm.search("digits", "trainer.epochs=2", trials=2) == (("digits", "trainer.epochs=2"), {"trials": 2})
