"""``sigma run``: train a recipe or a configuration file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from sigma_kernel.environment import Environment, Summary
from sigma_kernel.errors import SigmaError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.signals import EARLY
from sigma_run.config import Document, build, override, prepare
from sigma_run.config.building import hush
from sigma_run.launcher.configured import (
    debug_option,
    open_document,
    parallel_option,
    recipe_or_file,
    refuse_parallel,
    totals,
    understood,
    with_operator,
)
from sigma_run.launcher.group import DEBUG, fail
from sigma_run.launcher.later import lazy_function
from sigma_run.launcher.output import document, json_option, toml
from sigma_run.launcher.plugin_options import GIVEN, CommandWithOptions
from sigma_run.launcher.showing import add_monitors, shows, tell

run_study = lazy_function("sigma_run.launcher.studies:run_study")  # only for --seeds and --folds


@click.command(cls=CommandWithOptions)
@recipe_or_file
@click.option("--backend", metavar="NAME", help="Compute on this backend.")
@debug_option
@click.option("--operator", metavar="NAME", help="Train by this operator, such as processes.")
@click.option("--workers", metavar="N", type=click.IntRange(min=1), help="Workers, of at most as many shards.")
@click.option("--monitor", "monitors", metavar="NAME", multiple=True, help="Add this monitor (repeatable).")
@click.option("--epochs", metavar="N", help="Train N epochs in total, or inf.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")
@click.option("--seeds", metavar="N", type=int, help="Train with N seeds, from --seed on: a study.")
@click.option("--folds", metavar="N", type=int, help="Train on each of N folds of the data: a study.")
@parallel_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
@json_option
def run(
    what: str,
    overrides: tuple[str, ...],
    backend: str | None,
    operator: str | None,
    workers: int | None,
    monitors: tuple[str, ...],
    epochs: str | None,
    seed: int | None,
    seeds: int | None,
    folds: int | None,
    parallel: int,
    quiet: bool,
    as_json: bool,
) -> int:
    """Train a recipe or a configuration file.

    With --seeds, --folds or both, train it several times, as the runs of a study.

    The first Ctrl-C, SIGTERM or SIGHUP finishes the step, saves a checkpoint and stops; the second aborts. SIGUSR1
    saves a checkpoint and continues.
    """
    described = with_operator(open_document(what, overrides), operator, workers)
    for assignment, option in click.get_current_context().meta.get(GIVEN, ()):
        described = override(described, assignment, option)
    described = add_monitors(_apply_options(described, backend, seed, epochs), monitors)
    if seeds is not None or folds is not None:
        return int(run_study(described, seeds, folds, parallel, as_json, quiet))
    refuse_parallel(parallel)
    configuration = understood(described)
    with build(configuration, catalogue(), configuration.run.folder) as environment:
        prepare(configuration, environment, begins=True)
        return train(environment, as_json, quiet)


def train_file(context: click.Context, path: Path) -> int:
    """Train a configuration file, as ``sigma run FILE`` does; return the exit code."""
    return int(context.invoke(run, what=str(path), overrides=(), monitors=()) or 0)


def train(environment: Environment, as_json: bool, quiet: bool) -> int:
    """Train, print the summary or why training failed; return the exit code once no monitor shows the run any more."""
    if quiet:
        hush(environment)
    code = _train_and_report(environment, as_json, quiet)
    if environment.signal is None and not environment.signals:
        with suppress(KeyboardInterrupt):
            environment.linger()
    return 128 + environment.signal if environment.signal else code


def _train_and_report(environment: Environment, as_json: bool, quiet: bool) -> int:
    """Train, and print the summary or why training failed; return the exit code."""
    try:
        summary = _run(environment, as_json, shows(quiet))
    except Exception as error:
        if EARLY:  # it was a signal
            raise
        return fail(error, DEBUG in click.get_current_context().meta)
    if not quiet:
        tell(summary)
    if as_json:
        document(summary.to_dict())
    return 0


def _apply_options(described: Document, backend: str | None, seed: int | None, epochs: str | None) -> Document:
    if backend is not None:
        described = override(described, f"run.backend={toml(backend)}", "--backend")
    if seed is not None:
        described = override(described, f"run.seed={seed}", "--seed")
    for assignment in totals(described, epochs):
        described = override(described, assignment, "--epochs")
    return described


def _run(environment: Environment, as_json: bool, progress: bool) -> Summary:
    """Return the summary, also of an aborted run; after an error, print it as JSON and raise."""
    try:
        return environment.run(progress, stay=True)
    except KeyboardInterrupt:
        return environment.summary()
    except SigmaError:
        if as_json:
            document({**environment.summary().to_dict(), "status": "failed"})
        raise
