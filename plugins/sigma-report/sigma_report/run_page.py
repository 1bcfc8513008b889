"""A run as one page of HTML: results, curves, commands, settings, rows of data, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sigma_report.charts import as_text
from sigma_report.media import ShownMedia, render_media
from sigma_report.pieces import (
    render_content,
    render_curves,
    render_document,
    render_note,
    render_section,
    render_table,
)

FIELDS = ("trainer", "iteration", "epoch", "seconds", "time", "to_seconds", "command", "branch", "by")  # of a row


def render_run(
    name: str,
    description: Mapping[str, Any],
    drawings: Mapping[str, str],
    commands: Sequence[Mapping[str, Any]],
    count: int,
    configuration: str,
    shown: Mapping[str, Any],
    media: ShownMedia,
    left_out: Sequence[str],
) -> str:
    """Return the page of a run: see :func:`sharing.share`; of its commands, ``count`` were journalled."""
    return render_document(
        name,
        [
            *_head(name, description),
            _results(description),
            *map(render_curves, drawings.values()),
            render_media(media),
            _commands(commands, count),
            _rows(shown),
            render_section("Settings", f'<div class="scroll" tabindex="0"><pre>{as_text(configuration)}</pre></div>'),
            render_section("Left out", _items(left_out)),
        ],
    )


def _items(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{as_text(line)}</li>' for line in lines)}</ul>"


def _head(name: str, run: Mapping[str, Any]) -> Iterator[str]:
    length = [f"{run[unit]:g} {unit}" for unit in ("epochs", "iterations", "seconds") if run[unit] is not None]
    yield f"<h1>{as_text(name)}</h1><p>{as_text(', '.join([run['status'], *length]))}</p>"
    if why := run.get("why"):
        yield f"<p>{as_text(why)}</p>"
    if tags := run.get("tags"):
        yield render_note(" ".join(tags))
    if words := run.get("note"):
        yield "".join(f"<p>{as_text(line)}</p>" for line in words.splitlines())


def _results(run: Mapping[str, Any]) -> str:
    baselines = run.get("baselines", {})
    rows = [[name, value, *(own.get(name) for own in baselines.values())] for name, value in run["metrics"].items()]
    if not rows:
        return render_section("Results", render_note("Nothing was measured."))
    table = render_table("Last values", ["value", "this run", *baselines], rows)
    return render_section("Results", table, _items(run.get("advice", ())))


def _commands(rows: Sequence[Mapping[str, Any]], count: int) -> str:
    """Return the commands, each with its moment and what it changed."""
    if not rows:
        return ""
    lines = [[row.get("iteration"), row.get("epoch"), row["command"], _change(row), row.get("by", "")] for row in rows]
    more = render_note(f"The first {len(rows)} of {count:,}.") if count > len(rows) else ""
    table = render_table("Commands, as they were applied", ["iteration", "epoch", "command", "what", "by"], lines)
    return render_section("Commands", table, more)


def _change(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}"[:200] for name, value in row.items() if name not in FIELDS)


def _rows(shown: Mapping[str, Any]) -> str:
    if not shown:
        return ""
    lines = (
        f'<tr><th scope="row">{number}</th>'
        f"{''.join(f'<td class=text>{render_content(name, x, number)}</td>' for name, x in row.items())}</tr>"
        for number, row in enumerate(shown["rows"])
    )
    titles = "".join(f'<th scope="col">{as_text(name)}</th>' for name in ("row", *(shown["rows"] or [{}])[0]))
    caption = f"The first rows of {as_text(shown['on'])}, of {shown['of']:,}, as they are in the data"
    return render_section(
        "Rows of the data",
        f'<div class="scroll" role="region" tabindex="0" aria-label="Rows of the data"><table><caption>{caption}'
        f"</caption><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>",
    )
