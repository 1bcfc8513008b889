"""The report as one page of HTML: light and dark, without scripts and without anything from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sigma_report.charts import LINES, as_text, draw_bars, draw_histogram, draw_lines, draw_points

CLASSES = 30  # of a confusion matrix on the page
SHOWN = 40  # bars
COLUMNS = 8  # of numbers, whose residuals are drawn
SAFE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1a1c20;--faint:#666a73;--grid:#e2e2dc;--mark:47,84,200;
--c0:#2f54c8;--c1:#bd4b00;--c2:#007558;--c3:#9b3199;--c4:#42400b;--c5:#133c5d}
@media(prefers-color-scheme:dark){:root{--ground:#17191d;--ink:#e9eaec;--faint:#a3a8b2;--grid:#2a2e34;--mark:147,173,255;
--c0:#93adff;--c1:#f2985a;--c2:#4fc6a3;--c3:#f0d4ed;--c4:#f5ca3a;--c5:#75899d}}
*{box-sizing:border-box}body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}h1{font-size:1.6rem}h2{margin-top:2.5rem;font-size:1.25rem}
h1,p,td,th,summary{overflow-wrap:anywhere}.faint,caption{color:var(--faint)}
.pair{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}.pair>*{flex:1 1 18rem;min-width:0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.25rem 0}th,td{padding:.25rem .6rem;border-bottom:1px solid var(--grid);
text-align:right;overflow-wrap:normal}th{font-weight:600}th[scope=row],td.text{text-align:left}
ul{list-style:none;padding:0}
svg{display:block;width:100%;max-width:32rem;height:auto;font-size:12px}svg text{fill:var(--ink)}
.grid{stroke:var(--grid)}.guide{stroke:var(--faint);stroke-dasharray:4 4;fill:none}
.error{stroke:var(--ink);stroke-width:2}
.line{fill:none;stroke-width:2}.bar,.point{fill:var(--c0)}.point{opacity:.6}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
.key::before{content:"";display:inline-block;width:1rem;height:.25rem;margin-right:.4rem;vertical-align:middle;
background:currentColor}.k0{color:var(--c0)}.k1{color:var(--c1)}.k2{color:var(--c2)}.k3{color:var(--c3)}
.k4{color:var(--c4)}.k5{color:var(--c5)}img{max-width:100%}.picture{width:96px;image-rendering:pixelated}
"""


def render_page(title: str, report: Mapping[str, Any], curves: str = "") -> str:
    """Return the document of a report (see :func:`findings.describe`); ``curves`` is an SVG of what was measured."""
    parts = [_head(title, report)]
    parts += _classes(report["classes"], report["labels"]) if "classes" in report else []
    parts += _numbers(report.get("numbers", ()))
    parts += [_inputs(report), _worst(report["worst"]), _curves(curves)]
    body = "\n".join(filter(None, parts))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n<meta name="viewport" '
        f'content="width=device-width,initial-scale=1">\n<meta http-equiv="Content-Security-Policy" content="{SAFE}">\n'
        f"<title>{as_text(title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


