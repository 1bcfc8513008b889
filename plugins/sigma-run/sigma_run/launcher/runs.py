"""``sigma runs``: list run folders with their results and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf, isfinite
from pathlib import Path
from typing import Any

import click

from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.errors import SigmaError
from sigma_run.config.document import read
from sigma_run.config.stored import SUMMARY, read_configuration, read_document
from sigma_run.config.stores import BASE, open_run, stores
from sigma_run.launcher.branches import format_parent, list_branches, parent_of, table_of
from sigma_run.launcher.output import document, json_option, say, table, width, wrap_text
from sigma_run.study.folder import is_study, list_members as list_members, list_studies, read_study
from sigma_run.study.plan import Study, lengths, representative

LENGTH = ("epochs", "iterations", "seconds")
NAMED = 12  # of the columns that do not fit
ROOM, WHY, NAME = 1 << 18, 4000, 100  # characters: of the values of one run, of why it failed, of its status
BASELINES = 20  # of a run, and sentences about its results


@click.command()
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(file_okay=False, path_type=Path))
@click.option("--branches", is_flag=True, help="List their branches: where each begins, what differs, best values.")
@json_option
def runs(folders: tuple[Path, ...], branches: bool, as_json: bool) -> None:
    """List the runs in FOLDER (by default runs/), oldest first: status, length, settings that differ, results.

    Studies follow, each in a row with the means of its members, or the best trial of a search. A FOLDER may be a run
    folder itself, or a study.
    """
    if branches:
        print_branches(folders or (Path("runs"),), as_json)
        return
    rows = list_runs(folders or (Path("runs"),))
    settings = _select_settings(folders, differing([row["settings"] for row in rows]))
    for row in rows:
        row["settings"] = {key: row["settings"].get(key) for key in settings}
    if as_json:
        document({"runs": rows})
    elif not rows:
        say("No runs found. Train one with `sigma run NAME`; `sigma recipes` lists the names.")
    else:
        _print(rows, settings)


def print_branches(folders: Sequence[Path], as_json: bool) -> None:
    """Print the branches of the runs in some folders."""
    listed = [
        branch for store in stores() for run in store.runs(folders) for branch in list_branches(run, open_run(run, say))
    ]
    if as_json:
        document({"branches": listed})
    else:
        table(table_of(listed))


def _select_settings(folders: Sequence[Path], settings: Sequence[str]) -> list[str]:
    """Return the settings that are shown: of the trials of a search those that are searched, else all that differ."""
    search = read_study(folders[0]) if len(folders) == 1 and is_study(folders[0]) else None
    return [key for key in settings if search is None or not search.search or key in search.varies]


def list_runs(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return folder, status, length, results and settings of the runs in some folders, oldest first, then studies."""
    pairs = [(describe_run(run), store.is_locked(run)) for store in stores() for run in store.runs(folders)]
    runs = [{**row, "status": "running"} if locked else row for row, locked in pairs]
    return [*runs, *map(_describe_study, list_studies(folders))]


def _describe_study(path: Path) -> dict[str, Any]:
    """Return folder, status, length, mean results and settings of a study, and how many members it has."""
    study, settings = Study(name="", varies=(), members=()), dict[str, Any]()
    try:
        study = read_study(path)
        written = read(path / BASE, regular=True).values
        settings = dict(flat({name: table for name, table in written.items() if name != "monitors"}))
    except SigmaError as error:
        say(str(error), "yellow")
    return {
        "folder": str(path),
        "status": study.status if study.members else "unfinished",
        **lengths(study),
        "metrics": representative(study),
        "settings": _limit_length(path, "settings", {name: _to_json(value) for name, value in settings.items()}),
        "members": len(study.members),
    }


def describe_run(run: Path, stored: StoredRun | None = None) -> dict[str, Any]:
    """Return folder, status, length, results and settings by dotted key, as files say; nothing of them is executed."""
    stored = stored or open_run(run, say)
    summary = read_document(stored, SUMMARY, say)
    measured = _numbers(summary.get("metrics"))
    baselines = {name: _numbers(values) for name, values in _pairs(summary.get("baselines"))[:BASELINES]}
    advice = [str(text)[:WHY] for text in _list(summary.get("advice"))[:BASELINES]]
    return {
        "folder": str(run),
        "status": str(summary.get("status", "unfinished"))[:NAME],
        **({"why": str(summary["why"])[:WHY]} if summary.get("why") else {}),
        **{key: _number(summary.get(key)) for key in LENGTH},
        "metrics": _limit_length(run, "metrics", measured),
        **({"baselines": _limit_length(run, "baselines", baselines)} if baselines else {}),
        **({"advice": advice} if advice else {}),
        **({"parent": parent} if (parent := parent_of(stored)) else {}),
        "settings": _limit_length(run, "settings", {name: _to_json(value) for name, value in _settings(stored, run)}),
    }


