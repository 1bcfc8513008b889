"""Tiered backends: the first iterations on one backend, all others on another, which compiles meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread, Timer, current_thread
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel.contracts import Backend
from sigma_kernel.errors import SigmaConfigError, SigmaGraphError
from sigma_kernel.graph import Graph
from sigma_testing import BackendSuite
from sigma_testing.null import NullBackend
from sigma_testing.steering import (
    Sweep,
    crash,
    decisive,
    small_environment,
    state_bytes,
    steered_environment,
    train_until_crash,
    wait_until,
)
from sigma_training.session.ahead import AheadCompiler
from sigma_training.tiers import Tiered, known_tiers, restore_tiers, settle_tiers
from sigma_training.trainer import expect_trainer

START = 7  # in the second epoch of five iterations


@define(eq=False)
class Rounded(NullBackend):
    """A backend whose results differ from the reference, and which compiles when it is allowed to."""

    allowed: Event = field(factory=Event)
    threads: list[str] = field(factory=list)
    error: str = ""

    def __attrs_post_init__(self) -> None:
        self.allowed.set()

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        self.threads.append(current_thread().name)
        assert self.allowed.wait(60)
        if self.error:
            raise SigmaGraphError(self.error)
        call = super().lower(graph, donate)
        return lambda *arrays: [self._round(value) for value in call(*arrays)]

    def _round(self, value: Any) -> Any:
        return value * value.dtype.type(1 + 2e-7) if value.dtype.kind == "f" else value

    def estimate(self, graph: Graph) -> tuple[float, float]:
        return 3.0, 0.0


@define(eq=False)
class Instant(NullBackend):
    """A backend that takes a second to compute anything."""

    def estimate(self, graph: Graph) -> tuple[float, float]:
        return 0.0, 0.5


class TestTiered(BackendSuite):
    def make(self) -> Backend:
        return Tiered(NullBackend(), NullBackend(), start=0)


def train(backend: Backend, iterations: int = 12) -> dict[str, bytes]:
    with small_environment(Sweep(), backend=backend) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=iterations)
        return state_bytes(trainer)


def test_iterations_are_those_of_the_first_backend_and_then_of_the_second() -> None:
    with small_environment(Sweep(), backend=NullBackend()) as sigma:
        expect_trainer(sigma.trainer("trainer")).fit(iterations=START)
        saved = expect_trainer(sigma.trainer("trainer")).session.snapshot()
    with small_environment(Sweep(), backend=Rounded()) as sigma:
        trainer = expect_trainer(sigma.trainer("trainer"))
        trainer.prepare()
        trainer.session.restore(saved)
        trainer.fit(iterations=12 - START)
        wanted = state_bytes(trainer)
    assert train(Tiered(NullBackend(), Rounded(), START)) == wanted
    assert train(NullBackend()) != wanted
    assert train(Rounded()) != wanted


def test_bits_do_not_depend_on_how_long_compilation_takes() -> None:
    slow = Rounded()
    slow.allowed.clear()

    wanted = train(Tiered(NullBackend(), Rounded(), START))
    timer = Timer(0.3, slow.allowed.set)
    timer.start()
    assert train(Tiered(NullBackend(), slow, START)) == wanted
    timer.join()


def test_the_second_backend_compiles_in_another_thread_while_the_first_one_computes() -> None:
    second = Rounded()
    train(Tiered(NullBackend(), second, START))
    assert second.threads[0].startswith("sigma-compiler")  # later programs may be needed before their turn comes


def test_a_run_that_ends_early_goes_on_without_the_compiler() -> None:
    with small_environment(Sweep(), backend=Tiered(NullBackend(), Rounded(), START)) as sigma:
        trainer, compiler = expect_trainer(sigma.trainer("trainer")), AheadCompiler()
        trainer.prepare()
        compiler.begin(trainer.session.setup.programs, 0)
        compiler.close()
        trainer.evaluate("validation")  # compiles what was not compiled before
        trainer.fit(iterations=12)
        assert state_bytes(trainer) == train(Tiered(NullBackend(), Rounded(), START))


@pytest.mark.parametrize(("iteration", "end", "due"), [(2, None, False), (3, None, True), (3, 7, False), (3, 8, True)])
def test_compilation_begins_on_the_way_to_a_tier_that_training_reaches(
    monkeypatch: pytest.MonkeyPatch, iteration: int, end: int | None, due: bool
) -> None:
    with small_environment(Sweep(), backend=Tiered(NullBackend(), Rounded(), START)) as sigma:
        trainer = expect_trainer(sigma.trainer("trainer"))
        trainer.prepare()
        compiler, begun = AheadCompiler(), list[int]()
        monkeypatch.setattr(AheadCompiler, "begin", lambda self, programs, iteration: begun.append(iteration))
        compiler.look_ahead(trainer.session.setup.programs, iteration, lambda run: run, end)
        assert begun == [iteration] * due


def test_the_status_is_compiling_while_training_waits_for_the_second_backend() -> None:
    second = Rounded()
    second.allowed.clear()
    with small_environment(Sweep(), backend=Tiered(NullBackend(), second, START)) as sigma:
        trainer = expect_trainer(sigma.trainer("trainer"))
        thread = Thread(target=trainer.fit, kwargs={"iterations": 12})
        thread.start()
        wait_until(lambda: trainer.session.setup.programs.is_compiling and trainer.session.moment.iteration == START)
        second.allowed.set()
        thread.join()
        assert not trainer.session.setup.programs.is_compiling


@pytest.mark.parametrize("iterations", [1, START - 1, START])
def test_nothing_is_compiled_for_iterations_that_do_not_come(iterations: int) -> None:
    second = Rounded()
    assert train(Tiered(NullBackend(), second, START), iterations) == train(NullBackend(), iterations)
    assert not second.threads


def test_more_iterations_than_were_planned_at_first_are_computed_by_the_second_backend() -> None:
    second = Rounded()
    with small_environment(Sweep(), backend=Tiered(NullBackend(), second, START)) as sigma:
        trainer = sigma.trainer("trainer")
        for iterations in (3, 3, 6):
            trainer.fit(iterations=iterations)
        assert state_bytes(trainer) == train(Tiered(NullBackend(), Rounded(), START))


def test_what_cannot_be_compiled_is_an_error_of_the_iteration_that_needs_it() -> None:
    second = Rounded(error="second: no code for this")
    with small_environment(Sweep(), backend=Tiered(NullBackend(), second, START)) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(SigmaGraphError, match="no code for this"):
            trainer.fit(iterations=12)
        assert expect_trainer(trainer).session.moment.iteration == START


@pytest.mark.parametrize(("at", "saved"), [(4, 3), (START, 6), (9, START), (11, 8), (11, 5)])
def test_a_run_is_resumed_and_replayed_to_the_bit_on_both_sides_of_the_change(
    tmp_path: Path, at: int, saved: int
) -> None:
    def backend() -> Backend:
        return Tiered(NullBackend(), Rounded(), START)

    with steered_environment(last=14, backend=backend()) as plain:
        plain.run()
        wanted = decisive(plain.trainer("trainer"))[0]
    script = {saved: lambda sigma: sigma.send("save"), at: crash}
    with steered_environment(script, last=14, backend=backend()) as sigma:
        run = train_until_crash(sigma, tmp_path)
    with steered_environment(last=14, backend=backend()) as again:
        again.resume(run)
        again.run()
        assert decisive(again.trainer("trainer"))[0] == wanted
    with small_environment(Sweep(), backend=backend()) as replayed:
        assert replayed.replay(run)[1] == {}


def test_a_rewind_to_before_the_change_repeats_the_iterations_of_the_first_backend() -> None:
    with small_environment(Sweep(), backend=Tiered(NullBackend(), Rounded(), START)) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=3)
        wanted = decisive(trainer)[0]
        sigma.rewind(1, "epoch")
        trainer.fit(epochs=2)
        assert decisive(trainer)[0] == wanted


def test_an_evaluation_is_computed_by_the_backend_of_its_iteration() -> None:
    with small_environment(Sweep(), backend=Tiered(NullBackend(), Rounded(), START)) as sigma:
        trainer, alone = sigma.trainer("trainer"), small_environment(Sweep(), backend=NullBackend()).trainer("trainer")
        trainer.fit(iterations=3)
        alone.fit(iterations=3)
        assert trainer.evaluate("validation") == alone.evaluate("validation")


def test_the_change_is_after_twice_the_time_that_compilation_takes() -> None:
    settled, unknown = (settle_tiers(Tiered(first, Rounded()), Graph((), ())) for first in (Instant(), NullBackend()))
    assert settled.tiers == {0: settled.first, 12: settled.then}
    assert settle_tiers(Tiered(Instant(), Rounded(), 5), Graph((), ())).start == 5
    assert unknown.tiers == {0: unknown.then}
    assert settle_tiers(first := NullBackend(), Graph((), ())) is first


def test_a_run_that_goes_on_keeps_the_iteration_of_the_change() -> None:
    backend = settle_tiers(Tiered(Instant(), Rounded()), Graph((), ()))
    assert restore_tiers(Tiered(NullBackend(), Rounded()), known_tiers(backend)).start == 12
    assert restore_tiers(Tiered(NullBackend(), Rounded(), 4), known_tiers(backend)).start == 4
    assert known_tiers(NullBackend()) == {}


@define(eq=False)
class OnADevice(NullBackend):
    """A backend whose arrays are not those of NumPy."""

    def to_device(self, host: np.ndarray) -> Any:
        return memoryview(host)


@pytest.mark.parametrize("given", [(NullBackend(), OnADevice()), (OnADevice(), NullBackend())])
def test_backends_with_arrays_on_a_device_are_refused(given: tuple[Backend, Backend]) -> None:
    with pytest.raises(SigmaConfigError, match="holds arrays on a device. Name this backend alone"):
        Tiered(*given)
