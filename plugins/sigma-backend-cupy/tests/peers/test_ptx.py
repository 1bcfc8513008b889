"""Every kernel of every recipe compiles for every GPU from Turing to Blackwell: NVRTC needs none of them."""

from __future__ import annotations

from functools import cache

import pytest

from sigma_backend_cupy.devices.host import source

from .nvrtc import ptx
from .recipes import NAMES, kernels

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100")


@cache
def text() -> tuple[str, list[str]]:
    """Return the kernels of all recipes as one text, and their names."""
    every = {name: kernel for recipe in NAMES for name, kernel in kernels(recipe).items()}
    return source("prelude.cuh") + "\n".join(kernel.text for kernel in every.values()), [*every]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_kernels_of_all_recipes_compile(architecture: str) -> None:
    whole, names = text()
    assert len(names) > 400
    made = ptx(whole, architecture)
    assert f".target {architecture}" in made
    assert [name for name in names if f".entry {name}(" not in made] == []


def test_what_does_not_compile_is_told() -> None:
    with pytest.raises(AssertionError, match="identifier .nothing. is undefined"):
        ptx(source("prelude.cuh") + "SIGMA_KERNEL(wrong, 1)() { nothing; }", "sm_90")
