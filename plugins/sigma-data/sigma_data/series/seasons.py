"""Find the season of a series: the lag at which its autocorrelation is highest again."""

from __future__ import annotations

import numpy as np

LEAST = 0.3  # autocorrelation of a season
MOST = 1024  # steps of a season


def find_season(values: np.ndarray, runs: np.ndarray, training: np.ndarray) -> tuple[int, str]:
    """Return the season of the longest run of training rows, 0 if there is none, and the reason in words."""
    usable = np.where(training & ~np.isnan(values), runs, -1)
    kept = usable[usable >= 0]
    if not len(kept):
        return 0, "no season was looked for: no training row has a target"
    run = values[usable == np.bincount(kept).argmax()]
    lag, strength = find_peak(autocorrelate(run, min(MOST, len(run) // 3)))
    if not lag:
        return 0, f"no season was found in {len(run):,} training rows: no lag has an autocorrelation of {LEAST} again"
    return lag, f"a season of {lag} steps: their autocorrelation is {strength:.2f}, after a lower one"


def autocorrelate(values: np.ndarray, most: int) -> np.ndarray:
    """Return the autocorrelation of values without their linear trend, at lags 0 to ``most``."""
    if len(values) < 3 or most < 1:
        return np.ones(1)
    rows = np.arange(len(values))
    apart = values - np.polyval(np.polyfit(rows, values, 1), rows)
    spectrum = np.fft.rfft(apart, 2 * len(apart))
    sums = np.fft.irfft(spectrum * spectrum.conj())[: most + 1]
    return sums / sums[0] if sums[0] > 1e-12 * max(1.0, float(np.square(values).sum())) else np.ones(1)


def find_peak(correlations: np.ndarray) -> tuple[int, float]:
    """Return the lag of the highest autocorrelation after the first negative one or minimum, 0 if it is low."""
    falls = np.flatnonzero((correlations[1:] < 0) | (np.diff(correlations) > 0)) + 1
    if not len(falls):
        return 0, 0.0
    first = int(falls[0])
    lag = first + int(correlations[first:].argmax())
    inner = lag < len(correlations) - 1
    return (lag, float(correlations[lag])) if inner and correlations[lag] >= LEAST else (0, 0.0)
