"""Change the sampling rate of waves."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import numpy as np

HALF = 10  # zero crossings of the filter on each side
BETA = 5.0  # of the Kaiser window
ROWS = 1 << 14  # samples that are computed at once


def resample(wave: np.ndarray, rate: int, to: int) -> np.ndarray:
    """Return a wave at another sampling rate, float64: ``ceil(len(wave) * to / rate)`` samples.

    A windowed sinc, of Kaiser's window with beta 5 and 10 zero crossings on each side, evaluated at the new times
    alone; the wave is 0 outside. It is the polyphase filter of ``scipy.signal.resample_poly``, with its defaults.
    Source: Crochiere, Rabiner, Multirate Digital Signal Processing, 1983.
    """
    up, down = to // gcd(rate, to), rate // gcd(rate, to)
    if up == down:
        return np.asarray(wave, np.float64)
    half = HALF * max(up, down)
    taps = _filter(up, down)
    count = -(-len(wave) * up // down)
    reach = -(-(2 * half + 1) // up)
    padded = np.concatenate([np.zeros(reach), wave, np.zeros(reach + half // up + 1)])
    banks = np.concatenate([taps, np.zeros(reach * up - len(taps))]).reshape(reach, up)
    out = np.empty(count)
    for start in range(0, count, ROWS):
        at = half + np.arange(start, min(count, start + ROWS)) * down
        places = at[:, None] // up - np.arange(reach) + reach
        out[start : start + ROWS] = np.einsum("rk,kr->r", padded[places], banks[:, at % up])
    return out


@lru_cache(maxsize=4)
def _filter(up: int, down: int) -> np.ndarray:
    """Return the coefficients of the low-pass filter at the common multiple of both rates."""
    widest = max(up, down)
    times = np.arange(-HALF * widest, HALF * widest + 1)
    taps = np.sinc(times / widest) / widest * np.kaiser(len(times), BETA)
    return np.asarray(taps / taps.sum() * up)
