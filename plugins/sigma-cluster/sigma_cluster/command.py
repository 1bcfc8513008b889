"""``sigma cluster``: check the workers of a configuration, and plan how many to take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from attrs import asdict

from sigma_cluster.checking import ClusterReport, check_cluster
from sigma_cluster.planning import WorkerPlan, count_gradients, measure_step, plan_workers
from sigma_kernel import catalogue
from sigma_kernel.contracts import GroupOperator
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config import build, load_configuration, prepare
from sigma_run.launcher import document, json_option, open_document, recipe_or_file, say, table
from sigma_training.session.session import Session
from sigma_training.trainer import expect_trainer

MODELLED = (
    "modelled, from {step:.3g} ms for the gradients of a shard and {update:.3g} ms for an update, measured here, at"
    " {bandwidth:g} MB/s and {latency:g} ms; nothing of it was measured on workers"
)


@click.group()
def cluster() -> None:
    """Check the workers of a configuration before training, and plan how many to take."""


@cluster.command("check")
@recipe_or_file
@json_option
def check(what: str, overrides: tuple[str, ...], as_json: bool) -> int:
    """Start the workers of a configuration, and check them: plugins, clocks, run folder, and how fast they add up.

    The exit code is 1 if something is to be changed before training.
    """
    with open_session(what, overrides) as (name, session, folder):
        operator = session.setup.operator
        if not isinstance(operator, GroupOperator):
            raise SigmaConfigError(
                f"{what}: {name}.operator has no workers in other processes: there is nothing to check. Set one, as by"
                " `--set run.operator='{ type = \"processes\", workers = 2, shards = 2 }'`."
            )
        report = check_cluster(operator, count_gradients(session) // 4, folder)
    if as_json:
        document({"ok": not report.problems, **asdict(report), "problems": report.problems})
    else:
        show_report(report)
        for text in report.problems:
            say(text, "red")
        say("not ok" if report.problems else "ok")
    return int(bool(report.problems))


@cluster.command("plan")
@recipe_or_file
@click.option(
    "--bandwidth",
    metavar="MB/S",
    type=click.FloatRange(min=0, min_open=True),
    default=1000.0,
    show_default=True,
    help="What a worker sends, such as `sigma cluster check` measures.",
)
@click.option(
    "--latency",
    metavar="MS",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help="What a message takes.",
)
@json_option
def plan(what: str, overrides: tuple[str, ...], bandwidth: float, latency: float, as_json: bool) -> None:
    """Model memory, traffic and speed by the number of workers, from a step that is measured on this machine."""
    with open_session(what, overrides) as (_, session, _folder):
        costs = measure_step(session)
    plans = plan_workers(costs, bandwidth * 1e6, latency / 1e3)
    about = MODELLED.format(
        step=1e3 * costs.shard_seconds, update=1e3 * costs.update_seconds, bandwidth=bandwidth, latency=latency
    )
    if as_json:
        document({"modelled": about, "measured": asdict(costs), "plans": [asdict(each) for each in plans]})
        return
    show_plans(plans)
    say(about)


@contextmanager
def open_session(what: str, overrides: tuple[str, ...]) -> Iterator[tuple[str, Session, Path]]:
    """Open the prepared trainer of a configuration, the first of several; yield its name, session and run folder."""
    configuration = load_configuration(open_document(what, overrides), catalogue())
    with build(configuration, catalogue()) as environment:
        prepare(configuration, environment, begins=True)
        name, trainer = next(iter(environment.trainers.items()))
        yield name, expect_trainer(trainer).session, configuration.run.folder


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
