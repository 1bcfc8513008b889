"""Evaluate the character error rate of sequences of labels, such as of speech or handwriting."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.evaluate import Evaluate
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, ge, in_, instance_of, whole

FAR = 1 << 24  # more edits than any sequence needs


@frozen
class CharacterErrorRateMetric(Metric):
    """Character error rate: edits that turn predictions into the targets, over the number of target labels.

    Edits insert, delete or replace one label (Levenshtein).  Predictions ``(n, time, classes)`` are decoded greedily:
    the best class of each step, the first of equal ones, of repeated ones only the first, and no blanks.  Rows of
    targets ``(n, labels)`` hold the labels first, and then padding: numbers below 0, or blanks.  It is computed in the
    graph, for all rows of a batch at once, and NaN if there are no labels, or if a length is below 0 or above the
    number of steps.

    Without ``lengths``, all steps count, those of padding too.  After ``ctc(input(section="steps"))`` it needs
    ``lengths = "steps"``.

    Args:
        blank: Class of steps that say nothing.
        collapse: Whether repeated classes without a blank in between are one, as after ``ctc``.
        lengths: Section of the data with the number of steps of each row, ``(n,)`` or ``(n, 1)``; by default all count.
    """

    better: ClassVar[str] = "lower"
    blank: int = field(default=0, validator=and_(whole, ge(0)))
    collapse: bool = field(default=True, validator=in_((False, True)))
    lengths: str = field(default="", validator=instance_of(str, "the name of a section"))

    def totals(self, prediction: Node, targets: Node, lengths: Node | None = None) -> Node:
        """Return the number of edits and that of target labels: ``(2,)``."""
        if len(prediction.shape) != 3 or len(targets.shape) != 2:
            raise SigmaNetworkError(
                f"character_error_rate: predictions have shape {prediction.shape} and targets {targets.shape}; "
                "expected (n, time, classes) and (n, labels)."
            )
        best, labels = f.argmax(prediction, axis=2), f.cast(targets, "int32")
        within, fitting = self._step_mask(best.shape, lengths)
        said = f.logical_and(within, f.not_equal(best, self.blank))
        if self.collapse:
            before = f.concat(f.full(-1, (best.shape[0], 1), "int32"), best[:, :-1], axis=1)
            said = f.logical_and(said, f.not_equal(best, before))
        mask = f.logical_and(f.greater_equal(labels, 0), f.not_equal(labels, self.blank))
        count = f.sum(f.cast(mask, "int32"), axis=1)
        edits = f.cast(f.sum(_edits(best, said, labels, count)), prediction.dtype)
        broken = f.logical_and(f.expand(within, 2), f.not_equal(prediction, prediction))
        wrong = f.sum(f.cast(broken, "int32")) + f.sum(f.cast(f.logical_not(fitting), "int32"))
        return f.stack(f.where(f.equal(wrong, 0), edits, nan), f.cast(f.sum(count), prediction.dtype))

    def _step_mask(self, shape: tuple[int, ...], lengths: Node | None) -> tuple[Node, Node]:
        """Return whether each step counts, ``(n, time)``, and whether each row has as many steps as its length."""
        rows, time = shape
        if lengths is None:
            return f.ones(shape, "bool"), f.ones((rows,), "bool")
        if lengths.shape not in ((rows,), (rows, 1)):
            raise SigmaNetworkError(
                f"character_error_rate: section {self.lengths!r} has shape {lengths.shape}; expected (n,) or (n, 1). "
                "Name the section with the number of steps of each row as `lengths`."
            )
        steps = f.cast(f.reshape(lengths, (rows,)), "int32")
        fitting = f.logical_and(f.greater_equal(steps, 0), f.less_equal(steps, time))
        return f.less(f.iota(shape, 1), f.expand(steps, 1)), fitting

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the edits for each target label."""
        edits, labels = np.asarray(totals, np.float64)
        return float(edits / labels) if labels else nan


def _edits(best: Node, said: Node, labels: Node, count: Node) -> Node:
    """Return the edits from the classes that are ``said`` to the first ``count`` labels of each row, ``(n,)``.

    The carry of the loop over steps has the edits from the prediction so far to each prefix of the labels.
    """
    place = f.iota((labels.shape[0], labels.shape[1] + 1), 1)

    def step(before: Node, heard: Node, said: Node, labels: Node, place: Node) -> tuple[list[Node], list[Node]]:
        other = f.cast(f.not_equal(labels, f.expand(heard, 1)), "int32")
        replaced = f.concat(f.full(FAR, (labels.shape[0], 1), "int32"), before[:, :-1] + other, axis=1)
        after = _running_minimum(f.minimum(before + 1, replaced) - place) + place  # insertions cost one for each place
        return [f.where(f.expand(said, 1), after, before)], []

    steps = [f.swap_axes(best, 0, 1), f.swap_axes(said, 0, 1)]
    (edits,), _ = f.scan(step, [place], steps, [labels, place])
    return f.sum(f.where(f.equal(place, f.expand(count, 1)), edits, 0), axis=1)


def _running_minimum(x: Node) -> Node:
    """Return the least entry up to each place along axis 1, in as many passes as the side has binary digits."""
    by = 1
    while by < x.shape[1]:
        x = f.minimum(x, f.concat(f.full(FAR, (x.shape[0], by), "int32"), x[:, :-by], axis=1))
        by *= 2
    return x


@define(eq=False, kw_only=True)
class CharacterErrorRate(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.character_error_rate``.

    Args:
        blank: Class of steps that say nothing.
        collapse: Whether repeated classes without a blank in between are one, as after ``ctc``.
        lengths: Section of the data with the number of steps of each row, that of ``ctc``; by default all steps count.
    """

    blank: int = field(default=0, validator=and_(whole, ge(0)))
    collapse: bool = field(default=True, validator=in_((False, True)))
    lengths: str = field(default="", validator=instance_of(str, "the name of a section"))

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the rate and the configured metrics."""
        metric = CharacterErrorRateMetric(self.blank, self.collapse, self.lengths)
        return {"character_error_rate": metric, **self.metrics}
