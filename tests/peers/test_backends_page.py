"""The JAX backend that backends.md shows passes the suite, and the table's columns are what backends can do now."""

from __future__ import annotations

import re
from typing import Any

import pytest

from figures import capabilities
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite

pytest.importorskip("jax")
pytest.importorskip("torch")


def shown() -> Any:
    """Return the class of the page."""
    listing = re.search(r":caption: tiny_jax\.py\n\n(.*?)^```", capabilities.PAGE.read_text("utf-8"), re.DOTALL | re.M)
    assert listing is not None
    assert listing[1].count("\n") <= 80
    names: dict[str, Any] = {"__name__": "tiny_jax"}
    exec(compile(listing[1], "tiny_jax.py", "exec"), names)
    return names["TinyJax"]


class TestTinyJax(BackendSuite):
    precisions = ("float32",)

    def make(self) -> Backend:
        backend: Backend = shown()()
        return backend


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_the_column_of_a_backend_declares_what_it_declares_now(name: str) -> None:
    kept, found = capabilities.read()[name], capabilities.declared(capabilities.made(name))
    assert {row: kept[row] for row in found} == found, "Run python -m figures.capabilities in docs/"
