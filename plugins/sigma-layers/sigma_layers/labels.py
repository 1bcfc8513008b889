"""Targets that are class indices, one for each row of scores: their shapes, and checks."""

from __future__ import annotations

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph import Node
from sigma_layers.targets import advise_words, first_bad


def are_labels(targets: tuple[int, ...], output: tuple[int, ...]) -> bool:
    """Return whether shapes are those of labels ``(..., 1)`` or ``(...)`` and of scores ``(..., classes)``."""
    return targets == output[:-1] or (targets == (*output[:-1], 1) and output[-1] > 1)


def as_labels(targets: Node, output: Node) -> Node:
    """Return labels as whole numbers in the shape of an output without its axis of classes."""
    flat = targets if targets.shape == output.shape[:-1] else f.reshape(targets, output.shape[:-1])
    return flat if flat.dtype in ("int32", "int64") else f.cast(flat, "int32")


def check_labels(section: str, labels: np.ndarray, classes: int, ignored: int | None = None, counter: str = "") -> None:
    """Raise SigmaDataError for the first label that is neither a class index nor the ignored one.

    ``counter`` is the layer whose setting is the number of classes, by default the output.
    """
    values = labels if ignored is None else labels[labels != ignored]
    wrong = ~((labels >= 0) & (labels < classes) & (labels == np.floor(labels)))
    wrong = wrong if ignored is None else wrong & (labels != ignored)
    if wrong.any():
        place = first_bad(wrong)
        counter = counter or f"Output({classes})"
        fractions = labels.dtype.kind == "f" and (labels != np.floor(labels)).any()
        raise SigmaDataError(
            f"data: section {section!r}, row {place[0]}: label {labels[place]} is not one of {classes} "
            f"classes. Labels are integers from 0 to {classes - 1}; {counter} says how many there are, and "
            f"these go from {values.min()} to {values.max()}."
            f"{' For numbers instead of classes, use SquaredDifference().' if fractions else ''}"
            f"{advise_words(values, classes)}"
        )
