"""Decode sound files with soundfile to sequences of one length."""

from __future__ import annotations

import os
from importlib import import_module
from math import ceil
from typing import IO, Any, Literal

import numpy as np
from attrs import frozen

from sigma_data.sound.resampling import resample
from sigma_data.sound.spectra import count_frames, log_power, mel_filters, power_spectrogram
from sigma_kernel import SigmaPluginError

FORMATS = ("WAV", "WAVEX", "FLAC")
ENDS = (".wav", ".wave", ".flac")
RATES = 1, 384_000  # samples a second
CHANNELS = 64
CHUNKS = 1000  # of a WAV file, after which it is not read further
FRAMES = 1 << 16  # read at once
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError)

Features = Literal["wave", "spectrogram", "mel"]


class UnreadableSoundError(Exception):
    """A sound that cannot be decoded; the message says why."""


@frozen
class SoundForm:
    """The form that every sound is brought to: a sequence of ``steps`` with ``width`` values each.

    Channels are averaged, and the wave, from -1 to 1, is resampled to ``rate`` samples a second.  What is longer than
    ``samples`` is cut off at the end, and what is shorter is padded with silence.
    """

    rate: int
    samples: int
    features: Features
    window: int
    hop: int
    mels: int

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of a sound, steps and values."""
        if self.features == "wave":
            return self.samples, 1
        width = self.mels if self.features == "mel" else self.window // 2 + 1
        return count_frames(self.samples, self.window, self.hop), width

    def decode(self, stream: IO[bytes]) -> tuple[np.ndarray, int]:
        """Return the sequence in a file, float32, and how many of its steps hold sound.

        Raises UnreadableSoundError for a file that is damaged, cut off, empty or of another format.
        """
        library = soundfile()
        try:
            _check_length(stream)
            with library.SoundFile(stream) as sound:
                _check_format(sound)
                wave = self._read_wave(sound)
        except FAULTS as error:
            raise UnreadableSoundError(f"is no WAV or FLAC file, or damaged: {error!s:.100}".rstrip(".")) from error
        count = min(len(wave), self.samples)
        padded = np.zeros(self.samples)
        padded[:count] = wave[:count]
        return self._extract(padded).astype(np.float32), self._count_steps(count)

    def _read_wave(self, sound: Any) -> np.ndarray:
        wanted = min(
            sound.frames, ceil(self.samples * sound.samplerate / self.rate) + _reach(sound.samplerate, self.rate)
        )
        pieces, left = [], wanted
        while left > 0:
            piece = sound.read(min(left, FRAMES), dtype="float64", always_2d=True)
            if not len(piece):
                raise UnreadableSoundError(f"is cut off: {wanted - left:,} of {sound.frames:,} samples are there")
            pieces.append(piece.mean(axis=1))
            left -= len(piece)
        if not pieces:
            raise UnreadableSoundError("holds no sound")
        wave = np.concatenate(pieces)
        if not np.isfinite(wave).all():
            raise UnreadableSoundError("holds samples that are not finite")
        return resample(wave, sound.samplerate, self.rate)

    def _extract(self, wave: np.ndarray) -> np.ndarray:
        if self.features == "wave":
            return wave[:, None]
        power = power_spectrogram(wave, self.window, self.hop)
        if self.features == "mel":
            power = power @ mel_filters(self.rate, self.window, self.mels)
        return log_power(power)

    def _count_steps(self, samples: int) -> int:
        return samples if self.features == "wave" else count_frames(samples, self.window, self.hop)


def _reach(rate: int, to: int) -> int:
    """Return how many samples after the last one still change it, by the filter of the resampling."""
    return 0 if rate == to else 11 * max(1, ceil(rate / to))


def read_length(stream: IO[bytes]) -> tuple[float, int]:
    """Return the seconds of a sound and its sampling rate, by its header.

    Raises UnreadableSoundError for a file that is damaged, cut off, empty or of another format.
    """
    library = soundfile()
    try:
        _check_length(stream)
        with library.SoundFile(stream) as sound:
            _check_format(sound)
            if not sound.frames:
                raise UnreadableSoundError("holds no sound")
            return sound.frames / sound.samplerate, sound.samplerate
    except FAULTS as error:
        raise UnreadableSoundError(f"is no WAV or FLAC file, or damaged: {error!s:.100}".rstrip(".")) from error


def _check_length(stream: IO[bytes]) -> None:
    """Raise UnreadableSoundError for a WAV file that is shorter than it declares, which libsndfile ignores."""
    head = stream.read(12)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    declared = int.from_bytes(head[4:8], "little") + 8
    is_wave = head[:4] == b"RIFF" and head[8:] == b"WAVE"
    if is_wave and size < declared < 0xFFFF_FFF0 and not (size + 1 == declared and _has_whole_chunks(stream, size)):
        raise UnreadableSoundError(f"is cut off: {size:,} of {declared:,} bytes are there")


def _has_whole_chunks(stream: IO[bytes], size: int) -> bool:
    """Return whether the chunks of a WAV file are whole: some programs count a byte after the last one, and lack it."""
    end = 12
    for _ in range(CHUNKS):
        stream.seek(end)
        length = int.from_bytes(stream.read(8)[4:], "little")
        end += 8 + length
        if end >= size:
            break
        end += length % 2
    stream.seek(0)
    return end == size


def _check_format(sound: Any) -> None:
    if sound.format not in FORMATS:
        raise UnreadableSoundError(f"is a file of {sound.format}. Save it as WAV or FLAC")
    if not RATES[0] <= sound.samplerate <= RATES[1] or not 1 <= sound.channels <= CHANNELS:
        raise UnreadableSoundError(f"has {sound.channels} channels and {sound.samplerate:,} samples a second")


def soundfile() -> Any:
    """Return the library soundfile; raises SigmaPluginError if it is not installed."""
    try:
        return import_module("soundfile")
    except (ImportError, OSError) as error:  # OSError without libsndfile
        raise SigmaPluginError(
            'sound needs soundfile. Install it: python -m pip install "sigma-data[sound]"'
        ) from error
