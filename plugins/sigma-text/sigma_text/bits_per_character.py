"""Evaluate the bits per character of a model of text."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.perplexity import Perplexity, PerplexityMetric
from sigma_kernel.contracts import Metric
from sigma_kernel.settings import and_, finite, gt

LENGTH = and_(finite, gt(0))


@frozen
class BitsPerCharacterMetric(PerplexityMetric):
    """Bits per character: the mean of ``-log2 p``, where p is the probability of a character.

    Predictions and targets are those of perplexity, of which it is the binary logarithm.  No model of a text has
    fewer bits than the entropy of its source: Shannon, Prediction and Entropy of Printed English, 1951.

    Args:
        ignore_index: Label that does not count, such as that of padding.
        characters: Mean number of characters of a label: 1 for characters, or that of the tokens of a text, so that
            models of different tokens compare.
    """

    characters: float = field(default=1.0, validator=LENGTH)

    called: ClassVar[str] = "bits_per_character"

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the bits for one character; NaN if none counts."""
        return self.mean(totals) / (log(2) * self.characters)


@define(eq=False, kw_only=True)
class BitsPerCharacter(Perplexity):
    """Publish ``<on>.loss`` and ``<on>.bits_per_character``.

    Args:
        ignore_index: Label that does not count, such as that of padding.
        characters: Mean number of characters of a label: 1 for characters, or that of the tokens of a text, so that
            models of different tokens compare.
    """

    characters: float = field(default=1.0, validator=LENGTH)

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the bits per character and the configured metrics."""
        return {"bits_per_character": BitsPerCharacterMetric(self.ignore_index, self.characters), **self.metrics}
