"""Describe how well a network predicts, as plain values: what the page and ``--json`` show."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sigma_report import measures
from sigma_report.answers import Answers, read_answers
from sigma_report.content import describe_map, describe_sample, find_span, name_values
from sigma_report.explaining import ROWS, Calibration, calibrate, measure_importance, saliency
from sigma_run import Trained

POINTS = 200  # of a curve, and of residuals
BINS = 20  # of residuals


def describe(
    model: Trained, data: Any = None, *, output: str = "", most: int | None = None, worst: int = 10, repeats: int = 5,
    seed: int = 0, calibrated: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the report of an output as plain values, strict JSON: what is undefined or not finite is None.

    ``data`` is a split, a file (a Path) or other data, by default the validation, or the test split; at most ``most``
    rows of it are drawn by ``seed``, which also shuffles columns ``repeats`` times.  ``worst`` rows are listed.  If it
    is ``calibrated``, a temperature is fitted on the validation split.
    """
    answers = read_answers(model, data, output=output, most=most, seed=seed)
    fit = calibrate(model, output=answers.output) if calibrated else None
    finite = answers.finite()
    measured = {"classes": describe_classes(finite, fit)} if answers.classes else {"numbers": describe_numbers(finite)}
    some = read_answers(model, data, output=output, most=min(most or ROWS, ROWS), seed=seed)
    values = {
        **_head(model, answers),
        **measured,
        "worst": describe_worst(model, answers, worst),
        "importance": _importance(model, some, repeats, seed),
        "gradients": _gradients(model, some),
    }
    return dict(json.loads(json.dumps(values), parse_constant=lambda text: None))


def _head(model: Trained, answers: Answers) -> dict[str, Any]:
    return {
        "trainer": model.trainer.name,
        "checkpoint": "/".join(model.path.parts[-3:]),
        "output": answers.output,
        "on": answers.on,
        "rows": len(answers.rows),
        "not_finite": int((answers.counts & ~answers.is_finite).sum()),
        "labels": [*answers.labels],
    }


# -- classes -----------------------------------------------------------------------------------------------------------
def describe_classes(answers: Answers, fit: Calibration | None = None) -> dict[str, Any]:
    """Return the measures of answers that are classes and finite."""
    truth, probabilities, count = answers.truth, answers.predicted, len(answers.labels)
    matrix = measures.confusion_matrix(truth, probabilities.argmax(axis=1), count)
    scores = measures.class_scores(matrix)
    columns = {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1, "support": scores.support}
    every = [_one_against_rest(truth == index, probabilities[:, index]) for index in range(count)]
    ranked = [{name: rank[name] for name in ("roc_area", "average_precision")} for rank in every]
    rows = [{"label": label, **{name: values[i].item() for name, values in columns.items()}, **ranked[i]}
            for i, label in enumerate(answers.labels)]  # fmt: skip
    return {
        "accuracy": float(np.diagonal(matrix).sum() / matrix.sum()),
        "per_class": rows,
        "averages": {"macro": scores.average(), "weighted": scores.average(weighted=True)},
        "confusion": {"counts": matrix.tolist(), "shares": (matrix / np.maximum(1, matrix.sum(1))[:, None]).tolist()},
        "curves": [{"label": label, **rank["curves"]} for label, rank in zip(answers.labels, every, strict=True)],
        "calibration": _calibration(truth, probabilities, fit),
    }


