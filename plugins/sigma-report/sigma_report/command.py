"""``sigma report``: how well a trained network predicts, as a page of HTML or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_report.findings import describe
from sigma_report.page import render_page
from sigma_run import Trained, load
from sigma_run.launcher import document, json_option, say

ROWS = 10_000
PAGE = "report.html"  # in the run folder


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("data", metavar="[DATA]", type=click.Path(path_type=Path), required=False)
@click.option("--on", metavar="SPLIT", help="Report this split of the run's data. [default: validation, else test]")
@click.option("--save", metavar="FILE", type=click.Path(path_type=Path), help="Write here. [default: RUN/report.html]")
@click.option("--trainer", metavar="NAME", help="Use this trainer, if the run has several.")
@click.option("--output", metavar="NAME", default="", help="Report this output, if the network has several.")
@click.option("--checkpoint", metavar="N|best|newest", help="Use this checkpoint. [default: the best, if it is kept]")
@click.option("--rows", type=click.IntRange(min=1), default=ROWS, show_default=True, help="Draw at most so many rows.")
@click.option("--worst", type=click.IntRange(min=0), default=10, show_default=True, help="List so many rows.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="Shuffle a column so often.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Draws and shuffles rows.")
@click.option("--calibrate", is_flag=True, help="Fit a temperature on the validation split, and show what it changes.")
@json_option
def report(
    run: Path, data: Path | None, on: str | None, save: Path | None, trainer: str | None, output: str,
    checkpoint: str | None, rows: int, worst: int, repeats: int, seed: int, calibrate: bool, as_json: bool,
) -> None:  # fmt: skip
    """Report how well the trained network of the run folder RUN predicts.

    The page has a confusion matrix, ROC and precision-recall curves and the calibration of classes, or the residuals of
    numbers; the worst rows with their content; which columns matter; and the curves of the run. DATA is a file that is
    read like the data of the run, instead of a split of these.
    """
    if data is not None and on is not None:
        raise SigmaConfigError(f"--on {on}: is a split of the run's data. Leave it out, or leave out {data}.")
    which: Any = int(checkpoint) if checkpoint and checkpoint.isascii() and checkpoint.isdigit() else checkpoint
    model = load(run, trainer, checkpoint=which, log=_warn)
    place = data if data is not None else on
    findings = describe(
        model, place, output=output, most=rows, worst=worst, repeats=repeats, seed=seed, calibrated=calibrate
    )
    if save is not None or not as_json:
        _write(save or run / PAGE, render_page(run.resolve().name, findings, _draw_curves(model)))
    if as_json:
        document({"folder": str(run), **findings})


def _draw_curves(model: Trained) -> str:
    """Return the curves of the run as SVG; nothing if it measured none, or no chart is installed."""
    curves = model.history.branched_curves()
    try:
        chart = model.trainer.resolve("chart", "default:curves")
    except SigmaPluginError as error:
        _warn(f"the page has no curves: {error}")
        return ""
    return str(chart.draw("", {"": curves}, "iteration")) if curves.lines else ""


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise SigmaConfigError(f"{path}: cannot be written: {error.strerror}. Pass another to --save.") from error
    say(str(path))


def _warn(text: Any) -> None:
    say(f"warning: {text}", "yellow")
