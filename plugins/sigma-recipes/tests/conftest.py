"""Recipes name no backend. Here they train in compiled code from the first iteration, which takes least time."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs that name no backend compute on numba alone."""
    monkeypatch.setenv("SIGMA_BACKEND", "sigma-backend-numba:numba")
