"""Every kernel of every recipe compiles for every GPU from Turing to Blackwell: NVRTC needs none of them."""

from __future__ import annotations

import re
from functools import cache

import pytest

from sigma_backend_cupy.devices.host import source

from .nvrtc import ptx
from .recipes import NAMES, kernels

ENDS = ("sm_75", "sm_100")  # of the GPUs that every kernel is compiled for; the others get one of each form
ARCHITECTURES = (*ENDS, "sm_80", "sm_86", "sm_89", "sm_90")


@cache
def every() -> dict[str, str]:
    """Return the text of the kernels of all recipes, by name."""
    return {name: kernel.text for recipe in NAMES for name, kernel in kernels(recipe).items()}


def forms() -> dict[str, str]:
    """Return the kernels without those that differ from another in numbers only."""
    different = {re.sub(r"k[0-9a-f]{16}|\d+", "0", text): name for name, text in every().items()}
    return {name: every()[name] for name in different.values()}


@pytest.mark.long_cases("sm_80", "sm_86")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_kernels_of_all_recipes_compile(architecture: str) -> None:
    names = every() if architecture in ENDS else forms()
    assert len(every()) > 400
    made = ptx(source("prelude.cuh") + "\n".join(names.values()), architecture)
    assert f".target {architecture}" in made
    assert [name for name in names if f".entry {name}(" not in made] == []


def test_what_does_not_compile_is_told() -> None:
    with pytest.raises(AssertionError, match="identifier .nothing. is undefined"):
        ptx(source("prelude.cuh") + "SIGMA_KERNEL(wrong, 1)() { nothing; }", "sm_90")
