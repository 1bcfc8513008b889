"""``sigma share``: a run as one page of HTML that opens without a server, or as one archive to resume and replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import tomlkit

from sigma_kernel import catalogue
from sigma_kernel.contracts import StoredRun
from sigma_kernel.curves import BranchedCurves
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_report.answers import choose_split
from sigma_report.content import describe_sample, find_span
from sigma_report.media import ShownMedia, choose_media
from sigma_report.outward import list_attached, list_steered
from sigma_report.redacting import Redactor
from sigma_report.run_page import render_run
from sigma_run import Trained, load
from sigma_run.config import open_run, read_configuration
from sigma_run.launcher import describe_run, document, json_option, say
from sigma_store import pack_run

CONFIG, SUMMARY = "config.toml", "summary.json"
DOCUMENTS = (SUMMARY, "plugins.json", "marks.json")
PAGE, ARCHIVE = ".html", ".zip"
COMMANDS = 1000  # of a run, on the page
MEDIA = 6  # moments of a name, on the page


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--save", metavar="FILE", type=click.Path(path_type=Path), help="A page, FILE.html, or an archive, "
              "FILE.zip. [default: RUN/share.html]")  # fmt: skip
@click.option("--rows", type=click.IntRange(0, 1000), default=0, show_default=True, help="Show so many rows of data.")
@click.option("--media", type=click.IntRange(0, 100), default=MEDIA, show_default=True, help="Show so many moments of "
              "each kind of picture, text and sound.")  # fmt: skip
@click.option("--on", metavar="SPLIT", help="Show rows of this split. [default: validation, else test]")
@click.option("--trainer", metavar="NAME", help="Show rows of this trainer, if the run has several.")
@json_option
def share(
    run: Path, save: Path | None, rows: int, media: int, on: str | None, trainer: str | None, as_json: bool
) -> None:
    """Write the run in the folder RUN as one file for others.

    The page has results, curves, pictures and texts of hooks, commands and settings, and rows of the data if --rows
    asks for them. From the archive, `sigma open FILE` resumes or replays the run. Monitors, hooks that send messages,
    tokens, passwords and absolute paths are in neither; what is left out is listed.
    """
    file = save or run / f"share{PAGE}"
    if file.suffix.lower() not in (PAGE, ARCHIVE):
        raise SigmaConfigError(
            f"--save {file}: is neither a page nor an archive. Name a file with {PAGE} or {ARCHIVE}."
        )
    if (rows or on) and file.suffix.lower() == ARCHIVE:
        raise SigmaConfigError(f"--rows {rows}: an archive holds no data. Save a page, FILE{PAGE}.")
    stored, redactor = open_run(run, say), Redactor.of_run(run)
    configuration = _read_configuration(stored, run, redactor)
    if file.suffix.lower() == ARCHIVE:
        others = _pack(stored, run, file, configuration, redactor)
    else:
        shown = _draw_rows(load(run, trainer, log=say), on, rows) if rows or on else {}
        chosen = choose_media(stored, media, redactor)
        others = ["checkpoints", *chosen.left_out]
        _write(file, _render(stored, run, configuration, shown, chosen, redactor, others))
    left_out = _list_left_out(redactor, others)
    if as_json:
        document({"folder": str(run), "file": str(file), "left_out": left_out})
        return
    say(str(file))
    for line in left_out:
        say(f"left out: {line}")


def _read_configuration(stored: StoredRun, run: Path, redactor: Redactor) -> str:
    """Return the text of the configuration without what is private; a text without that is not changed."""
    read_configuration(stored, run)  # raises the error of one that cannot be read
    text = (stored.read(CONFIG) or b"").decode("utf-8-sig")
    table = tomlkit.parse(text)
    redactor.clear(table)
    return tomlkit.dumps(table) if redactor.left_out else text


def _list_left_out(redactor: Redactor, others: list[str]) -> list[str]:
    """Return a line for all that the file lacks."""
    replaced = [f"{what} (in its place: {new})" for what, new in redactor.left_out.items()]
    return ["the data that the run read", *(f"{name} of the run folder" for name in others), *replaced]


# -- the archive -------------------------------------------------------------------------------------------------------
def _pack(stored: StoredRun, run: Path, file: Path, configuration: str, redactor: Redactor) -> list[str]:
    """Write the archive; return the entries of the run folder that it lacks."""
    if stored.path is None:
        raise SigmaConfigError(f"{run}: is not in a run folder, and only these are archived. Save a page, FILE{PAGE}.")
    if needed := [*list_attached(stored, say), *list_steered(stored, redactor.hooks)]:
        raise SigmaConfigError(
            f"{run}: commands attached or changed {', '.join(needed)}, which an archive leaves out, so it could not be "
            f"replayed. Save a page, FILE{PAGE}."
        )
    documents = {CONFIG: configuration.encode()}
    for name in DOCUMENTS:
        if (data := stored.read(name)) is not None:
            documents[name] = _redact_document(run / name, data, redactor)
    name = tomlkit.parse(configuration).get("run", {}).get("name", run.resolve().name)
    return pack_run(stored.path, file, str(name), documents, redactor.json, redactor.secret(), say)


def _redact_document(path: Path, data: bytes, redactor: Redactor) -> bytes:
    try:
        return json.dumps(redactor.redact_values(json.loads(data)), indent=1).encode()
    except (ValueError, RecursionError) as error:
        raise SigmaConfigError(f"{path}: not JSON: {error!r:.200}. Restore it from a copy.") from error


# -- the page ----------------------------------------------------------------------------------------------------------
def _render(
    stored: StoredRun,
    run: Path,
    configuration: str,
    shown: Mapping[str, Any],
    media: ShownMedia,
    redactor: Redactor,
    others: list[str],
) -> str:
    description = redactor.redact_values({**describe_run(run, stored), "folder": ""})
    commands = [redactor.redact_values(row) for row in stored.journal_rows() if "command" in row]
    curves = stored.curves(say)
    drawings = {name: _draw(name, branched) for name, branched in curves.items() if branched.lines}
    name = redactor.text(description.get("title") or run.resolve().name)
    return render_run(
        name, description, drawings, commands[:COMMANDS], len(commands), redactor.text(configuration), shown,
        media, _list_left_out(redactor, others),
    )  # fmt: skip


def _draw(trainer: str, curves: BranchedCurves) -> str:
    """Return the curves of a trainer as SVG; nothing if no chart is installed."""
    try:
        chart: Any = catalogue().load("chart", "default:curves")
    except SigmaPluginError as error:
        say(f"the page has no curves: {error}", "yellow")
        return ""
    return str(chart().draw(trainer, {"": curves}, "iteration"))


def _draw_rows(model: Trained, on: str | None, count: int) -> dict[str, Any]:
    """Return the first rows of a split, section by section, as they are in the data."""
    splits, split = model.data.splits(), on or choose_split(model)
    if split not in splits:
        raise SigmaConfigError(f"--on {split}: there is no such split. There are: {', '.join(splits)}.")
    numbers = range(min(count or 10, splits[split]))
    sections = model.data.rows(split, numbers)
    names = {**model.targets, **model.columns}
    spans = {name: find_span(values) for name, values in sections.items() if values.dtype.kind in "biuf"}
    rows = [
        {
            name: describe_sample(values[i], names.get(name, ()), model.classes, spans.get(name, (0, 1)))
            for name, values in sections.items()
        }
        for i in numbers
    ]
    return {"on": split, "of": splits[split], "rows": rows}


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise SigmaConfigError(f"--save {path}: cannot be written: {error.strerror}. Choose another file.") from error
