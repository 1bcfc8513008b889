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
from sigma_run.config.building import hush
from sigma_run.launcher.configured import understood
from sigma_run.launcher.group import DEBUG, fail
from sigma_run.launcher.output import document, say, table
from sigma_run.launcher.showing import add_monitors, shows, tell
from sigma_run.study.folder import StudyFolder, create_study, read_study, reopen_study
from sigma_run.study.launching import StudyTraining, describe_begin
from sigma_run.study.members import MemberOpener
from sigma_run.study.parallel import train_planned
from sigma_run.study.plan import LOST, Member, fold_keys, plan_members, table_of, to_plain


def run_study(
    described: Document, seeds: int | None, folds: int | None, parallel: int, as_json: bool, quiet: bool
) -> int:
    """Train a new study of a configuration, so many members at a time; return the exit code."""
    for option, number in (("--seeds", seeds), ("--folds", folds)):
        if number is not None and number < 2:
            raise SigmaConfigError(f"{option} {number}: a study has at least 2. Leave {option} out for a single run.")
    configuration = understood(described)
    run = configuration.run
    study = plan_members(run.seed, seeds, folds, [] if folds is None else fold_keys(configuration))
    text = resolved_toml(configuration, run.folder)
    folder = create_study(run.folder, evolve(study, name=run.name), text, say)
    return _train(folder, described, understood, parallel, as_json, quiet, is_new=True)


def resume_study(
    path: Path, monitors: tuple[str, ...], changes: Iterable[Any], parallel: int, as_json: bool, quiet: bool
) -> int:
    """Train the members of a study that have not ended; return the exit code.

    Raises SigmaConfigError if there are ``changes``: options that a study does not take.
    """
    if any(change not in (None, (), False) for change in changes):
        raise SigmaConfigError(
            f"{path}: a study resumes with the settings that it has. Pass the folder of a member to change it."
        )
    folder = reopen_study(path, say)
    if folder.study.search:
        folder.release()
        raise SigmaConfigError(f"{path}: is a search. Continue it with `sigma search --resume {path}`.")
    configure = lambda described: understood(add_monitors(described, monitors))  # noqa: E731
    return _train(folder, folder.base(), configure, parallel, as_json, quiet)


def _train(
    folder: StudyFolder,
    base: Document,
    configure: Callable[[Document], Configuration],
    parallel: int,
    as_json: bool,
    quiet: bool,
    is_new: bool = False,
) -> int:
    """Train the members that have not ended, and print what all came to; return the exit code."""
    opener = MemberOpener(folder.home, base, configure, (lambda text: None) if quiet else say)
    try:
        code = (
            _train_at_once(folder, opener, parallel, is_new)
            if parallel > 1
            else _train_in_turn(folder, opener, quiet, is_new)
        )
    finally:
        folder.release()
    show_study(folder.path, as_json, quiet)
    return code


def _train_at_once(folder: StudyFolder, opener: MemberOpener, parallel: int, is_new: bool) -> int:
    """Train members in processes; the first of a new study raises what is wrong, and no study is left."""
    if is_new:
        try:
            opener.check(folder.study.members[0])
        except BaseException:
            folder.remove()
            raise
    count = len(folder.study.members)
    begins = lambda member: opener.say(describe_begin(member, count))  # noqa: E731
    return train_planned(folder, parallel, begins, describe_end)


def _train_in_turn(folder: StudyFolder, opener: MemberOpener, quiet: bool, is_new: bool) -> int:
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
    return StudyTraining(folder, opener, train, lambda error: fail(error, debug), is_new).train_all()


def describe_end(member: Member) -> None:
    """Print what went wrong with a member."""
    if member.why and member.status in ("failed", LOST):
        say(f"member {member.folder}: {member.why}", "red")


def show_study(path: Path, as_json: bool, quiet: bool) -> None:
    """Print what the members of a study came to."""
    study = read_study(path)
    if as_json:
        document({**to_plain(study), "folder": str(path)})
    elif not quiet:
        table(table_of(study))
        command = f"sigma {'search --resume' if study.search else 'resume'} "
        say(f"{f'to continue: {command}' if study.status != 'finished' else ''}{path}")
