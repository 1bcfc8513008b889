"""``sigma bench``: what an iteration costs on each backend, and what others need for the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import click

from sigma_bench.contest import Contestant, Terms, agree, measure
from sigma_bench.contestants import peer
from sigma_bench.contestants.sigma import Sigma
from sigma_bench.report import document as described, lines
from sigma_bench.work import Work
from sigma_kernel.config import Document, override, structured
from sigma_kernel.launcher.configured import opened, recipe_or_file
from sigma_kernel.launcher.output import document, json_option, say
from sigma_kernel.plugins import catalogue

Field = tuple[list[Sigma], list[Contestant]]


@click.command()
@recipe_or_file
@click.option("--backends", metavar="A,B", default="", help="Measure these backends. [default: the configuration's]")
@click.option("--peers", metavar="A,B", default="", help="Measure hand-written loops as well: numpy-loop.")
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True, help="How often each takes a turn.")
@json_option
def bench(what: str, overrides: tuple[str, ...], backends: str, peers: str, rounds: int, as_json: bool) -> None:
    """Measure how long an iteration of a recipe or a configuration file takes.

    All contestants take turns in one process, so that what slows the machine down slows all of them. The first losses
    of peers must be Sigma's, or nothing is reported. A round takes 0.3 seconds at least, in whole epochs where they are
    short; hooks run as they do in training, but for those that would end it.
    """
    wanted, chosen = opened(what, overrides), (names(backends) or [""], names(peers))
    if chosen[1]:
        with field(override(wanted, "run.precision=float64"), *chosen) as (ours, theirs):
            agree(ours, theirs)
    with field(wanted, *chosen) as (ours, theirs):
        feed = ours[0].trainer.session.feed
        found = measure(ours, theirs, Terms(len(feed.dataset), feed.iterations_per_epoch, rounds))
    results = found[: len(ours)], found[len(ours) :]
    for line in lines(*results):
        say(line)
    if as_json:
        document(described(what, *results))


@contextmanager
def field(wanted: Document, backends: Sequence[str], peers: Sequence[str]) -> Iterator[Field]:
    """Give a backend and peers the same work, and end the backends afterwards."""
    loops = [peer(name) for name in peers]
    configuration = structured(wanted, catalogue())
    with ExitStack() as stack:
        ours = [stack.enter_context(closing(Sigma(configuration, name))) for name in backends]
        yield ours, [loop(Work.of(ours[0].trainer)) for loop in loops]


def names(listed: str) -> list[str]:
    """Return the names of a list with commas, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, listed.split(",")))))
