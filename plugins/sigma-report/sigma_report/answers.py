"""What a network predicts for rows of data, beside the truth: probabilities of classes, or numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.settings import brief
from sigma_report.measures import log_losses
from sigma_run import Trained

SPLITS = ("validation", "test", "training")  # the first that has rows is reported


@frozen(eq=False)
class Answers:
    """Predictions of an output and the truth, one entry a sample, or a position of it.

    For classes, ``predicted`` are probabilities ``(n, classes)`` and ``truth`` is indices ``(n,)``, -1 for a label that
    does not count; else both are numbers in units of the data, ``(n, columns)``.  ``labels`` name classes or columns;
    ``rows`` are the numbers of the samples in the data, and ``sections`` their inputs, as they are there.
    """

    output: str
    on: str
    classes: bool
    labels: tuple[str, ...]
    rows: np.ndarray
    sections: Mapping[str, np.ndarray] = field(repr=False)
    predicted: np.ndarray = field(repr=False)
    truth: np.ndarray = field(repr=False)

    __repr__ = brief

    @property
    def losses(self) -> np.ndarray:
        """Return the loss of each entry: the log loss of classes, or the mean of the squared errors of its columns."""
        if self.classes:
            return np.where(self.counts, log_losses(np.maximum(self.truth, 0), self.predicted), 0.0)
        return np.asarray(((self.predicted - self.truth) ** 2).mean(axis=1))

    @property
    def row_losses(self) -> np.ndarray:
        """Return the mean loss of each sample; columns of numbers count in units of their own deviation."""
        losses = self.losses
        if not self.classes:
            spread = np.nanstd(self.truth, axis=0)
            errors = (self.predicted - self.truth) / np.where(spread > 0, spread, 1.0)
            losses = (errors**2).mean(axis=1)
        counted = self.counts.reshape(len(self.rows), -1).sum(axis=1)
        return np.asarray(losses.reshape(len(self.rows), -1).sum(axis=1) / np.maximum(1, counted))

    @property
    def counts(self) -> np.ndarray:
        """Return whether each entry counts; labels that the cost ignores do not."""
        return np.asarray(self.truth >= 0) if self.classes else np.ones(len(self.truth), bool)

    @property
    def is_finite(self) -> np.ndarray:
        """Return whether each entry counts, and is a prediction of finite numbers of which the truth is finite."""
        there = np.isfinite(self.predicted).all(axis=1)
        return np.asarray(there & self.counts if self.classes else there & np.isfinite(self.truth).all(axis=1))

    def finite(self) -> Answers:
        """Return the entries whose numbers are finite, without their samples; raise SigmaDataError if there is none."""
        if not (there := self.is_finite).any():
            raise SigmaDataError(
                f"{self.output}: no prediction for {self.on} is finite. Train with other settings, or a nan_guard."
            )
        return evolve(self, predicted=self.predicted[there], truth=self.truth[there])


def choose_split(model: Trained) -> str:
    """Return the first of the validation, test and training splits that has rows."""
    sizes = model.data.splits()
    return next((name for name in SPLITS if sizes.get(name)), next(iter(sizes)))


def read_answers(
    model: Trained, data: Any = None, *, output: str = "", most: int | None = None, seed: int = 0
) -> Answers:
    """Predict for the rows of a split, a file (a Path) or other data; by default the validation, or the test split.

    ``output`` is the name of one of several outputs, by default the first; with ``most``, that many rows are drawn by
    ``seed``.  Raises SigmaConfigError if the output predicts neither one class a sample nor numbers, and SigmaDataError
    for data that are refused or without rows.
    """
    on = choose_split(model) if data is None else data
    name = _find_output(model, output)
    target = _find_target(model, name)
    rows, sections = model.data.draw_rows(on, most, seed)
    place = str(on) if isinstance(on, str | Path) else "these data"
    if not len(rows):
        raise SigmaDataError(f"report: {place} has no rows. Give it some, or report another split.")
    inputs = {section: sections[section] for section in model.network.samples}
    answers = Answers(name, place, False, (), rows, inputs, predict(model, name, inputs), sections[target])
    return _with_classes(model, answers) or _with_numbers(model, answers)


def predict(model: Trained, output: str, sections: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the predictions of an output for sections of samples, as they are in the data."""
    with np.errstate(all="ignore"):
        predicted = model.predict(sections)
    return np.asarray(predicted[output] if isinstance(predicted, dict) else predicted, float)


def _find_output(model: Trained, output: str) -> str:
    names = [placed.name for placed in model.network.outputs]
    if output and output not in names:
        raise SigmaConfigError(f"{model.trainer.name}: has no output {output!r}. Name one of {', '.join(names)}.")
    return output or names[0]


def _find_target(model: Trained, output: str) -> str:
    """Return the section of the targets of an output; raise SigmaConfigError if there is nothing to compare with."""
    estimated = model.network.estimated_section(output)
    judges = [cost for cost in model.network.targeted_costs if cost.sources[0] == output]
    if estimated or judges:
        return estimated or str(judges[0].layer.targets)
    raise SigmaConfigError(f"{output}: no cost compares this output with targets, so there is nothing to report.")


def as_probabilities(predicted: np.ndarray, chooses: bool) -> np.ndarray:
    """Return probabilities ``(n, classes)`` of predictions, of which a single one is that of the second class."""
    if chooses:
        return predicted.reshape(-1, predicted.shape[-1])
    second = predicted.reshape(-1)
    return np.stack([1 - second, second], axis=1)


def _with_classes(model: Trained, answers: Answers) -> Answers | None:
    """Return the answers as classes; None for an output that chooses none."""
    chooses = model.network.classify(answers.output, answers.predicted)
    if chooses is None:
        return None
    probabilities = as_probabilities(answers.predicted, answers.output in model.network.choosing())
    wanted = answers.truth
    if wanted.size == probabilities.size and answers.output in model.network.choosing():  # one-hot
        wanted = wanted.reshape(probabilities.shape).argmax(axis=-1)
    names = model.names(answers.output)
    count = probabilities.shape[1]
    labels = tuple(map(str, names if len(names) == count else range(count)))
    indices = np.asarray(wanted).reshape(-1).astype(np.int64)
    ignored = [getattr(cost.layer, "ignores", None) for cost in model.network.targeted_costs]
    indices = np.where(np.isin(indices, [label for label in ignored if label is not None]), -1, indices)
    return evolve(answers, classes=True, labels=labels, predicted=probabilities, truth=indices)


def _with_numbers(model: Trained, answers: Answers) -> Answers:
    """Return the answers as numbers; raise SigmaConfigError for an output that estimates none."""
    if not model.network.estimated_section(answers.output):
        raise SigmaConfigError(
            f"{answers.output}: predicts neither one class a sample nor numbers. Report another output."
        )
    predicted = answers.predicted.reshape(len(answers.rows), -1)
    truth = np.asarray(answers.truth, float).reshape(predicted.shape)
    names = model.targets.get(answers.output, ())
    count = predicted.shape[1]
    labels = tuple(map(str, names)) if len(names) == count else tuple(f"value {i}" for i in range(count))
    return evolve(answers, labels=labels, predicted=predicted, truth=truth)
