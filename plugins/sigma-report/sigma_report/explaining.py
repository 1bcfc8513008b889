"""What predictions rest on: importance of columns, gradients by input; and the temperature that calibrates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.settings import brief
from sigma_report.answers import Answers, as_probabilities, predict, read_answers
from sigma_report.measures import fit_temperature, log_losses, permutation_scores, scale_probabilities
from sigma_run import Trained

TOGETHER = 256  # rows whose gradients are computed at once
ROWS = 1000  # that are shuffled, or differentiated
APART = 16  # columns of an output that are differentiated one by one


# -- importance --------------------------------------------------------------------------------------------------------
@frozen(eq=False)
class Importance:
    """How much the mean loss rises as a column is shuffled: mean and deviation over repeats, ``(columns,)``.

    The loss of classes is the log loss, and that of numbers the mean squared error, in squared units of the data;
    ``loss`` is the value with no column shuffled.
    """

    columns: tuple[str, ...]
    mean: np.ndarray
    deviation: np.ndarray
    loss: float

    __repr__ = brief


def importance(
    model: Trained, data: Any = None, *, output: str = "", repeats: int = 5, seed: int = 0, most: int = ROWS
) -> Importance:
    """Return the permutation importance of the columns of a network's inputs (Breiman 2001), on at most ``most`` rows.

    Columns of one category, such as ``city=Oslo`` and ``city=Rome``, are shuffled together, and so is a section
    that has no columns, if there are several.  A single one without columns, such as pictures, has no importance.
    ``data`` is as in :func:`read_answers`.
    """
    answers = read_answers(model, data, output=output, most=most, seed=seed)
    return measure_importance(model, answers, repeats, seed)


def measure_importance(model: Trained, answers: Answers, repeats: int, seed: int) -> Importance:
    """Return the importance of columns for answers of the model; rows that are not finite are left out of means."""
    places = list_places(model, answers.sections)
    key = np.random.default_rng(seed)
    scores = np.zeros((len(places), repeats))
    for number, (_, section, columns) in enumerate(places):

        def score(values: np.ndarray, section: str = section) -> float:
            return _mean_loss(model, answers, {**answers.sections, section: values})

        scores[number] = permutation_scores(answers.sections[section], columns, score, repeats, key)
    names, loss = tuple(name for name, _, _ in places), _mean_loss(model, answers, answers.sections)
    return Importance(names, scores.mean(axis=1) - loss, scores.std(axis=1), loss)


def _mean_loss(model: Trained, answers: Answers, sections: Mapping[str, np.ndarray]) -> float:
    predicted = predict(model, answers.output, sections)
    if answers.classes:
        predicted = as_probabilities(predicted, answers.output in model.network.choosing())
    new = evolve(answers, predicted=predicted.reshape(answers.predicted.shape))
    return float(new.losses[new.is_finite].mean()) if new.is_finite.any() else float("nan")


def list_places(model: Trained, sections: Mapping[str, np.ndarray]) -> list[tuple[str, str, Any]]:
    """Return what is shuffled: its name, its section, and its places on the last axis."""
    places: list[tuple[str, str, Any]] = []
    for section, values in sections.items():
        head = f"{section}." if len(sections) > 1 else ""
        names = model.columns.get(section, ())
        if (values.ndim == 2 and not _reads_indices(model, section)) or (
            len(names) == values.shape[-1] and values.ndim > 1
        ):
            names = names if len(names) == values.shape[-1] else [f"column {i}" for i in range(values.shape[-1])]
            places += [(head + name, section, own) for name, own in group_columns(names).items()]
        elif len(sections) > 1:
            places.append((section, section, slice(None)))
    return places


def group_columns(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of columns by name; those of one category, ``name=category``, are together."""
    groups: dict[str, list[int]] = {}
    heads = {name.partition("=")[0] for name in map(str, names) if "=" in name}
    for place, name in enumerate(map(str, names)):
        head = name.partition("=")[0]
        beyond = next((own for own in heads if name in (f"{own} is other", f"{own} is missing")), head)
        groups.setdefault(beyond, []).append(place)
    return groups


