"""``sigma search``: train trials with different settings, and report the best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigma_run.config import override
from sigma_run.launcher import json_option, open_document, say, show_study
from sigma_search.searching import begin_search, check_resumable, plan_search, reopen_search, train_trials

_SET = "Override one key, such as --set trainer.optimiser.learning_rate=0.1 (repeatable)."


@click.command("search")
@click.argument("what", metavar="[RECIPE|FILE]", required=False)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help=_SET)
@click.option("--trials", metavar="N", type=click.IntRange(min=1), help="Train N trials.")
@click.option("--parallel", metavar="N", type=click.IntRange(min=1), help="Train so many trials at once.")
@click.option("--resume", metavar="STUDY", type=click.Path(path_type=Path), help="Continue the search in this folder.")
@click.option("--check", is_flag=True, help="Check the search, as `sigma check` does, and train nothing.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
@json_option
def search_command(
    what: str | None,
    overrides: tuple[str, ...],
    trials: int | None,
    parallel: int | None,
    resume: Path | None,
    check: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Search for the settings with which a configuration trains best.

    Its table [search] says which settings have which values, and which value to maximise or minimise. Each trial is a
    run in the folder of a study: it can be resumed, replayed and opened. The same search has the same trials, whatever
    the order in which they end. Ctrl-C ends it after checkpoints; --resume STUDY continues it.
    """
    tell: Any = (lambda text: None) if quiet else say
    if resume is not None:
        check_resumable({"RECIPE|FILE": what, "--set": overrides, "--parallel": parallel, "--check": check or None})
        folder, queue = reopen_search(resume, trials, tell)
    else:
        if what is None:
            raise click.UsageError("Name a recipe or a file, or --resume STUDY.")
        described = open_document(what, overrides)
        for option, number in (("trials", trials), ("parallel", parallel)):
            if number is not None:
                described = override(described, f"search.{option}={number}", f"--{option}")
        if check:
            tell(f"ok: {plan_search(described, tell)[1].settings.count} trials")
            return 0
        folder, queue = begin_search(described, tell)
    code, results = train_trials(folder, queue, tell)
    show_study(results.folder, as_json, quiet)
    if not as_json and not quiet:
        for line in results.commands:
            say(line)
    if results.best is None and int(code) in (0, 1):
        say(f"{results.folder}: no trial has finished with a finite {results.value}: there is no best one.")
    return int(code)
