"""Benchmark one configuration: start contestants in separate processes, compare their losses, measure them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial

from attrs import evolve, frozen

from sigma_bench.contest import CHECKED, ROUND, Result, Terms, agree, check_first_losses, measure
from sigma_bench.contestants import PEERS
from sigma_bench.contestants.sigma import SoleTrainer
from sigma_bench.remote import Remote
from sigma_bench.translation import to_workload
from sigma_bench.work import Workload
from sigma_hooks.reference import Reference
from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_run.config import Document, load_configuration, override
from sigma_training.trainer import expect_trainer

SIGMA = "sigma_bench.contestants.sigma:make_contestant"


@frozen
class Measured:
    """The results of one recipe."""

    recipe: str
    backends: Sequence[Result]
    peers: Sequence[Result]


@frozen
class Entry:
    """Backends (the empty name is the configured one) and peers by name, and the number of rounds.

    If backends were not ``chosen``, those that cannot train the network are left out, with a logged reason.
    """

    backends: Sequence[str]
    peers: Sequence[str]
    rounds: int
    least: float = ROUND
    chosen: bool = True

    def run_contestants(self, recipe: str, wanted: Document, tell: Callable[[str], None]) -> Measured:
        """Return the results for a configuration; SigmaTrainingError if a peer's losses differ.

        Mistakes of the configuration, and data that cannot be had, are raised before a process is started.
        """
        work = self._work(wanted)
        if work:
            tell(self._check_losses(override(wanted, "run.precision=float64")))
        with ExitStack() as stack:
            begun = dict[str, float]()
            if self.chosen:
                ours = [stack.enter_context(closing(self._begin_backend(wanted, name))) for name in self.backends]
            else:
                ours = self._able(wanted, stack, begun, tell)
            theirs = [stack.enter_context(closing(self._begin_peer(work, name))) for name in self.peers] if work else []
            rows, iterations = ours[0].process.ask("epoch")
            terms = Terms(rows, iterations, self.rounds, self.least)
            results = measure(ours, theirs, terms, [peer for peer in theirs if _comparable(work, peer.name)], begun)
        return Measured(recipe, results[: len(ours)], distinguish_peers(results[: len(ours)], results[len(ours) :]))

    def _able(
        self, wanted: Document, stack: ExitStack, begun: dict[str, float], tell: Callable[[str], None]
    ) -> list[Remote]:
        """Return the backends that have run their first iteration, and record its seconds; log why others have not.

        Raises SigmaConfigError if none has, or the error that all raise, and SigmaTrainingError if their losses differ
        by more than any rounding.
        """
        able, errors = list[Remote](), dict[str, SigmaError]()
        for name in self.backends:
            with ExitStack() as own:
                try:
                    contestant = own.enter_context(closing(self._begin_backend(wanted, name)))
                    begun[contestant.name] = contestant.seconds(contestant.unit)
                except SigmaError as error:
                    errors[name] = error
                    continue
                able.append(contestant)
                stack.push(own.pop_all())
        if not able and len({*map(str, errors.values())}) == 1:
            raise next(iter(errors.values()))
        for name, why in errors.items():
            tell(f"{name}: left out: {str(why).splitlines()[0]}")
        if not able:
            raise SigmaConfigError("bench: no installed backend trains this network. Run `sigma check` on it.")
        for contestant in able[1:]:
            check_first_losses(able[0].name, contestant.name, able[0].losses[0], contestant.losses[0])
        return able

    def _check_losses(self, wanted: Document) -> str:
        """Compare the first losses, without dropout for PyTorch and JAX, which draw their own random numbers."""
        work = self._work(wanted)
        assert work
        same = [name for name in self.peers if _comparable(work, name)]
        apart = [name for name in self.peers if name not in same]
        for drops, names, task in ((True, same, work), (False, apart, work.without_dropout())):
            if names:
                agree(
                    [partial(self._begin_backend, wanted, name, drops) for name in self.backends],
                    [partial(self._begin_peer, task, name) for name in names],
                )
        without = f"; of {', '.join(apart)} without dropout, which they draw for themselves" if apart else ""
        return f"the first {CHECKED} losses of {', '.join(self.peers)} are Sigma's, in float64{without}"

    def _work(self, wanted: Document) -> Workload | None:
        """Return what peers compute, if there are any; raise for mistakes of the file, and for missing data."""
        with closing(SoleTrainer(load_configuration(wanted, catalogue()), Reference(), dict, "bench")) as sole:
            return to_workload(expect_trainer(sole.trainer)) if self.peers else None

    def _begin_backend(self, wanted: Document, backend: str, drops: bool = True) -> Remote:
        return Remote(backend or "sigma", SIGMA, wanted, backend, drops)

    def _begin_peer(self, work: Workload, name: str) -> Remote:
        return Remote(name, PEERS[name].path, work)


def _comparable(work: Workload | None, name: str) -> bool:
    return work is not None and (PEERS[name].same_draws or not work.drops)


def distinguish_peers(backends: Sequence[Result], peers: Sequence[Result]) -> list[Result]:
    """Return the peers; those with the name of a backend are labelled as hand-written loops."""
    taken = {backend.name for backend in backends}
    return [evolve(peer, name=f"{peer.name} by hand") if peer.name in taken else peer for peer in peers]
