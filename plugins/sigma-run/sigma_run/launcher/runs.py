"""``sigma runs``: list run folders with their results and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import Any

import click

from sigma_kernel.contracts.storing import StoredRun
from sigma_kernel.errors import SigmaConfigError
from sigma_run.config.stores import open_run, stores
from sigma_run.launcher.branches import format_parent, list_branches, table_of
from sigma_run.launcher.output import document, json_option, name_metric, say, table, width, wrap_text
from sigma_run.overview import describing, listing
from sigma_run.overview.selecting import average_rows, columns_of, differing, select_rows, sort_rows
from sigma_run.study.folder import is_study, list_members as list_members, read_study

NAMED = 12  # of the columns that do not fit
STAR = "*"


@click.command()
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(file_okay=False, path_type=Path))
@click.option("--where", metavar="CRITERION", default="", help="List the runs for which it holds.")
@click.option("--sort", metavar="ADDRESS", help="Sort by a result, a setting, or seconds.  [default: oldest first]")
@click.option("--descending", is_flag=True, help="Sort from the greatest value on.")
@click.option("--columns", metavar="PATTERN", multiple=True, help="Show these results and settings (repeatable).")
@click.option("--average", metavar="SETTING", multiple=True, help="Average runs that differ in it alone (repeatable).")
@click.option("--archived", is_flag=True, help="List archived runs as well.")
@click.option("--branches", is_flag=True, help="List their branches: where each begins, what differs, best values.")
@json_option
def runs(
    folders: tuple[Path, ...],
    where: str,
    sort: str | None,
    descending: bool,
    columns: tuple[str, ...],
    average: tuple[str, ...],
    archived: bool,
    branches: bool,
    as_json: bool,
) -> None:
    """List the runs in FOLDER (by default runs/), oldest first: status, length, settings that differ, results.

    Studies follow, each in a row with the means of its members, or the best trial of a search. A FOLDER may be a run
    folder itself, or a study. A CRITERION is one as in hooks, about results, settings, status, name, starred and tags:
    `validation.accuracy reaches 0.9 and status equals "finished"`, `any tags.* equals "baseline"`.
    """
    if branches:
        print_branches(folders or (Path("runs"),), as_json)
        return
    rows = list_runs(folders or (Path("runs"),))
    shown = [row for row in rows if archived or not row.get("archived")]
    hidden = len(rows) - len(shown)
    rows = select_rows(shown, where)
    rows = average_rows(rows, average) if average else rows
    rows = sort_rows(rows, sort, descending) if sort else rows[::-1] if descending else rows
    settings = _select_settings(folders, differing([row["settings"] for row in rows]))
    for row in rows:
        row["settings"] = {key: row["settings"].get(key) for key in settings}
    if columns:
        rows = _select_columns(rows, columns)
    if as_json:
        document({"runs": rows})
    elif not rows:
        say(_describe_nothing(where, hidden))
    else:
        _print(rows)


def _describe_nothing(where: str, hidden: int) -> str:
    if where:
        return f"--where {where}: holds for no run."
    if hidden:
        return f"All {hidden} runs are archived. Pass --archived to list them."
    return "No runs found. Train one with `sigma run NAME`; `sigma recipes` lists the names."


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


def _select_columns(rows: Sequence[dict[str, Any]], patterns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows with those results and settings that match a pattern; SigmaConfigError if one matches none."""
    names = {name for row in rows for name in (*row["metrics"], *row["settings"])}
    for pattern in patterns:
        if rows and not any(fnmatchcase(name, pattern) for name in names):
            listing = ", ".join(sorted(names)[:NAMED]) or "none"
            raise SigmaConfigError(
                f"--columns {pattern}: matches no result or setting that differs. There are: {listing}."
            )

    def select(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: x for name, x in values.items() if any(fnmatchcase(name, pattern) for pattern in patterns)}

    return [{**row, "metrics": select(row["metrics"]), "settings": select(row["settings"])} for row in rows]


def list_runs(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what is known of the runs in some folders, oldest first, then of studies."""
    return listing.list_runs(folders, _warn)


def describe_run(run: Path, stored: StoredRun | None = None) -> dict[str, Any]:
    """Return folder, marks, status, length, results and settings by dotted key; nothing of the run is executed."""
    return describing.describe_run(run, stored or open_run(run, say), _warn)


def _warn(text: str) -> None:
    say(text, "yellow")


# -- printing ----------------------------------------------------------------------------------------------------------
def _print(found: Sequence[Mapping[str, Any]]) -> None:
    """Print a table as wide as the terminal; columns that do not fit are counted. In a pipe or a file, print all."""
    cells = [_cells(run) for run in found]
    columns = [
        ["RUN", *(Path(run["folder"]).name for run in found)],
        *_marks(found),
        ["STATUS", *(run["status"] for run in found)],
        ["EPOCHS", *(_cell(run["epochs"]) for run in found)],
        ["SECONDS", *(_cell(run["seconds"]) for run in found)],
        *([_title(key), *(own.get(key, "") for own in cells)] for key in columns_of(cells)),
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


def _marks(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the columns of what people said of the runs, as far as they did, and of how many runs a row is."""
    cells = {
        "RUNS": [_cell(run["members"]) if "deviations" in run else "" for run in found],
        STAR: [STAR if run.get("starred") else "" for run in found],
        "NAME": [run.get("title", "") for run in found],
        "TAGS": [" ".join(run.get("tags", ())) for run in found],
    }
    return [[name, *column] for name, column in cells.items() if any(column)]


def _cells(run: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the text of results and settings, with the deviation beside a mean."""
    spread = run.get("deviations", {})
    metrics = {("", name): _cell(x) + _deviation(spread.get(name)) for name, x in run["metrics"].items()}
    return {**metrics, **{("setting", name): _cell(x) for name, x in run["settings"].items()}}


def _deviation(value: float | None) -> str:
    return "" if value is None else f" ±{value:.2g}"


def _title(key: tuple[str, str]) -> str:
    kind, name = key
    return ".".join(name.split(".")[-2:]) if kind else name_metric(name)


def _fitting(columns: Sequence[Sequence[str]], width: int) -> Sequence[Sequence[str]]:
    """Return the first columns that fit into a width, and the first two in any case."""
    ends = accumulate(2 + max(map(len, column)) for column in columns)
    return columns[: max(2, sum(end - 2 <= width for end in ends))]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
