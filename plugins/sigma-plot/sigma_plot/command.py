"""``sigma plot``: draw the curves of runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, TypeVar

import click
import numpy as np

from sigma_kernel.curves import AXES, FIELDS, BranchedCurves, Curve, Stretch
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.periods import add_times, read_periods
from sigma_plot.charts import is_of_machine, panels, svg
from sigma_plot.drawing import Curves, Left, csv, picture, terminal
from sigma_plot.times import TIME
from sigma_run.config import open_run
from sigma_run.launcher import colours, document, json_option, list_members, say
from sigma_run.study import Study, is_study, read_study

T = TypeVar("T")
TRIAL = "trial"  # the axis of a search


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--value", "patterns", metavar="PATTERN", multiple=True, help="Plot these values (repeatable).")
@click.option(
    "--over", type=click.Choice([*AXES, TIME, TRIAL]), help="Horizontal axis.  [default: iteration; of a search: trial]"
)
@click.option("--save", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help=".svg, .png or .csv.")
@json_option
def plot(runs: tuple[Path, ...], patterns: tuple[str, ...], over: str | None, save: Path | None, as_json: bool) -> None:
    """Plot the values measured during each RUN, in the terminal or to a file.

    Values with the same last name share a chart: training.loss and validation.loss. PATTERN is an address, in which
    `*` stands for any characters. Branches that were left by a rewind are dotted. Of a study, all members are plotted;
    of a search over trials, the value of each trial and the best so far.
    """
    over = over or (TRIAL if all(map(is_search, runs)) else "iteration")
    if over == TRIAL:
        _show(select_curves(read_trials(runs), patterns), {}, over, save, as_json)
        return
    named = shorten_run_names(list_members(runs))
    metrics = {name: read_curves(run) for name, run in named.items()}
    is_table = save is not None and save.suffix.lower() == ".csv"
    joined = not as_json and not is_table
    shown = select_parts(metrics, patterns, joined)
    if over != TIME and not is_table:
        _show(*shown, over, save, as_json)
        return
    timed = select_parts({name: read_times(named[name], own, over) for name, own in metrics.items()}, patterns, joined)
    if is_table and save is not None and not as_json:
        _write(save, csv(*shown, timed).encode())
    else:
        _show(*(shown if as_json else timed), over, save, as_json)


def select_parts(
    metrics: Mapping[str, Mapping[str, BranchedCurves]], patterns: Sequence[str], joined: bool
) -> tuple[Curves, Left]:
    """Return the curves of runs whose names match, and their parts on branches that were left."""
    curves = select_curves({run: _by_name(own, BranchedCurves.curves) for run, own in metrics.items()}, patterns)
    return curves, {run: _by_name(own, lambda tree: tree.abandoned_stretches(joined)) for run, own in metrics.items()}


def read_times(run: Path, measured: Mapping[str, BranchedCurves], over: str) -> Mapping[str, BranchedCurves]:
    """Return what was measured over times of day; raise SigmaConfigError if that is the axis, and none is known."""
    periods = read_periods(open_run(run, say).journal_rows())
    if over == TIME and not periods:
        raise SigmaConfigError(f"{run}: its journal holds no times of day. Plot it over second.")
    return {trainer: add_times(own, periods.get(trainer, ())) for trainer, own in measured.items()}


def _show(curves: Curves, left: Left, over: str, save: Path | None, as_json: bool) -> None:
    """Draw curves in the terminal, or write them to a file."""
    if as_json:
        document({"runs": {run: _to_json(own, left.get(run, {})) for run, own in curves.items()}})
    elif save is None:
        coloured = sys.stdout.isatty() and colours() is not False
        drawn = terminal(panels(curves, _axis(over), left), over, get_terminal_size().columns, coloured)
        click.echo(drawn or "Nothing was measured.")
    else:
        _write(save, _format(save)(curves, left, over))


def read_curves(run: Path) -> Mapping[str, BranchedCurves]:
    """Return the history of each trainer of a run; raise SigmaConfigError if there is none."""
    stored = open_run(run, say)
    if not (curves := stored.curves(say)) and stored.read("config.toml") is None:
        raise SigmaConfigError(f"{run}: no metrics there. Pass the folder of a run.")
    return curves


def is_search(path: Path) -> bool:
    """Return whether a folder is the study of a search."""
    return is_study(path) and bool(read_study(path).search)


def read_trials(studies: Sequence[Path]) -> Curves:
    """Return the value of each trial of searches, and the best so far of those that have finished, over trials.

    Raises SigmaConfigError for a folder of something else.
    """
    curves = dict[str, dict[str, Curve]]()
    for path, name in zip(studies, [path.resolve().name for path in studies], strict=True):
        if not is_search(path):
            raise SigmaConfigError(f"{path}: has no trials. Pass a folder that `sigma search` wrote.")
        head = f"{name} " if len(studies) > 1 else ""
        values, best = _list_trials(read_study(path))
        goal = read_study(path).goal or ""
        curves |= {f"{head}each trial": {goal: _by_trial(values)}, f"{head}best so far": {goal: _by_trial(best)}}
    return curves


def _list_trials(study: Study) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Return number and value of each trial, and the best value so far from the first that has finished on."""
    values, best = list[tuple[int, float]](), list[tuple[int, float]]()
    choose = max if "maximise" in study.search else min
    for number, member in enumerate(study.members):
        if (value := member.metrics.get(study.goal or "")) is None:
            continue
        values.append((number, value))
        if member.status == "finished":
            best.append((number, choose(value, best[-1][1]) if best else value))
    return values, best


