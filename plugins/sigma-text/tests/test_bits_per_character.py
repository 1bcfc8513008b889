"""Bits per character: definitions, edges, and the hook."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_hooks import PerplexityMetric
from sigma_kernel import Metric, SigmaConfigError
from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Spec, interpret, numpy_namespace, trace
from sigma_testing import HookSuite, MetricSuite
from sigma_text import BitsPerCharacter, BitsPerCharacterMetric

DRAW = np.random.default_rng(1)
SCORES = DRAW.dirichlet(np.ones(3), 12).astype(np.float32)
LABELS = np.array([0, 1, 2, 2, 1, 0, 1, 2, 0, 1, 0, 2], np.int32)
TEXTS = DRAW.dirichlet(np.ones(3), (8, 5)).astype(np.float32)
PADDED = np.where(np.arange(5) < DRAW.integers(1, 6, (8, 1)), DRAW.integers(0, 3, (8, 5)), -100).astype(np.int32)


def measured(metric: Metric, *rows: np.ndarray, parts: int = 1) -> Any:
    """Return a metric of rows, which come in several batches."""
    totals = []
    for batch in zip(*(np.array_split(x, parts) for x in rows), strict=True):
        specs = [Spec(x.shape, str(x.dtype)) for x in batch]
        totals.append(np.asarray(interpret(trace(metric.totals, *specs), numpy_namespace())(*batch)[0]))
    return metric.value(metric.merge_all(totals), len(rows[0]))


# -- suites ------------------------------------------------------------------------------------------------------------
class TestBitsPerCharacter(MetricSuite):
    def make(self) -> Metric:
        return BitsPerCharacterMetric()

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        return SCORES, LABELS

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean(-np.log2(prediction[np.arange(len(targets)), targets]))


class TestBitsPerCharacterHook(HookSuite):
    def make(self) -> Hook:
        return BitsPerCharacter()


def test_bits_of_tokens_are_divided_by_their_characters() -> None:
    per_token = measured(PerplexityMetric(), SCORES, LABELS)
    assert measured(BitsPerCharacterMetric(characters=4.5), SCORES, LABELS) == pytest.approx(np.log2(per_token) / 4.5)
    assert BitsPerCharacter(characters=4.5).named_metrics() == {"bits_per_character": BitsPerCharacterMetric(None, 4.5)}
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(SigmaConfigError, match="BitsPerCharacterMetric.characters"):
            BitsPerCharacterMetric(characters=wrong)


# -- edges -------------------------------------------------------------------------------------------------------------
def test_bits_per_character_of_a_known_source_are_its_entropy() -> None:
    labels = np.array([[0, 0, 1, 2]] * 3)
    source = np.broadcast_to([0.5, 0.25, 0.25, 0.0], (3, 4, 4))
    assert measured(BitsPerCharacterMetric(), source, labels, parts=2) == pytest.approx(1.5, rel=1e-14)
    assert measured(BitsPerCharacterMetric(), np.full((3, 4, 4), 0.25), labels) == pytest.approx(2.0, rel=1e-14)
    assert measured(BitsPerCharacterMetric(), source, np.full((3, 4), 3)) == np.inf
    assert np.isnan(measured(BitsPerCharacterMetric(ignore_index=3), source, np.full((3, 4), 3)))


@pytest.mark.parametrize("ignored", [None, 2])
def test_bits_per_character_are_the_binary_logarithm_of_perplexity(ignored: int | None) -> None:
    bits, perplexity = (measured(m(ignored), SCORES, LABELS) for m in (BitsPerCharacterMetric, PerplexityMetric))
    assert bits == pytest.approx(np.log2(perplexity), rel=1e-12)


def test_padding_does_not_count() -> None:
    there = PADDED >= 0
    own = np.take_along_axis(TEXTS, np.where(there, PADDED, 0)[..., None], -1)[..., 0][there]
    found = measured(BitsPerCharacterMetric(ignore_index=-100), TEXTS, PADDED, parts=3)
    assert found == pytest.approx(-np.log2(own.astype(np.float64)).mean(), rel=1e-6)


def test_shapes_that_do_not_fit_are_refused_under_its_own_name() -> None:
    with pytest.raises(SigmaNetworkError, match="bits_per_character: predictions have shape"):
        measured(BitsPerCharacterMetric(), SCORES, np.zeros((12, 2)))
    with pytest.raises(SigmaNetworkError, match=r"bits_per_character: predictions have shape \(4,\), one number for"):
        measured(BitsPerCharacterMetric(), np.full(4, 0.5, np.float32), np.ones(4, np.float32))
