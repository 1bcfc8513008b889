"""``sigma cluster``: check the workers of a configuration, and plan how many to take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from sigma_cluster.checking import ClusterReport, check_cluster
from sigma_cluster.planning import WorkerPlan, count_gradients, measure_step, plan_workers
from sigma_kernel import catalogue
from sigma_kernel.contracts import GroupOperator
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config import Document, build, load_configuration, prepare
from sigma_run.launcher import document, json_option, open_document, recipe_or_file, say, table, with_operator
from sigma_training.session.session import Session
from sigma_training.trainer import expect_trainer

MODELLED = (
    "modelled, from {step:.3g} ms for the gradients of a shard and {update:.3g} ms for an update, measured here, at"
    " {bandwidth:g} MB/s and {latency:g} ms; nothing of it was measured on workers"
)


@click.group()
def cluster() -> None:
    """Check the workers of a configuration before training, and plan how many to take."""


class FiniteRange(click.FloatRange):
    """A range of numbers, without NaN and infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(number)


@cluster.command("check")
@recipe_or_file
@click.option("--operator", metavar="NAME", help="Check the workers of this operator, such as processes.")
@click.option("--workers", metavar="N", type=click.IntRange(min=1), help="Workers, of at most as many shards.")
@json_option
def check(what: str, overrides: tuple[str, ...], operator: str | None, workers: int | None, as_json: bool) -> int:
    """Start the workers of a configuration, and check them: plugins, clocks, run folder, and how fast they add up.

    The exit code is 1 if something is to be changed before training. Of several trainers, each that has workers is
    checked.
    """
    described = with_operator(open_document(what, overrides), operator, workers)
    with open_sessions(described) as (sessions, folder):
        reports = {
            place: check_cluster(session.setup.operator, count_gradients(session) // 4, folder)
            for place, session in sessions.items()
            if isinstance(session.setup.operator, GroupOperator)
        }
    if not reports:
        raise SigmaConfigError(
            f"{what}: {next(iter(sessions))}.operator has no workers in other processes: there is nothing to check. Set"
            " one, as by `--set run.operator='{ type = \"processes\", workers = 2, shards = 2 }'`."
        )
    problems = [f"{place}: {text}" for place, report in reports.items() for text in report.problems]
    if as_json:
        trainers = {place: {**asdict(report), "problems": report.problems} for place, report in reports.items()}
        document({"ok": not problems, "trainers": trainers})
        return int(bool(problems))
    for place, report in reports.items():
        show_place(place, len(sessions))
        show_report(report)
    for text in problems:
        say(text, "red")
    say("not ok" if problems else "ok")
    return int(bool(problems))


@cluster.command("plan")
@recipe_or_file
@click.option(
    "--bandwidth",
    metavar="MB/S",
    type=FiniteRange(min=0, min_open=True),
    default=1000.0,
    show_default=True,
    help="What a worker sends, such as `sigma cluster check` measures.",
)
@click.option(
    "--latency",
    metavar="MS",
    type=FiniteRange(min=0),
    default=0.2,
    show_default=True,
    help="What a message takes.",
)
@json_option
def plan(what: str, overrides: tuple[str, ...], bandwidth: float, latency: float, as_json: bool) -> None:
    """Model memory, traffic and speed by the number of workers, from a step that is measured on this machine."""
    with open_sessions(open_document(what, overrides)) as (sessions, _folder):
        for place, session in sessions.items():
            expect_synchronous(f"{what}: {place}.operator", session)
        costs = {place: measure_step(session) for place, session in sessions.items()}
    plans = {place: plan_workers(each, bandwidth * 1e6, latency / 1e3) for place, each in costs.items()}
    about = {
        place: MODELLED.format(
            step=1e3 * each.shard_seconds, update=1e3 * each.update_seconds, bandwidth=bandwidth, latency=latency
        )
        for place, each in costs.items()
    }
    if as_json:
        rows = {place: [asdict(each) for each in plans[place]] for place in plans}
        trainers = {p: {"modelled": about[p], "measured": asdict(costs[p]), "plans": rows[p]} for p in plans}
        document({"trainers": trainers})
        return
    for place in plans:
        show_place(place, len(plans))
        show_plans(plans[place])
        say(about[place])


def expect_synchronous(where: str, session: Session) -> None:
    """Raise SigmaConfigError for other modes of training, of which there is no model."""
    if (mode := session.setup.operator.mode) != "synchronous":
        raise SigmaConfigError(
            f"{where}: mode = {mode!r} is not modelled, synchronous training is. Leave out the mode to plan that, or"
            " time some epochs by `sigma run` with each number of workers."
        )


@contextmanager
def open_sessions(described: Document) -> Iterator[tuple[dict[str, Session], Path]]:
    """Open the prepared trainers of a configuration; yield their sessions by place in the file, and the run folder."""
    configuration = load_configuration(described, catalogue())
    above = "trainers." if "trainers" in described.values else ""
    with build(configuration, catalogue()) as environment:
        prepare(configuration, environment, begins=True)
        trainers = {f"{above}{name}": expect_trainer(trainer) for name, trainer in environment.trainers.items()}
        yield {place: trainer.session for place, trainer in trainers.items()}, configuration.run.folder


def show_place(place: str, count: int) -> None:
    """Print the place of a trainer, if there are several."""
    if count > 1:
        click.echo(f"{place}:")


def show_report(report: ClusterReport) -> None:
    """Print a row for each worker, and what was measured."""
    rows = [("WORKER", "HOST", "PROCESS", "CPUS", "CLOCK", "PLUGINS", "RUN FOLDER")]
    for worker in report.workers:
        clock = f"{1e3 * worker.clock:+.0f} ms (within {1e3 * worker.accuracy:.0f})"
        states = "as here" if not worker.plugins else "others", "reached" if worker.reads_folder else "not reached"
        rows.append((str(worker.number), worker.host, str(worker.process), str(worker.cpus), clock, *states))
    table(rows)
    click.echo(f"a sum of the gradients, {report.gradients / 1e6:.3g} MB a shard, takes {1e3 * report.seconds:.3g} ms")
    message = 1e3 * report.latency
    if report.bandwidth is None:
        click.echo(f"a message takes {message:.3g} ms; one worker sends nothing, so that there is no bandwidth")
        return
    sent = report.bandwidth / 1e6
    click.echo(f"for `sigma cluster plan`: --bandwidth {sent:.6g} --latency {message:.3g}")


def show_plans(plans: list[WorkerPlan]) -> None:
    """Print a row for each number of workers."""
    rows = [("WORKERS", "SHARDS EACH", "MEMORY EACH", "SENT A STEP", "STEP", "ROWS/S", "SPEED")]
    for each in plans:
        sizes = f"{each.memory / 1e6:.3g} MB", f"{each.traffic / 1e6:.3g} MB"
        speed = f"{1e3 * each.seconds:.3g} ms", f"{each.rows:.0f}", f"{each.rows / plans[0].rows:.2f}x"
        rows.append((str(each.workers), str(each.shards), *sizes, *speed))
    table(rows)
