"""The programs of recipes are equal to the byte to those recorded in ``programs.json``, for any kind of registers.

A change of the compiler that must not change programs is proved by this test with ``-m ""``, which covers all
recipes.  After one that must, ``python test_recorded_programs.py`` records them anew: each changed line of the file is
a program that users compile again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import field, frozen

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.compiler import processor
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute.program import step_job
from sigma_kernel import SigmaError, SigmaStateError
from sigma_kernel.contracts import Step
from sigma_recipes import recipes
from sigma_run import config

FILE = Path(__file__).with_name("programs.json")
PROCESSORS = {  # features as LLVM names them
    "AVX-512": ("skylake-avx512", "+avx2,+fma,+avx512f"),
    "AVX2": ("haswell", "+avx2,+fma"),
    "NEON": ("generic", "+neon"),
}
ROWS = {  # of random data, which change no program: a batch or two
    "bench-cnn": 200, "bench-deep": 64, "bench-iris": 20, "bench-lstm": 64, "bench-mlp-large": 200,
    "bench-mlp-small": 200, "bench-resnet": 64, "bench-transformer": 16,
}  # fmt: skip
RECIPES = (
    *ROWS, "autoencoder", "charmodel", "cnn", "digits", "gan", "iris", "lstm", "residual", "tictactoe", "wdbc", "xor",
)  # fmt: skip
FAST = ("bench-iris", "iris")
SHARDS = (1, 2)  # with two, gradients and update are steps of their own


class Silent:
    """A program that does not run."""

    def run(self, *_: Any) -> Any:
        raise SigmaStateError("Only the text of this program is needed.")


@frozen
class Listing(NumbaBackend):
    """A backend that lists the steps that it is asked to compile."""

    steps: list[Step] = field(factory=list)

    def compile(self, step: Step, in_place: bool = True) -> Any:
        self.steps.append(step)
        return Silent()


@contextmanager
def compiled_for(name: str, features: str) -> Iterator[None]:
    """Write programs for another processor for a while."""
    known, derived = processor.processor, (processor.registers, processor.mixed_form)
    processor.processor = lambda: (name, features)
    try:
        for one in derived:
            one.cache_clear()
        yield
    finally:
        processor.processor = known
        for one in derived:
            one.cache_clear()


def steps_of(recipe: str, shards: int) -> list[Step]:
    """Return the steps that train and evaluate a recipe, on whole batches or on shards of them."""
    with TemporaryDirectory() as folder:
        overrides = [f"run.folder={folder}", f"run.operator={{type='local', shards={shards}}}"]
        overrides += [f"data.rows={ROWS[recipe]}"] if recipe in ROWS else []
        with config.build(config.load(recipes.recipe(recipe).text, overrides)) as environment:
            trainer = environment.trainers["trainer"]
            trainer.backend = listing = Listing()
            with suppress(SigmaError):  # of the silent program
                environment.run()
            with suppress(SigmaError):  # some recipes have no split to evaluate
                trainer.evaluate()
            return listing.steps


def digest(step: Step) -> str:
    """Return a digest of the text of a step's program."""
    return hashlib.sha256(source(step_job(step)).text.encode()).hexdigest()


@cache
def programs(recipe: str) -> dict[str, list[str]]:
    """Return digests of the programs of a recipe, by number of shards and processor."""
    found: dict[str, list[str]] = {}
    for shards in SHARDS:
        steps = steps_of(recipe, shards)
        for kind, features in PROCESSORS.items():
            with compiled_for(*features):
                found[f"{kind}, {shards} shard{'s' * (shards > 1)}"] = [digest(step) for step in steps]
    return found


@pytest.mark.parametrize(
    "recipe", [name if name in FAST else pytest.param(name, marks=pytest.mark.long) for name in RECIPES]
)
def test_the_programs_of_a_recipe_are_equal_to_the_byte_to_those_recorded(recipe: str) -> None:
    assert programs(recipe) == json.loads(FILE.read_text("utf-8"))[recipe]


def test_the_programs_of_every_recipe_with_shipped_data_are_recorded() -> None:
    recorded = json.loads(FILE.read_text("utf-8"))
    assert {*recorded} == {recipe.name for recipe in map(recipes.recipe, RECIPES)}
    assert all(len(digests) > 0 for found in recorded.values() for digests in found.values())


if __name__ == "__main__":
    FILE.write_text(json.dumps({recipe: programs(recipe) for recipe in RECIPES}, indent=1) + "\n", encoding="utf-8")