def _by_trial(points: Sequence[tuple[int, float]]) -> Curve:
    """Return values as a curve over the numbers of trials."""
    numbers, values = np.array(points, float).reshape(-1, 2).T
    at, zero = numbers.astype(np.int64), np.zeros(len(numbers))
    return Curve(at, zero.astype(np.int64), zero, values, values, values)


def _axis(over: str) -> str:
    """Return the field of a curve for an axis: numbers of trials stand for iterations, times for seconds."""
    return {TIME: "second", TRIAL: "iteration"}.get(over, over)


def shorten_run_names(runs: Sequence[Path]) -> dict[str, Path]:
    """Return runs by a short name: that of the folder, or the whole path if two have the same."""
    names = [run.resolve().name for run in runs]
    return {(name if names.count(name) == 1 else str(run)): run for name, run in zip(names, runs, strict=True)}


def _by_name(found: Mapping[str, BranchedCurves], what: Callable[[BranchedCurves], Mapping[str, T]]) -> dict[str, T]:
    """Return the curves of each trainer by name; with several trainers, names begin with the trainer's."""
    several = len(found) > 1
    return {
        f"{trainer}.{name}" if several else name: value
        for trainer, own in found.items()
        for name, value in what(own).items()
    }


def select_curves(curves: Curves, patterns: Sequence[str]) -> Curves:
    """Return the curves whose names match a pattern; without patterns, all but those of the machine, ``system.*``.

    Raises SigmaConfigError for a pattern that matches nothing.
    """
    names = dict.fromkeys(name for values in curves.values() for name in values)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            listing = ", ".join(names) or "none"
            raise SigmaConfigError(f"--value {pattern}: has no recorded values. There are: {listing}.")
    chosen = [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
    wanted = chosen if patterns else [name for name in names if not is_of_machine(name)]
    return {run: {name: values[name] for name in wanted if name in values} for run, values in curves.items()}


def _to_json(found: Mapping[str, Curve], left: Mapping[str, Sequence[Stretch]]) -> dict[str, dict[str, Any]]:
    """Return curves as JSON values; a value that is not finite is None."""
    return {
        name: {
            **_columns(curve),
            **({"left": [_describe_stretch(stretch) for stretch in left[name]]} if left.get(name) else {}),
        }
        for name, curve in found.items()
    }


def _describe_stretch(stretch: Stretch) -> dict[str, Any]:
    return {"branch": stretch.branch, **_columns(stretch.curve)}


def _columns(curve: Curve) -> dict[str, list[float | None]]:
    return {key: [x if x == x else None for x in getattr(curve, key).tolist()] for key in FIELDS}


def _format(path: Path) -> Callable[[Curves, Left, str], bytes]:
    """Return the writer of files with this extension; raise SigmaConfigError if there is none."""
    formats = {".svg": _svg, ".png": _png, ".csv": _csv}
    if path.suffix.lower() not in formats:
        raise SigmaConfigError(f"--save {path}: unknown format. Name a file with one of {', '.join(formats)}.")
    return formats[path.suffix.lower()]


def _svg(curves: Curves, left: Left, over: str) -> bytes:
    return svg(", ".join(curves), panels(curves, _axis(over), left), over).encode()


def _png(curves: Curves, left: Left, over: str) -> bytes:
    return picture(", ".join(curves), panels(curves, _axis(over), left), over)


def _csv(curves: Curves, left: Left, over: str) -> bytes:
    return csv(curves, left).encode()


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise SigmaConfigError(f"--save {path}: {error.strerror}. Choose another file.") from error
    say(str(path))