# -- pieces ------------------------------------------------------------------------------------------------------------
def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table, whose first column names the rows."""
    titles = "".join(f'<th scope="col">{as_text(name)}</th>' for name in head)
    lines = (
        f'<tr><th scope="row">{as_text(row[0])}</th>{"".join(f"<td>{as_text(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{as_text(caption)}"><table>'
        f"<caption>{as_text(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{as_text(title)}</h2>{''.join(parts)}</section>"


def _pair(*parts: str) -> str:
    return f'<div class="pair">{"".join(parts)}</div>'


def _note(text: str) -> str:
    return f'<p class="faint">{as_text(text)}</p>'


def _head(title: str, report: Mapping[str, Any]) -> str:
    count = report["not_finite"]
    missing = f" {count} predictions are not finite; they are left out of all measures." if count else ""
    about = f"Output {report['output']}, on {report['on']}: {report['rows']} rows.{missing}"
    return f"<h1>{as_text(title)}</h1><p>{as_text(about)}</p>{_note('Checkpoint ' + report['checkpoint'])}"


# -- classes -----------------------------------------------------------------------------------------------------------
def _classes(classes: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    return [
        _scores(classes),
        _confusion(classes["confusion"], labels),
        _ranking("ROC curves", classes, "roc", "roc_area", "Chance"),
        _ranking("Precision and recall", classes, "precision_recall", "average_precision"),
        _reliability(classes["calibration"]),
    ]


def _scores(classes: Mapping[str, Any]) -> str:
    names = ("precision", "recall", "f1")
    rows = [[row["label"], *(row[name] for name in names), row["support"]] for row in classes["per_class"]]
    total = sum(row["support"] for row in classes["per_class"])
    rows += [[f"{how} mean", *(mean[name] for name in names), total] for how, mean in classes["averages"].items()]
    table = _table("Scores by class", ["class", "precision", "recall", "F1", "rows"], rows)
    return _section("Classes", f"<p>Accuracy {as_text(classes['accuracy'])}</p>", table)


def _confusion(confusion: Mapping[str, Any], labels: Sequence[str]) -> str:
    """Return the confusion matrix; of many classes, the pairs that are confused most."""
    if len(labels) > CLASSES:
        pairs = [
            (count, share, labels[i], labels[j])
            for i, row in enumerate(confusion["counts"])
            for j, (count, share) in enumerate(zip(row, confusion["shares"][i], strict=True))
            if i != j and count
        ]
        most = [(t, p, n, s) for n, s, t, p in sorted(pairs, key=lambda pair: -pair[0])[:CLASSES]]
        return _section("Confusion", _table("Most confused", ["true class", "predicted", "rows", "share"], most))
    head = "".join(f'<th scope="col">{as_text(label)}</th>' for label in labels)
    rows = "".join(
        f'<tr><th scope="row">{as_text(label)}</th>{"".join(map(_cell, counts, shares))}</tr>'
        for label, counts, shares in zip(labels, confusion["counts"], confusion["shares"], strict=True)
    )
    caption = "Rows by true class (down) and predicted class (across), with the share of the true class"
    return _section(
        "Confusion",
        '<div class="scroll" role="region" tabindex="0" aria-label="Confusion matrix"><table>'
        f'<caption>{caption}</caption><thead><tr><th scope="col">true</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>",
    )


def _cell(count: int, share: float) -> str:
    return f'<td style="background:rgba(var(--mark),{0.45 * share:.2f})">{count}<br><small>{share:.0%}</small></td>'


def _ranking(title: str, classes: Mapping[str, Any], kind: str, area: str, diagonal: str = "") -> str:
    """Return the curves of classes, one against the rest, with their areas; at most so many, the least areas first."""
    areas = {row["label"]: row[area] for row in classes["per_class"]}
    every = sorted(classes["curves"], key=lambda curve: (areas[curve["label"]] is None, areas[curve["label"]] or 0.0))
    lines = {
        curve["label"]: tuple(curve[kind].values()) for curve in every[:LINES] if areas[curve["label"]] is not None
    }
    x, y = (name.replace("_", " ") for name in every[0][kind])
    keys = "".join(f'<li class="key k{i}">{as_text(label)}</li>' for i, label in enumerate(lines))
    table = _table("Areas, one class against the rest", ["class", area.replace("_", " ")], areas.items())
    points = [[label, *point] for label, columns in lines.items() for point in zip(*columns, strict=True)]
    shown = (
        f"<details><summary>Table of points</summary>{_table('Points of the chart', ['class', x, y], points)}</details>"
    )
    return _section(title, _pair(f"<div>{draw_lines(title, lines, x, y, diagonal)}<ul>{keys}</ul></div>", table), shown)


def _reliability(calibration: Mapping[str, Any]) -> str:
    """Return the reliability diagram, before and after a temperature, with the scores."""
    fits = {"as predicted": calibration}
    if "calibrated" in calibration:
        fits["calibrated"] = calibration["calibrated"]
    lines = {
        name: ([row["confidence"] for row in fit["bins"]], [row["hits"] for row in fit["bins"]])
        for name, fit in fits.items()
    }
    names = ("log_loss", "brier_score", "expected_calibration_error")
    scores = _table(
        "Scores", ["", *fits], [[name.replace("_", " "), *(fit[name] for fit in fits.values())] for name in names]
    )
    bins = _table(
        "Confidence and share of hits",
        ["confidence", "rows", "mean", "hits"],
        [[f"{b['low']:.1f} to {b['high']:.1f}", b["rows"], b["confidence"], b["hits"]] for b in calibration["bins"]],
    )
    keys = "".join(f'<li class="key k{i}">{as_text(name)}</li>' for i, name in enumerate(lines))
    chart = draw_lines("Reliability", lines, "confidence", "share of hits", "Calibrated")
    fitted = ""
    if "temperature" in calibration:
        fitted = _note(f"Temperature {calibration['temperature']:.4g}, fitted on the validation split of the run.")
    return _section("Calibration", fitted, _pair(f"<div>{chart}<ul>{keys}</ul></div>", f"<div>{scores}{bins}</div>"))


# -- numbers -----------------------------------------------------------------------------------------------------------
def _numbers(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the scores of all columns, and the residuals of those with the greatest errors."""
    if not columns:
        return []
    names = ("mean_absolute_error", "root_mean_squared_error", "r_squared", "mean_error")
    head = ["column", *(name.replace("_", " ") for name in names)]
    scores = _table("Errors by column", head, [[row["label"], *(row[name] for name in names)] for row in columns])
    worst = sorted(columns, key=lambda row: -(row["root_mean_squared_error"] or 0.0))[:COLUMNS]
    return [_section("Numbers", scores), *map(_residuals, worst)]