def _one_against_rest(positive: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
    """Return the curves of a class against all others, and their areas."""
    false, true, _ = measures.roc_curve(positive, scores)
    precision, recall, _ = measures.precision_recall_curve(positive, scores)
    roc, ranked = _thin(false, true), _thin(recall, precision)
    return {
        "roc_area": measures.roc_area(positive, scores),
        "average_precision": measures.average_precision(positive, scores),
        "curves": {
            "roc": {"false_positive_rate": roc[0], "true_positive_rate": roc[1]},
            "precision_recall": {"recall": ranked[0], "precision": ranked[1]},
        },
    }


def _thin(*columns: np.ndarray) -> list[list[float]]:
    """Return at most so many points of a curve, with its ends."""
    places = np.unique(np.linspace(0, len(columns[0]) - 1, POINTS).round().astype(int))
    return [column[places].tolist() for column in columns]


def _calibration(truth: np.ndarray, probabilities: np.ndarray, fit: Calibration | None) -> dict[str, Any]:
    measured = _confidences(truth, probabilities)
    if fit is None:
        return measured
    scaled = measures.scale_probabilities(probabilities, fit.temperature)
    return {**measured, "temperature": fit.temperature, "calibrated": _confidences(truth, scaled)}


def _confidences(truth: np.ndarray, probabilities: np.ndarray) -> dict[str, Any]:
    """Return the reliability of the greatest probabilities, and the scores of all."""
    bins = measures.reliability(probabilities.max(axis=1), probabilities.argmax(axis=1) == truth)
    columns = {"low": bins.edges[:-1], "high": bins.edges[1:], "rows": bins.counts, "confidence": bins.confidence}
    rows = zip(*(values.tolist() for values in (*columns.values(), bins.hits)), strict=True)
    return {
        "log_loss": float(measures.log_losses(truth, probabilities).mean()),
        "brier_score": measures.brier_score(truth, probabilities),
        "expected_calibration_error": bins.error,
        "bins": [dict(zip([*columns, "hits"], row, strict=True)) for row in rows],
    }


# -- numbers -----------------------------------------------------------------------------------------------------------
def describe_numbers(answers: Answers) -> list[dict[str, Any]]:
    """Return the measures of each column of answers that are numbers and finite, in units of the data."""
    scores = measures.regression_scores(answers.truth, answers.predicted)
    errors = answers.predicted - answers.truth
    return [
        {
            "label": label,
            **{name: float(values[i]) for name, values in scores.items()},
            "mean_error": float(errors[:, i].mean()),
            **_residuals(errors[:, i], answers.predicted[:, i]),
        }
        for i, label in enumerate(answers.labels)
    ]


def _residuals(errors: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Return the histogram of what was predicted too much, and points of it against the prediction."""
    counts, edges = np.histogram(errors, BINS)
    order = np.argsort(predicted, kind="stable")
    points = _thin(predicted[order], errors[order])
    return {
        "residuals": {"edges": edges.tolist(), "counts": counts.tolist()},
        "points": {"predicted": points[0], "residual": points[1]},
    }


# -- rows --------------------------------------------------------------------------------------------------------------
def describe_worst(model: Trained, answers: Answers, most: int) -> list[dict[str, Any]]:
    """Return the rows with the greatest loss, those that are not finite first, with their content."""
    losses = answers.row_losses
    order = np.lexsort((answers.rows, -np.where(np.isfinite(losses), losses, np.inf)))[:most]
    spans = {name: find_span(values) for name, values in answers.sections.items()}
    return [
        {
            "row": int(answers.rows[place]),
            "loss": float(losses[place]),
            **_answer(answers, int(place)),
            "inputs": {
                name: describe_sample(values[place], model.columns.get(name, ()), model.classes, spans[name])
                for name, values in answers.sections.items()
            },
        }
        for place in order
    ]


def _answer(answers: Answers, row: int) -> dict[str, Any]:
    """Return the truth and the prediction of a row; nothing for one of several positions."""
    if len(answers.truth) != len(answers.rows):
        return {}
    if not answers.classes:
        columns = {"true": answers.truth[row], "predicted": answers.predicted[row]}
        return {name: dict(zip(answers.labels, x.tolist(), strict=True)) for name, x in columns.items()}
    chosen, probabilities = int(answers.predicted[row].argmax()), answers.predicted[row]
    true = int(answers.truth[row])
    return {
        "true": answers.labels[true] if true >= 0 else None,
        "predicted": answers.labels[chosen],
        "probability_of_true": float(probabilities[true]) if true >= 0 else None,
        "probability_of_predicted": float(probabilities[chosen]),
    }


# -- inputs ------------------------------------------------------------------------------------------------------------
def _importance(model: Trained, answers: Answers, repeats: int, seed: int) -> dict[str, Any]:
    measured = measure_importance(model, answers, repeats, seed)
    rows = zip(measured.columns, measured.mean.tolist(), measured.deviation.tolist(), strict=True)
    every = [{"column": name, "rise": mean, "deviation": deviation} for name, mean, deviation in rows]
    every.sort(key=lambda row: -row["rise"])
    return {"rows": len(answers.rows), "repeats": repeats, "loss": measured.loss, "columns": every}


def _gradients(model: Trained, answers: Answers) -> dict[str, Any]:
    slopes = saliency(model, answers.sections, output=answers.output)
    return {name: _gradient(values, model.columns.get(name, ())) for name, values in slopes.items()}


def _gradient(values: np.ndarray, names: Any) -> dict[str, Any]:
    """Return the gradients of a section: by column, or as a picture of the places."""
    if values.ndim == 1:
        return {"columns": dict(sorted(name_values(values, names).items(), key=lambda row: -row[1]))}
    return {"mean": float(values.mean()), "greatest": float(values.max()), **describe_map(values)}
