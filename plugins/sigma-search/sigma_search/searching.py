"""Begin a search, or continue one; also from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from attrs import evolve

from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config import Configuration, Document, load_configuration, override
from sigma_run.launcher import open_document
from sigma_run.study import (
    Member,
    MemberOpener,
    ParallelTraining,
    ProcessPool,
    Study,
    StudyFolder,
    create_study,
    reopen_study as reopen_folder,
)
from sigma_search.base import place_base, write_base
from sigma_search.protocol import Protocol
from sigma_search.results import SearchResults, inline
from sigma_search.sampling import VERSION
from sigma_search.settings import SearchSettings, read_settings
from sigma_search.space import check_addresses, check_goal, check_space, check_trials, explain_check, place_hook
from sigma_search.trials import TrialQueue, reopen_trials
from sigma_store.folders import WrittenFolder

Say = Callable[[str], None]


def search(
    what: Path | str,
    *overrides: str,
    space: Mapping[str, Mapping[str, Any]] | None = None,
    say: Say = lambda text: None,
    **settings: Any,
) -> SearchResults:
    """Train the trials of a search; return its results.

    ``what`` is a configuration file or the name of a recipe, ``overrides`` change keys, as ``--set`` does.  ``space``
    and ``settings`` are the keys of the table ``[search]``, in addition to those of the file:
    ``search("digits", space={"trainer.optimiser.learning_rate": {"low": 1e-4, "high": 0.1, "log": True}}, trials=8,
    maximise="validation.accuracy")``.  Ctrl-C ends it after checkpoints of its trials, and
    :func:`resume_search` continues it.

    Raises one SigmaConfigError for what is wrong before the first trial.
    """
    document = open_document(str(what), overrides)
    given = settings if space is None else {**settings, "space": {**space}}
    for name, value in ((name, value) for name, value in given.items() if value is not None):
        document = override(document, f"search.{name}={inline(value)}", name)
    folder, queue = begin_search(document, say)
    return train_trials(folder, queue, say)[1]


def resume_search(path: Path | str, trials: int | None = None, say: Say = lambda text: None) -> SearchResults:
    """Continue a search: trials that have not ended first; ``trials`` raises their number."""
    folder, queue = reopen_search(Path(path), trials, say)
    return train_trials(folder, queue, say)[1]


def plan_search(document: Document, say: Say) -> tuple[Configuration, TrialQueue]:
    """Return the configuration of a search and its trials; write nothing.

    Raises a SigmaError for what is wrong before the first trial.
    """
    settings = read_settings(document)
    check_addresses(document, settings)
    configuration = load_configuration(document, catalogue())
    base, run = place_base(document, configuration, settings.space), configuration.run
    check_space(document, base, settings)
    key, address = place_hook(document, configuration, settings)
    protocol = Protocol(settings.count, settings.parallel, settings.attempts)
    queue = TrialQueue(run.folder, settings, run.seed, key, address, protocol)
    home = WrittenFolder(run.folder.absolute())
    opener = MemberOpener(home, base, lambda changed: load_configuration(changed, catalogue()), say)
    explain_check(document, settings, key, lambda: check_goal(document, settings, opener.check(queue.plan(0))))
    return configuration, queue


def begin_search(document: Document, say: Say) -> tuple[StudyFolder, TrialQueue]:
    """Create the folder of a search; raise a SigmaError for what is wrong before its first trial."""
    configuration, queue = plan_search(document, say)
    settings, run = queue.settings, configuration.run
    study = Study(name=run.name, varies=(*settings.space,), members=(), search=_describe(settings))
    text = (
        write_base(configuration, settings.space, run.folder)
        + "\n"
        + tomlkit.dumps({"search": document.values["search"]})
    )
    folder = create_study(run.folder, study, text, say)
    return folder, evolve(queue, folder=folder.path)


def reopen_search(path: Path, trials: int | None, say: Say) -> tuple[StudyFolder, TrialQueue]:
    """Open the folder of a search, to continue it."""
    SearchResults.read(path)  # raises for another folder
    folder = reopen_folder(path, say)
    try:
        return folder, _reopen_queue(folder, trials, say)
    except BaseException:
        folder.release()
        raise


def _reopen_queue(folder: StudyFolder, trials: int | None, say: Say) -> TrialQueue:
    document, version = folder.base(), folder.study.search.get("optuna")
    option = f"{folder.path}: trials" if trials is None else "--trials"
    if (number := folder.study.search.get("trials") if trials is None else trials) is not None:
        document = override(document, f"search.trials={number}", option)
    settings = read_settings(document)
    check_addresses(document, settings)
    check_trials(document, settings, folder.study.members)
    configuration = load_configuration(document, catalogue())
    if version != VERSION:
        say(f"warning: began with Optuna {version}, and this is {VERSION}: other values may be proposed from here on")
    key, address = place_hook(document, configuration, settings)
    protocol = Protocol(settings.count, settings.parallel, settings.attempts)
    queue = TrialQueue(folder.path, settings, configuration.run.seed, key, address, protocol)
    reopened = reopen_trials(queue, folder.study)
    folder.extend(settings.count)
    return reopened


def _describe(settings: SearchSettings) -> dict[str, Any]:
    """Return the settings of a search for readers of its study."""
    goal = {"maximise": settings.maximise} if settings.maximise is not None else {"minimise": settings.minimise}
    return {
        "trials": settings.count,
        "parallel": settings.parallel,
        **goal,
        "sampler": settings.sampler,
        "optuna": VERSION,
    }


def train_trials(folder: StudyFolder, queue: TrialQueue, say: Say) -> tuple[int, SearchResults]:
    """Train the trials that have not ended; return the exit code, 1 if none has a value, and the results."""
    settings, varies = queue.settings, folder.study.varies

    def begins(member: Member) -> None:
        values = ", ".join(f"{key.rpartition('.')[2]} = {member.value_of(key)}" for key in varies)
        say(f"trial {member.folder} of {settings.count}: {values}")

    def ends(member: Member) -> None:
        value = member.metrics.get(settings.value)
        reached = "" if value is None else f", {settings.value} {value:.4g}"
        say(f"trial {member.folder} {member.status}{reached}{': ' if member.why else ''}{member.why}")

    pool = ProcessPool(folder.path, settings.parallel)
    try:
        code = ParallelTraining(folder, pool, queue, begins, ends).train_all()
    finally:
        folder.release()
    results = SearchResults.read(folder.path)
    return code or int(results.best is None), results


def check_resumable(options: Mapping[str, Any]) -> None:
    """Raise SigmaConfigError for an option that a search cannot change any more."""
    for option, value in options.items():
        if value not in (None, ()):
            raise SigmaConfigError(f"{option}: cannot change when a search is resumed. Leave it out, or begin another.")