def _residuals(column: Mapping[str, Any]) -> str:
    label, residuals, points = column["label"], column["residuals"], column["points"]
    edges = residuals["edges"]
    bins = _table(
        "Residuals: predicted minus true",
        ["from", "to", "rows"],
        [*zip(edges[:-1], edges[1:], residuals["counts"], strict=True)],
    )
    histogram = draw_histogram(f"Residuals of {label}", edges, residuals["counts"], "residual")
    against = draw_points(
        f"Residuals of {label} by prediction", (points["predicted"], points["residual"]), "predicted", "residual"
    )
    pairs = _table("Points of the chart", ["predicted", "residual"], zip(*points.values(), strict=True))
    shown = f"<details><summary>Table of residuals</summary>{bins}</details>"
    shown += f"<details><summary>Table of points</summary>{pairs}</details>"
    return _section(f"Residuals of {label}", _pair(histogram, against), shown)


# -- inputs ------------------------------------------------------------------------------------------------------------
def _inputs(report: Mapping[str, Any]) -> str:
    parts = []
    importance = report["importance"]
    rows = [row for row in importance["columns"] if row["rise"] is not None]
    if rows:
        shown = {row["column"]: row["rise"] for row in rows[:SHOWN]}
        bars = draw_bars("Importance of columns", shown, [row["deviation"] or 0.0 for row in rows[:SHOWN]])
        table = _table("Rise of the mean loss", ["column", "rise", "deviation"], [[*row.values()] for row in rows])
        what = f"How much the mean loss, {as_text(importance['loss'])}, rises as a column is shuffled, on "
        note = _note(f"{what}{importance['rows']} rows; mean and deviation of {importance['repeats']} repeats.")
        parts.append(_section("Importance of columns", note, _pair(bars, table)))
    parts += [_gradients(name, gradient) for name, gradient in report["gradients"].items()]
    return "".join(parts)


def _gradients(section: str, gradient: Mapping[str, Any]) -> str:
    title, note = f"Gradients by {section}", _note("Mean absolute gradient of the predicted score by prepared inputs.")
    if "columns" in gradient:
        columns = {name: value for name, value in gradient["columns"].items() if value is not None}
        bars = draw_bars(title, dict([*columns.items()][:SHOWN]))
        return _section(title, note, _pair(bars, _table("Gradients", ["column", "gradient"], columns.items())))
    scores = _table("Gradients", ["", "value"], [[name, gradient[name]] for name in ("mean", "greatest")])
    return _section(title, note, _pair(*([_picture(gradient, title)] if "picture" in gradient else []), scores))


def _picture(content: Mapping[str, Any], title: str) -> str:
    return f'<img class="picture" alt="{as_text(title)}" src="data:image/png;base64,{content["picture"]}">'


# -- rows --------------------------------------------------------------------------------------------------------------
def _worst(rows: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in ("true", "predicted", "probability_of_true") if name in (rows[0] if rows else {})]
    head = ["row", "loss", *names, "inputs"]
    titles = "".join(f'<th scope="col">{as_text(name.replace("_", " "))}</th>' for name in head)
    lines = (
        f'<tr><th scope="row">{row["row"]}</th><td>{as_text(row["loss"])}</td>'
        f"{''.join(f'<td>{_answer(row[name])}</td>' for name in names)}"
        f'<td class="text">{"".join(_content(n, x, row["row"]) for n, x in row["inputs"].items())}</td></tr>'
        for row in rows
    )
    return _section(
        "Worst rows",
        '<div class="scroll" role="region" tabindex="0" aria-label="Worst rows"><table><caption>The greatest losses, '
        f"with inputs as they are in the data</caption><thead><tr>{titles}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>",
    )


def _answer(value: Any) -> str:
    if not isinstance(value, Mapping):
        return as_text(value)
    return "<br>".join(f"{as_text(name)} {as_text(x)}" for name, x in value.items())


def _content(section: str, content: Mapping[str, Any], row: int) -> str:
    """Return the inputs of a row: a picture, a text, or values."""
    if "picture" in content:
        return _picture(content, f"{section} of row {row}")
    if "text" in content:
        return f"<p>{as_text(content['text'])}</p>"
    if "values" in content:
        return f"<p>{', '.join(f'{as_text(name)} {as_text(x)}' for name, x in content['values'].items())}</p>"
    return f"<p>{as_text(section)} {as_text(content['shape'])}: {', '.join(map(as_text, content['first']))} ...</p>"


def _curves(drawing: str) -> str:
    """Return the curves of the run, as a picture of their own, so that its style sheet stays in it."""
    if not drawing:
        return ""
    data = b64encode(drawing.encode()).decode()
    note = _note("`sigma plot RUN --save curves.csv` writes their numbers.")
    return _section("Curves of the run", f'<img alt="Curves" src="data:image/svg+xml;base64,{data}">', note)