# -- gradients ---------------------------------------------------------------------------------------------------------
def saliency(model: Trained, rows: Any, *, output: str = "") -> dict[str, np.ndarray]:
    """Return the mean absolute gradient of the predicted score by each input, by section, of the shape of a sample.

    ``rows`` are samples as in ``model.predict``.  The score is that of the predicted class before the softmax
    (Simonyan et al. 2014), or a number that is predicted, and inputs are those that the network reads: after
    preprocessing, so that those of scaled columns compare.  Sections of integers have no gradient, and are left out, as
    are rows whose gradient is not finite.
    """
    name = output or model.network.outputs[0].name
    sections = _by_section(model, rows)
    totals, counts, count = dict[str, Any](), dict[str, int](), len(next(iter(sections.values())))
    for start in range(0, count, TOGETHER):
        there = np.arange(start, min(start + TOGETHER, count))
        padded = np.resize(there, min(TOGETHER, count))  # of one size: one program
        part = {section: values[padded] for section, values in sections.items()}
        for section, slopes in _absolute_slopes(model, name, part).items():
            own = slopes[: len(there)]
            finite = own[np.isfinite(own.reshape(len(own), -1)).all(axis=1)]
            totals[section] = totals.get(section, 0.0) + finite.sum(axis=0)
            counts[section] = counts.get(section, 0) + len(finite)
    return {section: np.asarray(total / max(1, counts[section])) for section, total in totals.items()}


def _by_section(model: Trained, rows: Any) -> dict[str, np.ndarray]:
    if isinstance(rows, Mapping):
        return {name: np.asarray(rows[name]) for name in model.network.samples}
    if len(model.network.samples) > 1:
        raise SigmaConfigError(f"saliency: the network reads {', '.join(model.network.samples)}. Pass them by name.")
    return {model.network.samples[0]: np.asarray(rows)}


def _absolute_slopes(model: Trained, output: str, part: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the absolute gradients of each sample, by section; the mean over columns, if numbers are predicted."""
    slopes = dict[str, np.ndarray]()
    ways = _directions(model, output, predict(model, output, part))
    for section, values in part.items():
        if np.issubdtype(values.dtype, np.floating) or not _reads_indices(model, section):
            each = [np.abs(model.excite(part, way, output, section)[1]) for way in ways]
            slopes[section] = np.mean(each, axis=0, dtype=float)
    return slopes


def _reads_indices(model: Trained, section: str) -> bool:
    """Return whether the input layers of a section read integers."""
    return any("int" in str(getattr(x.layer, "dtype", "")) for x in model.network.inputs if x.layer.section == section)


def _directions(model: Trained, output: str, predicted: np.ndarray) -> list[np.ndarray]:
    """Return the directions of an output to differentiate along: the predicted class, or each column apart."""
    flat = predicted.reshape(len(predicted), -1)
    if output in model.network.choosing():
        return [(predicted == predicted.max(axis=-1, keepdims=True)).astype(np.float32)]
    if flat.shape[1] > APART:
        return [np.ones(predicted.shape, np.float32)]
    each = (np.arange(flat.shape[1]) == column for column in range(flat.shape[1]))
    return [np.broadcast_to(way, flat.shape).reshape(predicted.shape).astype(np.float32) for way in each]


# -- calibration -------------------------------------------------------------------------------------------------------
@frozen(eq=False)
class Calibration:
    """A temperature, the mean log loss ``before`` and ``after`` it, and calibrated probabilities ``(n, classes)``."""

    temperature: float
    before: float
    after: float
    probabilities: np.ndarray = field(repr=False)

    __repr__ = brief


def calibrate(model: Trained, data: Any = None, *, output: str = "") -> Calibration:
    """Fit the temperature that divides the scores of classes (Guo et al. 2017), on the validation split or other data.

    The classes that are predicted stay the same.  Nothing is stored: apply the temperature to other predictions with
    ``scale_probabilities``.  Raises SigmaConfigError for an output that predicts numbers, and
    SigmaDataError if all rows are predicted rightly.
    """
    return calibrate_answers(read_answers(model, data, output=output))


def calibrate_answers(answers: Answers) -> Calibration:
    """Return the calibration of answers that are classes."""
    if not answers.classes:
        raise SigmaConfigError(f"{answers.output}: predicts numbers, and a temperature calibrates classes.")
    finite = answers.finite()
    if (finite.predicted.argmax(axis=1) == finite.truth).all():
        raise SigmaDataError(
            f"{answers.output}: all rows are predicted rightly, so that no temperature is the best. Calibrate on more."
        )
    temperature = fit_temperature(finite.truth, finite.predicted)
    scaled = scale_probabilities(finite.predicted, temperature)
    before, after = (float(log_losses(finite.truth, each).mean()) for each in (finite.predicted, scaled))
    return Calibration(temperature, before, after, scaled)
