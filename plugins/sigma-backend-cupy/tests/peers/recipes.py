"""The recipes that ship with Sigma, with backends that look at the steps they compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from runpy import run_path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from attrs import frozen

from sigma_backend_cupy.devices.host import HostDevice
from sigma_backend_cupy.runs.program import CupyProgram
from sigma_backend_cupy.text.kernels import Kernel
from sigma_backend_numpy import NumpyBackend
from sigma_kernel import after
from sigma_kernel.contracts import Arrays, Burst, Numbers, Program, Step
from sigma_recipes import recipes
from sigma_recipes.plugin import RECIPES
from sigma_run import config
from sigma_testing import Do

from .host import HostBackend

FEW = 2  # iterations
ROOT = Path(__file__).parents[4]
IMAGES = "data.dataset={ type = 'sigma-data:synthetic', rows = 200, shape = [28, 28], classes = 10 }"
SMALL: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("bench-mlp-small", "bench-mlp-large", "bench-deep", "bench-cnn", "bench-resnet"),
        ("data.rows=12", "data.batch_size=4"),
    ),
    "bench-lstm": ("data.rows=12", "data.batch_size=4"),
    "bench-transformer": ("data.rows=2", "data.batch_size=1"),
    "charmodel": ("data.length=10", "data.split={training=0.002, validation=0.001}"),
    "lstm": ("data.rows=40", "data.steps=4", "data.batch_size=4"),
    "mnist": ("data.batch_size=4",),
}
NAMES = RECIPES


class Caught(BaseException):
    """Ends a run whose step is known."""


@cache
def voices() -> str:
    """Return the path of a table like that of the recipe ``parkinsons``."""
    path = Path(mkdtemp()) / "voices.csv"
    path.write_text(run_path(str(ROOT / "plugins" / "sigma-recipes" / "tests" / "voices.py"))["table"]())
    return str(path)


def trained(name: str, backend: NumpyBackend, *settings: str) -> None:
    """Train a recipe for a few iterations, with a backend in the place of its own."""
    data = {"mnist": IMAGES, "parkinsons": f"data.path={voices()}"}
    given = [*settings, "run.backend=numpy", *([data[name]] if name in data else [])]
    configuration = config.load(recipes.recipe(name).text, given, name=name)
    with config.build(configuration) as environment:
        for trainer in environment.trainers.values():
            trainer.backend = backend
            stop = Do(every=after(FEW, "iteration"), does=lambda context: context.command("stop"), ends=True)
            trainer.hooks = {**trainer.hooks, "suite": stop}
        environment.run()


# -- the kernels of a recipe -------------------------------------------------------------------------------------------
@frozen
class Catching(NumpyBackend):
    """Ends the run when its first step is compiled."""

    caught: Any = None

    def compile(self, step: Step, in_place: bool = True) -> Program:
        self.caught.append(CupyProgram(step, HostDevice(), in_place))
        raise Caught


def kernels(name: str) -> dict[str, Kernel]:
    """Return the kernels of the training step of a recipe, as it is configured, by name."""
    caught: list[CupyProgram] = []
    with suppress(Caught):
        trained(name, Catching(caught=caught))
    run = caught[0].run_step
    return {**run.unit.kernels, **{kernel.name: kernel for kernel in run.extra}}


# -- the results of a recipe -------------------------------------------------------------------------------------------
@frozen
class Comparing(NumpyBackend):
    """Computes with NumPy, and compares what the kernels make of the same state, forward and in reverse."""

    near: Callable[[str, np.ndarray, np.ndarray], None] = np.testing.assert_allclose

    def compile(self, step: Step, in_place: bool = True) -> Program:
        own = NumpyBackend().compile(step)
        return _Both(own, [HostBackend(reverse=one).compile(step) for one in (False, True)], self.near)


@frozen(eq=False)
class _Both:
    own: Program
    others: Sequence[Program]
    near: Callable[[str, np.ndarray, np.ndarray], None]
    peak_bytes: int = 0

    def run(self, state: Arrays, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> Burst:
        copies = [{name: np.array(x) for name, x in state.items()} for _ in self.others]
        wanted = self.own.run(state, block, rows, steer, n)
        first, second = (p.run(x, block, rows, steer, n) for p, x in zip(self.others, copies, strict=True))
        assert first.done == second.done == wanted.done
        for name, value in _values(wanted):
            one, other = (dict(_values(burst))[name] for burst in (first, second))
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), f"{name} depends on the order of threads"
            self.near(name, one, value)
        return wanted


def _values(burst: Burst) -> Iterator[tuple[str, Any]]:
    yield from burst.state.items()
    yield from ((f"ring {name}", value) for name, value in burst.ring.items())