def _pairs(found: Any) -> list[tuple[str, Any]]:
    return [(str(name), value) for name, value in found.items()] if isinstance(found, Mapping) else []


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _numbers(found: Any) -> dict[str, int | float | None]:
    """Return the values of an object as numbers; nothing for anything else."""
    return {name: _number(value) for name, value in _pairs(found)}


def _number(value: Any) -> int | float | None:
    """Return a number; None for anything else, and for one that JSON has no number for, such as 1e999."""
    return value if isinstance(value, int | float) and isfinite(_float(value)) else None


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return inf


def _to_json(value: Any) -> Any:
    """Return a setting as a value that JSON has: dates, and numbers that are not finite, as text."""
    if isinstance(value, list):
        return [_to_json(inner) for inner in value]
    if isinstance(value, Mapping):
        return {name: _to_json(inner) for name, inner in value.items()}
    return value if isinstance(value, str) or _number(value) is not None else str(value)


def _limit_length(run: Path, what: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that fit into the room that one run has in a list; say how many do not."""
    ends = accumulate(len(name) + len(str(value)) for name, value in values.items())
    shown = {name: value for (name, value), end in zip(values.items(), ends, strict=True) if end <= ROOM}
    if len(shown) < len(values):
        say(f"{run}: {len(values) - len(shown)} of its {what} are not listed: they are longer than {ROOM:,}.", "yellow")
    return shown


def _settings(stored: StoredRun, run: Path) -> Iterator[tuple[str, Any]]:
    try:
        written = read_configuration(stored, run).values
        described = {name: table for name, table in written.items() if name != "monitors"}
        yield from flat(described)
    except SigmaError as error:
        say(str(error), "yellow")


def flat(values: Mapping[str, Any], head: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables by dotted key."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{head}{name}.")
        else:
            yield f"{head}{name}", value


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys whose values are not the same everywhere."""
    keys = dict.fromkeys(key for values in settings for key in values)
    return [key for key in keys if any(values.get(key) != settings[0].get(key) for values in settings)]


def _print(found: Sequence[Mapping[str, Any]], settings: Sequence[str]) -> None:
    """Print a table as wide as the terminal; columns that do not fit are counted. In a pipe or a file, print all."""
    metrics = dict.fromkeys(name for run in found for name in run["metrics"])
    columns = [
        ["RUN", *(Path(run["folder"]).name for run in found)],
        ["STATUS", *(run["status"] for run in found)],
        ["EPOCHS", *(_cell(run["epochs"]) for run in found)],
        ["SECONDS", *(_cell(run["seconds"]) for run in found)],
        *([name, *(_cell(run["metrics"].get(name)) for run in found)] for name in metrics),
        *([".".join(key.split(".")[-2:]), *(_cell(run["settings"][key]) for run in found)] for key in settings),
        *(
            [["PARENT", *(format_parent(run.get("parent")) for run in found)]]
            if any("parent" in run for run in found)
            else []
        ),
        *([["WHY", *(run.get("why", "") for run in found)]] if any(run["status"] == "pruned" for run in found) else []),
    ]
    shown = columns if (room := width()) is None else _fitting(columns, room)
    table(zip(*shown, strict=True))
    if rest := [column[0] for column in columns[len(shown) :]]:
        such = ", such as" if len(rest) > NAMED else ":"
        say(wrap_text(f"{len(rest)} more columns{such} {', '.join(rest[:NAMED])}. Widen the terminal, or pass --json."))


def _fitting(columns: Sequence[Sequence[str]], width: int) -> Sequence[Sequence[str]]:
    """Return the first columns that fit into a width, and the first two in any case."""
    ends = accumulate(2 + max(map(len, column)) for column in columns)
    return columns[: max(2, sum(end - 2 <= width for end in ends))]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
