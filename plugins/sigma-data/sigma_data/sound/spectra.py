"""Spectrograms of waves."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

FLOOR = 1e-10  # power, so that silence has a logarithm


def count_frames(samples: int, window: int, hop: int) -> int:
    """Return the number of windows that lie within a wave, at least 1."""
    return 1 + max(0, samples - window) // hop


def power_spectrogram(wave: np.ndarray, window: int, hop: int) -> np.ndarray:
    """Return ``|STFT|**2`` of shape ``(frames, window // 2 + 1)``, float64.

    Frame ``i`` is the wave from sample ``i * hop`` on, times a periodic Hann window; the wave is not padded. It is the
    square of ``torch.stft(center=False)`` and of ``scipy.signal.stft`` without its scaling.
    """
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    frames = np.lib.stride_tricks.sliding_window_view(wave, window)[::hop]
    spectra = np.fft.rfft(frames * hann, axis=1)
    return np.asarray(spectra.real**2 + spectra.imag**2)


@lru_cache(maxsize=16)
def mel_filters(rate: int, window: int, count: int) -> np.ndarray:
    """Return triangular filters of shape ``(window // 2 + 1, count)``, equally spaced on the mel scale up to rate / 2.

    ``mel = 2595 log10(1 + f / 700)``, with a height of 1: the filters of ``torchaudio.functional.melscale_fbanks`` with
    its defaults. Source: O'Shaughnessy, Speech Communication, 1987; Young and others, The HTK Book.
    """
    frequencies = np.linspace(0, rate / 2, window // 2 + 1)
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), count + 2) / 2595) - 1)
    rising = (frequencies[:, None] - corners[:-2]) / np.diff(corners)[:-1]
    falling = (corners[2:] - frequencies[:, None]) / np.diff(corners)[1:]
    return np.asarray(np.maximum(0.0, np.minimum(rising, falling)))


def log_power(power: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of a power, of at least 1e-10."""
    return np.asarray(np.log(np.maximum(power, FLOOR)))
