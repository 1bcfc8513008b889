"""``sigma mark``: name, tag, note, star and archive runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from attrs import asdict

from sigma_kernel.errors import SigmaConfigError
from sigma_run.config.stores import open_run
from sigma_run.launcher.output import document, json_option, say
from sigma_run.overview.marks import Marks, make_marks, read_marks, write_marks


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--name", "title", metavar="TEXT", help="Show this name beside that of the folder; '' removes it.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Add a tag (repeatable).")
@click.option("--untag", "untags", metavar="TAG", multiple=True, help="Remove a tag (repeatable).")
@click.option("--note", metavar="TEXT", help="Replace the note; '' removes it.")
@click.option("--star/--unstar", "starred", default=None, help="Set or remove the star.")
@click.option("--archive/--restore", "archived", default=None, help="Hide the run in lists, or show it again.")
@json_option
def mark(
    runs: tuple[Path, ...],
    title: str | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    note: str | None,
    starred: bool | None,
    archived: bool | None,
    as_json: bool,
) -> None:
    """Name, tag, note, star or archive the runs in the folders RUN, or print what is said of them.

    It is kept in the file marks.json of the run folder. Training neither reads nor writes it, so that a run may train
    meanwhile, and replays to the same bits.
    """
    given = {"title": title, "note": note, "starred": starred, "archived": archived}
    changes = {name: value for name, value in given.items() if value is not None}
    changed = [(run, _change(run, changes, tags, untags)) for run in runs]
    for run, (stored, before, marks) in changed:
        if marks != before:
            write_marks(stored, marks)
        if not as_json:
            say(f"{run}: {_describe(marks)}")
    if as_json:
        document({"runs": [{"folder": str(run), **asdict(marks)} for run, (_, _, marks) in changed]})


def _change(
    run: Path, changes: dict[str, Any], tags: tuple[str, ...], untags: tuple[str, ...]
) -> tuple[Any, Marks, Marks]:
    """Return a run, its marks, and what they shall be; raise SigmaConfigError before anything is written."""
    stored = open_run(run, say)
    if stored.version("config.toml") is None:
        raise SigmaConfigError(f"{run}: not a run folder: it has no config.toml. Pass one below runs/.")
    before = read_marks(stored, say)
    if missing := [tag for tag in untags if tag not in before.tags]:
        raise SigmaConfigError(
            f"{run}: --untag {missing[0]}: it has no such tag. It has: {', '.join(before.tags) or 'none'}."
        )
    kept = [tag for tag in before.tags if tag not in untags]
    return stored, before, make_marks(run, {**asdict(before), **changes, "tags": (*kept, *tags)})


def _describe(marks: Marks) -> str:
    flags = [name for name in ("starred", "archived") if getattr(marks, name)]
    texts = [f"name {marks.title!r}"] * bool(marks.title) + [f"tags {', '.join(marks.tags)}"] * bool(marks.tags)
    return "; ".join([*texts, *flags, *([f"note: {marks.note}"] if marks.note else [])]) or "no marks"
