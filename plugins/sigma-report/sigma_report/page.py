"""The report as one page of HTML: light and dark, without scripts and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sigma_report.charts import LINES, as_text, draw_bars, draw_histogram, draw_lines, draw_points
from sigma_report.pieces import (
    render_content,
    render_curves,
    render_document,
    render_note,
    render_pair,
    render_picture,
    render_section,
    render_table,
)

CLASSES = 30  # of a confusion matrix on the page
SHOWN = 40  # bars
COLUMNS = 8  # of numbers, whose residuals are drawn


def render_page(title: str, report: Mapping[str, Any], curves: str = "") -> str:
    """Return the document of a report (see :func:`findings.describe`); ``curves`` is an SVG of what was measured."""
    parts = [_head(title, report)]
    parts += _classes(report["classes"], report["labels"]) if "classes" in report else []
    parts += _numbers(report.get("numbers", ()))
    parts += [_inputs(report), _worst(report["worst"]), render_curves(curves)]
    return render_document(title, parts)


def _head(title: str, report: Mapping[str, Any]) -> str:
    count = report["not_finite"]
    missing = f" {count} predictions are not finite; they are left out of all measures." if count else ""
    about = f"Output {report['output']}, on {report['on']}: {report['rows']} rows.{missing}"
    return f"<h1>{as_text(title)}</h1><p>{as_text(about)}</p>{render_note('Checkpoint ' + report['checkpoint'])}"


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
    table = render_table("Scores by class", ["class", "precision", "recall", "F1", "rows"], rows)
    return render_section("Classes", f"<p>Accuracy {as_text(classes['accuracy'])}</p>", table)


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
        return render_section(
            "Confusion", render_table("Most confused", ["true class", "predicted", "rows", "share"], most)
        )
    head = "".join(f'<th scope="col">{as_text(label)}</th>' for label in labels)
    rows = "".join(
        f'<tr><th scope="row">{as_text(label)}</th>{"".join(map(_cell, counts, shares))}</tr>'
        for label, counts, shares in zip(labels, confusion["counts"], confusion["shares"], strict=True)
    )
    caption = "Rows by true class (down) and predicted class (across), with the share of the true class"
    return render_section(
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
    table = render_table("Areas, one class against the rest", ["class", area.replace("_", " ")], areas.items())
    points = [[label, *point] for label, columns in lines.items() for point in zip(*columns, strict=True)]
    numbers = render_table("Points of the chart", ["class", x, y], points)
    shown = f"<details><summary>Table of points</summary>{numbers}</details>"
    return render_section(
        title, render_pair(f"<div>{draw_lines(title, lines, x, y, diagonal)}<ul>{keys}</ul></div>", table), shown
    )


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
    scores = render_table(
        "Scores", ["", *fits], [[name.replace("_", " "), *(fit[name] for fit in fits.values())] for name in names]
    )
    bins = render_table(
        "Confidence and share of hits",
        ["confidence", "rows", "mean", "hits"],
        [[f"{b['low']:.1f} to {b['high']:.1f}", b["rows"], b["confidence"], b["hits"]] for b in calibration["bins"]],
    )
    keys = "".join(f'<li class="key k{i}">{as_text(name)}</li>' for i, name in enumerate(lines))
    chart = draw_lines("Reliability", lines, "confidence", "share of hits", "Calibrated")
    fitted = ""
    if "temperature" in calibration:
        fitted = render_note(
            f"Temperature {calibration['temperature']:.4g}, fitted on the validation split of the run."
        )
    return render_section(
        "Calibration", fitted, render_pair(f"<div>{chart}<ul>{keys}</ul></div>", f"<div>{scores}{bins}</div>")
    )


# -- numbers -----------------------------------------------------------------------------------------------------------
def _numbers(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the scores of all columns, and the residuals of those with the greatest errors."""
    if not columns:
        return []
    names = ("mean_absolute_error", "root_mean_squared_error", "r_squared", "mean_error")
    head = ["column", *(name.replace("_", " ") for name in names)]
    scores = render_table("Errors by column", head, [[row["label"], *(row[name] for name in names)] for row in columns])
    worst = sorted(columns, key=lambda row: -(row["root_mean_squared_error"] or 0.0))[:COLUMNS]
    return [render_section("Numbers", scores), *map(_residuals, worst)]


