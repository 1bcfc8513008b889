"""Run a study from the command line: train its members, and print what they came to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from attrs import evolve

from sigma_kernel.environment import Environment, Summary
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config import Configuration, Document, resolved_toml
from sigma_run.launcher.configured import understood
from sigma_run.launcher.group import DEBUG, fail
from sigma_run.launcher.output import document, say, table
from sigma_run.launcher.showing import add_monitors, hush, shows, tell
from sigma_run.study.folder import StudyFolder, create_study, read_study, reopen_study
from sigma_run.study.launching import StudyTraining
from sigma_run.study.plan import fold_keys, plan_members, table_of, to_plain


def run_study(described: Document, seeds: int | None, folds: int | None, as_json: bool, quiet: bool) -> int:
    """Train a new study of a configuration; return the exit code."""
    for option, number in (("--seeds", seeds), ("--folds", folds)):
        if number is not None and number < 2:
            raise SigmaConfigError(f"{option} {number}: a study has at least 2. Leave {option} out for a single run.")
    configuration = understood(described)
    run = configuration.run
    study = plan_members(run.seed, seeds, folds, [] if folds is None else fold_keys(configuration))
    text = resolved_toml(configuration, run.folder)
    folder = create_study(run.folder, evolve(study, name=run.name), text, say)
    return _train(folder, described, understood, as_json, quiet, is_new=True)


def resume_study(path: Path, monitors: tuple[str, ...], changes: Iterable[Any], as_json: bool, quiet: bool) -> int:
    """Train the members of a study that have not ended; return the exit code.

    Raises SigmaConfigError if there are ``changes``: options that a study does not take.
    """
    if any(change not in (None, (), False) for change in changes):
        raise SigmaConfigError(
            f"{path}: a study resumes with the settings that it has. Pass the folder of a member to change it."
        )
    folder = reopen_study(path, say)
    return _train(
        folder, folder.base(), lambda described: understood(add_monitors(described, monitors)), as_json, quiet
    )


def _train(
    folder: StudyFolder,
    base: Document,
    configure: Callable[[Document], Configuration],
    as_json: bool,
    quiet: bool,
    is_new: bool = False,
) -> int:
    """Train the members that have not ended, and print what all came to; return the exit code."""

    def train(environment: Environment) -> Summary:
        if quiet:
            hush(environment)
        try:
            summary = environment.run(shows(quiet))
        except KeyboardInterrupt:
            summary = environment.summary()
        if not quiet:
            tell(summary)
        return summary

    debug = DEBUG in click.get_current_context().meta
    inform = (lambda text: None) if quiet else say
    training = StudyTraining(folder, base, configure, train, inform, lambda error: fail(error, debug), is_new)
    try:
        code = training.train_all()
    finally:
        folder.release()
    study = read_study(folder.path)
    if as_json:
        document({**to_plain(study), "folder": str(folder.path)})
    elif not quiet:
        table(table_of(study))
        say(f"{'to continue: sigma resume ' if study.status != 'finished' else ''}{folder.path}")
    return code
