"""Connectionist temporal classification, for labels without times."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, CostLayer, Totals
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import and_, ge, in_, whole
from sigma_layers.targets import first_bad, mean, warn_of_a_second

NEVER = -1e30  # the logarithm of 0, but with slopes that are finite


@define(eq=False, init=False)
class CTC(CostLayer):
    """Minimise ``-log P(labels | output)``, summed over all alignments: ``Output(29) + CTC(Input(section="lengths"))``.

    Each step of the output is one of the classes, from logits; an alignment of labels repeats each of them for some
    steps, with any number of blanks in between, at least one between equal labels. The sum over alignments is computed
    forwards in logarithms (Graves et al., 2006). Rows of targets hold the labels first, and then padding: numbers below
    0, or blanks. Matches ``torch.nn.functional.ctc_loss`` of ``log_softmax(output)``. Predictions are the
    probabilities of the classes at each step.

    Labels that do not fit into the steps of their row have an infinite loss. A length that is below 0 or above the
    number of steps makes the loss NaN.

    Shapes: output ``(batch, time, classes)``, targets ``(batch, labels)``, lengths ``(batch,)`` or ``(batch, 1)`` ->
    scalar, the mean over the rows.

    Graves, Fernandez, Gomez and Schmidhuber, Connectionist Temporal Classification: Labelling Unsegmented Sequence Data
    with Recurrent Neural Networks, 2006.

    Args:
        branches: The number of steps of each row, such as ``Input(section="lengths")``; without it, all steps count.
            The metric ``character_error_rate`` needs the section as well: ``lengths = "lengths"``.
        blank: Class of steps without a label.
        per_label: Whether each row's loss is divided by its number of labels, if above 1, as in PyTorch's mean.
        zero_infinity: Whether infinite losses count as 0.
    """

    branches: tuple[Architecture, ...]
    blank: int = field(default=0, validator=and_(whole, ge(0)))
    per_label: bool = field(default=True, validator=in_((False, True)))
    zero_infinity: bool = field(default=False, validator=in_((False, True)))

    def __init__(
        self, *branches: Architecture, blank: int = 0, per_label: bool = True, zero_infinity: bool = False,
        targets: str = "targets", weights: str = "weights", weight: float = 1.0, name: str | None = None,
    ) -> None:  # fmt: skip
        settings = {"targets": targets, "weights": weights, "weight": weight, "name": name}
        self.__attrs_init__(branches, blank, per_label, zero_infinity, **settings)  # type: ignore[arg-type]

    def forward(self, context: Context, *inputs: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if shapes do not fit."""
        warn_of_a_second("softmax", context.address, inputs[0])
        self._check_shapes(inputs)
        output, targets = inputs[0], inputs[-1]
        labels = targets if targets.dtype in ("int32", "int64") else f.cast(targets, "int32")
        mask = f.logical_and(f.greater_equal(labels, 0), f.not_equal(labels, self.blank))
        lengths = f.cast(f.reshape(inputs[1], output.shape[:1]), "int32") if len(inputs) == 3 else None
        count = f.sum(f.cast(mask, "int32"), axis=1)
        logs = _likelihood(f.log_softmax(output), f.where(mask, labels, self.blank), count, lengths, self.blank)
        possible = logs > NEVER / 2
        losses = f.where(possible, -logs, 0.0 if self.zero_infinity else inf)
        if self.per_label:
            losses = losses / f.cast(f.maximum(count, 1), losses.dtype)
        if lengths is not None:
            right = f.logical_and(f.greater_equal(lengths, 0), f.less_equal(lengths, output.shape[1]))
            losses = f.where(right, losses, nan)
        return mean(losses, weights)

    def _check_shapes(self, inputs: Sequence[Node]) -> None:
        output, targets, lengths = inputs[0].shape, inputs[-1].shape, [x.shape[1:] for x in inputs[1:-1]]
        if len(output) != 3 or len(targets) != 2 or any(shape not in ((), (1,)) for shape in lengths) or lengths[1:]:
            shapes = ", ".join(str(x.shape[1:]) for x in inputs)
            raise SigmaNetworkError(
                f"ctc({shapes}): the output must have shape (time, classes), lengths (), and rows of section "
                f"{self.targets!r} (labels,). Put layers that keep the time before it, such as Dense."
            )
        if self.blank >= output[2]:
            raise SigmaNetworkError(f"ctc: blank = {self.blank}, but the output has {output[2]} classes.")

    def prediction(self, output: Node) -> Node:
        """Return the probabilities of the classes at each step."""
        return f.softmax(output)

    def output_size(self, targets: Spec, classes: int = 0) -> None:
        """Return None: rows of targets have labels of some of the classes, and padding."""

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets are not labels of the classes, or labels follow padding."""
        if targets.ndim != 2:
            raise SigmaDataError(
                f"data: section {self.targets!r} has rows of shape {targets.shape[1:]}, not (labels,)."
            )
        classes = output.shape[-1]
        wrong = ~((targets < classes) & (targets == np.floor(targets)))
        if wrong.any():
            place = first_bad(wrong)
            raise SigmaDataError(
                f"data: section {self.targets!r}, row {place[0]}: label {targets[place]} is not one of {classes} "
                f"classes. Labels are integers from 0 to {classes - 1} without the blank, {self.blank}."
            )
        padding = (targets < 0) | (targets == self.blank)
        late = padding[:, :-1] & ~padding[:, 1:]
        if late.any():
            row, last = first_bad(late)
            raise SigmaDataError(
                f"data: section {self.targets!r}, row {row}: label {targets[row, last + 1]} follows padding, a number "
                f"below 0 or the blank, {self.blank}. Put padding last, or choose another blank."
            )


def _likelihood(logs: Node, labels: Node, count: Node, lengths: Node | None, blank: int) -> Node:
    """Return the logarithm of the likelihood of the first ``count`` labels in each row, ``(batch,)``.

    ``logs`` are those of the probabilities ``(batch, time, classes)``, of which the first ``lengths`` steps count. The
    carry of the loop has the likelihood of each place in the labels with blanks around them.
    """
    batch, time, classes = logs.shape
    around = f.pad(labels, (0, 1), (0, 1), (0, 1), blank)  # blank, label, blank, label, blank
    flat = f.reshape(f.permute(logs, (1, 0, 2)), (time, batch * classes))
    said = f.take(flat, f.cast(around, "int32") + f.iota(around.shape, 0) * classes, axis=1)
    new = f.logical_and(f.not_equal(around, blank), f.not_equal(around, _shift_later(around, 2, blank)))
    place, steps = f.iota(around.shape, 1), f.iota((time,), 0)
    ends = f.full(time, (batch,), "int32") if lengths is None else lengths

    def step(before: Node, said: Node, now: Node, new: Node, ends: Node) -> tuple[list[Node], list[Node]]:
        skipped = f.where(new, _shift_later(before, 2, NEVER), NEVER)
        after = f.log_sum_exp(f.stack(before, _shift_later(before, 1, NEVER), skipped), axis=0) + said
        return [f.where(f.expand(f.greater(ends, now), 1), after, before)], []

    start = f.where(f.equal(place, 0), f.zeros(around.shape, logs.dtype), NEVER)
    (likelihoods,), _ = f.scan(step, [start], [said, steps], [new, ends])
    last = f.expand(count * 2, 1)
    over = f.logical_or(f.equal(place, last), f.equal(place, last - 1))
    return f.log_sum_exp(f.where(over, likelihoods, NEVER), axis=1)


def _shift_later(x: Node, by: int, fill: float) -> Node:
    """Return x moved by some places along axis 1, with fill in front."""
    return f.concat(f.full(fill, (x.shape[0], by), x.dtype), f.narrow(x, 1, 0, x.shape[1] - by), axis=1)