def _residuals(column: Mapping[str, Any]) -> str:
    label, residuals, points = column["label"], column["residuals"], column["points"]
    edges = residuals["edges"]
    bins = render_table(
        "Residuals: predicted minus true",
        ["from", "to", "rows"],
        [*zip(edges[:-1], edges[1:], residuals["counts"], strict=True)],
    )
    histogram = draw_histogram(f"Residuals of {label}", edges, residuals["counts"], "residual")
    against = draw_points(
        f"Residuals of {label} by prediction", (points["predicted"], points["residual"]), "predicted", "residual"
    )
    pairs = render_table("Points of the chart", ["predicted", "residual"], zip(*points.values(), strict=True))
    shown = f"<details><summary>Table of residuals</summary>{bins}</details>"
    shown += f"<details><summary>Table of points</summary>{pairs}</details>"
    return render_section(f"Residuals of {label}", render_pair(histogram, against), shown)


# -- inputs ------------------------------------------------------------------------------------------------------------
def _inputs(report: Mapping[str, Any]) -> str:
    parts = []
    importance = report["importance"]
    rows = [row for row in importance["columns"] if row["rise"] is not None]
    if rows:
        shown = {row["column"]: row["rise"] for row in rows[:SHOWN]}
        bars = draw_bars("Importance of columns", shown, [row["deviation"] or 0.0 for row in rows[:SHOWN]])
        table = render_table(
            "Rise of the mean loss", ["column", "rise", "deviation"], [[*row.values()] for row in rows]
        )
        what = f"How much the mean loss, {as_text(importance['loss'])}, rises as a column is shuffled, on "
        note = render_note(f"{what}{importance['rows']} rows; mean and deviation of {importance['repeats']} repeats.")
        parts.append(render_section("Importance of columns", note, render_pair(bars, table)))
    parts += [_gradients(name, gradient) for name, gradient in report["gradients"].items()]
    return "".join(parts)


def _gradients(section: str, gradient: Mapping[str, Any]) -> str:
    title, note = (
        f"Gradients by {section}",
        render_note("Mean absolute gradient of the predicted score by prepared inputs."),
    )
    if "columns" in gradient:
        columns = {name: value for name, value in gradient["columns"].items() if value is not None}
        bars = draw_bars(title, dict([*columns.items()][:SHOWN]))
        return render_section(
            title, note, render_pair(bars, render_table("Gradients", ["column", "gradient"], columns.items()))
        )
    scores = render_table("Gradients", ["", "value"], [[name, gradient[name]] for name in ("mean", "greatest")])
    return render_section(
        title, note, render_pair(*([render_picture(gradient, title)] if "picture" in gradient else []), scores)
    )


# -- rows --------------------------------------------------------------------------------------------------------------
def _worst(rows: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in ("true", "predicted", "probability_of_true") if name in (rows[0] if rows else {})]
    head = ["row", "loss", *names, "inputs"]
    titles = "".join(f'<th scope="col">{as_text(name.replace("_", " "))}</th>' for name in head)
    lines = (
        f'<tr><th scope="row">{row["row"]}</th><td>{as_text(row["loss"])}</td>'
        f"{''.join(f'<td>{_answer(row[name])}</td>' for name in names)}"
        f'<td class="text">{"".join(render_content(n, x, row["row"]) for n, x in row["inputs"].items())}</td></tr>'
        for row in rows
    )
    return render_section(
        "Worst rows",
        '<div class="scroll" role="region" tabindex="0" aria-label="Worst rows"><table><caption>The greatest losses, '
        f"with inputs as they are in the data</caption><thead><tr>{titles}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>",
    )


def _answer(value: Any) -> str:
    if not isinstance(value, Mapping):
        return as_text(value)
    return "<br>".join(f"{as_text(name)} {as_text(x)}" for name, x in value.items())
