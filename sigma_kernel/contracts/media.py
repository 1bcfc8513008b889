"""Media: pictures, texts, sounds, tables and histograms that hooks publish as they publish numbers.

A value is checked when it is made, and never changes. Its bytes have a common format, so that any program opens them.
Media are shown, not read: they are neither in the state of a run nor in its checkpoints, and no digest covers them.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import wave
import zlib
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, sqrt
from textwrap import shorten
from typing import Any, ClassVar, Self

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.graph.reprs import brief
from sigma_kernel.plain import strict
from sigma_kernel.png import MOST_PIXELS, MOST_SIDE, decode_png, encode_png
from sigma_kernel.tables import html

MOST_BYTES = 2 << 20  # of a value
BUDGET = 256 << 20  # bytes of a trainer, unless its settings say otherwise
SIDE = 720  # pixels of a picture that has no more bytes, whatever it shows
LONGEST_CAPTION = 200  # characters; of a longer one, the first words stay
LOUDEST = 32767  # the largest number of 16 bits
PER_COLUMN = 40  # pixels of a drawn histogram
BLUE, ORANGE = np.array([[47, 84, 200], [189, 75, 0]])  # of numbers below 0, and above
DAMAGED = (ValueError, KeyError, TypeError, EOFError, RecursionError, zlib.error, struct.error, wave.Error)
FOLDER = "media/"  # of their bytes, among the named bytes of a run
KEY = re.compile(r"[0-9a-f]{32}\.(?:png|txt|wav|json)")


def _read_caption(given: Any) -> str:
    return shorten(str(given), LONGEST_CAPTION)


@frozen(eq=False, repr=False)
class Media(ABC):
    """What is shown beside numbers; ``caption`` is a line of text for people."""

    kind: ClassVar[str]
    suffix: ClassVar[str]  # of its file
    media_type: ClassVar[str]  # of its bytes, for browsers

    caption: str = field(default="", converter=_read_caption, kw_only=True)

    @abstractmethod
    def encode(self) -> bytes:
        """Return its bytes, without the caption."""

    @classmethod
    @abstractmethod
    def decode(cls, data: bytes) -> Self:
        """Return the value with these bytes; whatever it raises, they are of no value of this kind."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what lists say of it, as plain JSON values."""

    @abstractmethod
    def html(self) -> str:
        """Return it as HTML, with everything that it needs inside."""

    def _repr_html_(self) -> str:
        return f"<figure>{self.html()}<figcaption>{escape(self.caption)}</figcaption></figure>"

    def _data_address(self) -> str:
        return f"data:{self.media_type};base64,{b64encode(self.encode()).decode()}"

    def __repr__(self) -> str:
        about = [f"{name}={value!r:.60}" for name, value in self.facts().items()]
        return f"{type(self).__name__}({', '.join(about)})"


# -- pictures ----------------------------------------------------------------------------------------------------------
def _read_pixels(given: Any) -> np.ndarray:
    try:
        pixels = np.array(given)
    except ValueError:
        raise SigmaConfigError("PictureValue: its rows are not equally long. Pass an array.") from None
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not 0 < min(pixels.shape) <= max(pixels.shape) <= MOST_SIDE:
        raise SigmaConfigError(
            f"PictureValue: has shape {np.shape(given)}. Pass (height, width) or (height, width, channels), with 1 or 3"
            f" channels, and at most {MOST_SIDE:,} pixels along a side."
        )
    if pixels.shape[0] * pixels.shape[1] > MOST_PIXELS:
        raise SigmaConfigError(f"PictureValue: has more than {MOST_PIXELS:,} pixels. Pass a smaller one.")
    if pixels.dtype.kind == "b" or pixels.dtype.kind == "f":
        if not (np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 1):
            low, high = np.min(pixels), np.max(pixels)
            raise SigmaConfigError(
                f"PictureValue: floats must be from 0 to 1 (got {low:.4g} to {high:.4g}). Let"
                " PictureValue.shade scale them."
            )
        pixels = np.rint(pixels.astype(np.float64) * 255)
    elif pixels.dtype != np.uint8:
        raise SigmaConfigError(
            f"PictureValue: has dtype {pixels.dtype}. Pass uint8 from 0 to 255, or floats from 0 to 1."
        )
    pixels = pixels.astype(np.uint8)
    pixels.setflags(write=False)
    return pixels


@frozen(eq=False, repr=False)
class PictureValue(Media):
    """A picture.

    Args:
        pixels: uint8 from 0 to 255, or floats from 0 to 1, which are rounded to that; ``(height, width)``, or
            ``(height, width, channels)`` with 1 channel for shades of grey, or 3 for red, green and blue.
        caption: A line of text.
    """

    kind, suffix, media_type = "picture", "png", "image/png"

    pixels: np.ndarray = field(converter=_read_pixels)

    @classmethod
    def shade(cls, values: Any, low: float | None = None, high: float | None = None, caption: str = "") -> Self:
        """Return numbers as shades, black at ``low`` and white at ``high``, by default the least and the greatest.

        ``values`` are ``(height, width)`` or ``(channels, height, width)``, as a network has them; those that are not
        finite are black.
        """
        planes = np.asarray(values, np.float64)
        planes = np.moveaxis(planes, 0, -1) if planes.ndim == 3 else planes
        finite = planes[np.isfinite(planes)]
        least = low if low is not None else finite.min(initial=np.inf) if finite.size else 0.0
        most = high if high is not None else finite.max(initial=-np.inf) if finite.size else 0.0
        scaled = (planes - least) / (most - least) if most > least else np.zeros_like(planes)
        return cls(np.clip(np.nan_to_num(scaled, nan=0, posinf=0, neginf=0), 0, 1), caption=caption)

    @classmethod
    def draw_signed(cls, values: Any, most: float | None = None, caption: str = "") -> Self:
        """Return numbers ``(height, width)`` on white: blue below 0, orange above, full at ``most`` of either sign.

        That is by default the greatest size; numbers that are not finite are white.
        """
        numbers = np.nan_to_num(np.asarray(values, np.float64), posinf=0, neginf=0)
        size = np.clip(np.abs(numbers) / ((np.abs(numbers).max(initial=0) if most is None else most) or 1.0), 0, 1)
        ink = np.where((numbers < 0)[..., None], BLUE, ORANGE)
        return cls(np.rint(255 - size[..., None] * (255 - ink)).astype(np.uint8), caption=caption)

    @classmethod
    def tile(cls, pictures: Sequence[PictureValue], columns: int | None = None, caption: str = "") -> Self:
        """Return pictures of one size as tiles of one picture, row by row, a pixel apart, by default in a square."""
        if len({picture.pixels.shape for picture in pictures}) != 1:
            shapes = ", ".join(sorted({str(picture.pixels.shape) for picture in pictures}))
            raise SigmaConfigError(f"PictureValue.tile: needs pictures of one shape (got {shapes or 'none'}).")
        across = columns or ceil(sqrt(len(pictures)))
        height, width, channels = pictures[0].pixels.shape
        down = ceil(len(pictures) / across)
        page = np.full((down * (height + 1) - 1, across * (width + 1) - 1, channels), 255, np.uint8)
        for number, picture in enumerate(pictures):
            top, left = number // across * (height + 1), number % across * (width + 1)
            page[top : top + height, left : left + width] = picture.pixels
        return cls(page, caption=caption)

    def enlarge(self, zoom: int) -> Self:
        """Return it with each pixel repeated ``zoom`` times in both directions."""
        return evolve(self, pixels=self.pixels.repeat(zoom, 0).repeat(zoom, 1))

    def fit(self, side: int = SIDE) -> Self:
        """Return it with at most so many pixels along a side: the means of squares. Of ``SIDE``, it is stored for sure.

        What is left over at the right and at the bottom is cut off.
        """
        each = ceil(max(self.pixels.shape[:2]) / side)
        height, width = (max(1, size // each) for size in self.pixels.shape[:2])
        squares = self.pixels[: height * each, : width * each].astype(np.float64)
        squares = squares.reshape(height, squares.shape[0] // height, width, squares.shape[1] // width, -1)
        return self if each == 1 else evolve(self, pixels=np.rint(squares.mean((1, 3))).astype(np.uint8))

    def encode(self) -> bytes:
        """Return a PNG file."""
        return encode_png(self.pixels)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the picture of such a file."""
        return cls(decode_png(data))

    def facts(self) -> dict[str, Any]:
        """Return its size in pixels."""
        return {"width": self.pixels.shape[1], "height": self.pixels.shape[0]}

    def html(self) -> str:
        """Return an image; small ones are enlarged."""
        wide = max(self.pixels.shape[1], min(160, 8 * self.pixels.shape[1]))
        return (
            f'<img alt="{escape(self.caption or "picture")}" style="width:{wide}px;max-width:100%;'
            f'image-rendering:pixelated" src="{self._data_address()}">'
        )


# -- texts -------------------------------------------------------------------------------------------------------------
def _read_text(given: Any) -> str:
    if not isinstance(given, str):
        raise SigmaConfigError(f"TextValue: must be a string (got {given!r:.60}).")
    return given.encode("utf-8", "replace").decode()  # half a pair of surrogates has no bytes


@frozen(eq=False, repr=False)
class TextValue(Media):
    """A text, such as one that the network has written.

    Args:
        text: The text; line breaks are kept.
        caption: A line of text.
    """

    kind, suffix, media_type = "text", "txt", "text/plain;charset=utf-8"

    text: str = field(converter=_read_text)

    def encode(self) -> bytes:
        """Return it in UTF-8."""
        return self.text.encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the text."""
        return cls(data.decode())

    def facts(self) -> dict[str, Any]:
        """Return the number of its characters, and the first of them."""
        return {"characters": len(self.text), "beginning": self.text[:80]}

    def html(self) -> str:
        """Return it with its line breaks."""
        return f'<pre style="white-space:pre-wrap">{escape(self.text)}</pre>'


# -- sounds ------------------------------------------------------------------------------------------------------------
def _read_samples(given: Any) -> np.ndarray:
    samples = np.asarray(given)
    samples = samples[:, None] if samples.ndim == 1 else samples
    if samples.ndim != 2 or samples.shape[1] not in (1, 2) or not len(samples) or samples.dtype.kind != "f":
        raise SigmaConfigError(
            f"SoundValue: has shape {np.shape(given)} and dtype {samples.dtype}. Pass floats (samples,) or (samples,"
            " channels), with 1 or 2 channels."
        )
    if not (np.abs(samples) <= 1).all():  # of NaN as well
        raise SigmaConfigError("SoundValue: samples must be from -1 to 1. Divide them by the greatest size.")
    samples = samples.astype(np.float32)
    samples.setflags(write=False)
    return samples


def _read_rate(given: Any) -> Any:
    return int(given) if isinstance(given, np.integer) else given


@frozen(eq=False, repr=False)
class SoundValue(Media):
    """A sound, stored in 16 bits a sample.

    Args:
        samples: Floats from -1 to 1, ``(samples,)`` or ``(samples, channels)`` with 1 or 2 channels.
        rate: Samples in a second.
        caption: A line of text.
    """

    kind, suffix, media_type = "sound", "wav", "audio/wav"

    samples: np.ndarray = field(converter=_read_samples)
    rate: int = field(converter=_read_rate)

    @rate.validator
    def _(self, _: Any, rate: Any) -> None:
        if not isinstance(rate, int) or isinstance(rate, bool) or not 1 <= rate <= 192_000:
            raise SigmaConfigError(f"SoundValue.rate: must be samples in a second, 1 to 192,000 (got {rate!r}).")

    def encode(self) -> bytes:
        """Return a WAV file."""
        file = io.BytesIO()
        with wave.open(file, "wb") as sound:
            sound.setparams((self.samples.shape[1], 2, self.rate, 0, "NONE", ""))
            sound.writeframes(np.rint(self.samples * LOUDEST).astype("<i2").tobytes())
        return file.getvalue()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the sound of such a file."""
        with wave.open(io.BytesIO(data)) as sound:
            samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2").reshape(-1, sound.getnchannels())
            return cls(np.clip(samples / LOUDEST, -1, 1), sound.getframerate())

    def facts(self) -> dict[str, Any]:
        """Return its length in seconds, and its rate."""
        return {"seconds": len(self.samples) / self.rate, "rate": self.rate, "channels": self.samples.shape[1]}

    def html(self) -> str:
        """Return a player."""
        return f'<audio controls src="{self._data_address()}"></audio>'


# -- tables ------------------------------------------------------------------------------------------------------------
def _read_rows(given: Any) -> tuple[tuple[Any, ...], ...]:
    try:
        rows = tuple(tuple(x.item() if isinstance(x, np.generic) else x for x in row) for row in given)
    except TypeError:
        raise SigmaConfigError(f"TableValue: rows must be a list of rows (got {given!r:.60}).") from None
    if wrong := [x for row in rows for x in row if not (x is None or isinstance(x, str | int | float))]:
        raise SigmaConfigError(f"TableValue: cells are numbers, texts or None (got {wrong[0]!r:.60}).")
    return rows


def _read_names(given: Any) -> tuple[str, ...]:
    return tuple(map(str, given))


@frozen(eq=False, repr=False)
class TableValue(Media):
    """A table.

    Args:
        columns: The names of the columns.
        rows: The rows, each with a cell for each column: a number, a text, or None.
        heat: Whether cells with larger numbers are darker, as those of a confusion matrix.
        caption: A line of text.
    """

    kind, suffix, media_type = "table", "json", "application/json"

    columns: Sequence[str] = field(converter=_read_names)
    rows: Sequence[Sequence[Any]] = field(converter=_read_rows)
    heat: bool = False

    @rows.validator
    def _(self, _: Any, rows: Sequence[Sequence[Any]]) -> None:
        wide = len(self.columns)
        if wrong := [number for number, row in enumerate(rows) if len(row) != wide]:
            has = len(rows[wrong[0]])
            raise SigmaConfigError(f"TableValue: row {wrong[0]} has {has} cells, and there are {wide} columns.")

    def encode(self) -> bytes:
        """Return JSON; a number that is not finite is null."""
        return json.dumps(strict({"columns": self.columns, "rows": self.rows, "heat": self.heat})).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the table."""
        return cls(**json.loads(data))

    def facts(self) -> dict[str, Any]:
        """Return its size."""
        return {"columns": len(self.columns), "rows": len(self.rows)}

    def html(self) -> str:
        """Return a table."""
        cells = [
            ["" if x is None else f"{x:.6g}" if isinstance(x, float) else str(x) for x in row] for row in self.rows
        ]
        return html(self.columns, cells)


# -- histograms --------------------------------------------------------------------------------------------------------
def _read_numbers(given: Any) -> np.ndarray:
    numbers = np.array(given, np.float64)
    numbers.setflags(write=False)
    return numbers


@frozen(eq=False, repr=False)
class HistogramValue(Media):
    """A histogram.

    Args:
        edges: The edges of the bins, ascending, ``(bins + 1,)``.
        counts: How many values are in each, ``(bins,)``.
        caption: A line of text.
    """

    kind, suffix, media_type = "histogram", "json", "application/json"

    edges: np.ndarray = field(converter=_read_numbers)
    counts: np.ndarray = field(converter=_read_numbers)

    @counts.validator
    def _(self, _: Any, counts: np.ndarray) -> None:
        edges = self.edges
        if counts.ndim != 1 or not counts.size or edges.shape != (counts.size + 1,):
            raise SigmaConfigError(
                f"HistogramValue: has edges {edges.shape} and counts {counts.shape}. Pass one edge more than counts."
            )
        if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise SigmaConfigError("HistogramValue: edges must be finite, and ascend.")
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise SigmaConfigError("HistogramValue: counts must be finite, and at least 0.")

    @classmethod
    def count(cls, values: Any, bins: int = 30, caption: str = "") -> Self:
        """Return the histogram of all elements that are finite."""
        numbers = np.asarray(values, np.float64)
        finite = numbers[np.isfinite(numbers)]
        try:
            counts, edges = np.histogram(finite, bins)
        except ValueError:  # they are too close for so many bins
            most = np.finfo(np.float64).max
            around = np.nextafter([finite.min(), finite.max()], [-np.inf, np.inf])
            counts, edges = np.array([finite.size]), np.clip(around, -most, most)
        return cls(edges, counts, caption=caption)

    def encode(self) -> bytes:
        """Return JSON."""
        return json.dumps({"edges": self.edges.tolist(), "counts": self.counts.tolist()}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the histogram."""
        return cls(**json.loads(data))

    def facts(self) -> dict[str, Any]:
        """Return the number of values, and where they begin and end."""
        return {"count": float(self.counts.sum()), "low": float(self.edges[0]), "high": float(self.edges[-1])}

    def html(self) -> str:
        """Return a drawing of its bins, all as wide."""
        heights = self.counts / (self.counts.max() or 1.0) * PER_COLUMN
        bars = "".join(f"M{x},{PER_COLUMN}h.9v-{height:.2f}h-.9z" for x, height in enumerate(heights))
        about = f"{self.edges[0]:.4g} to {self.edges[-1]:.4g}, at most {self.counts.max():g}"
        box = f'viewBox="0 0 {self.counts.size} {PER_COLUMN}" preserveAspectRatio="none" width="160" height="60"'
        return f'<svg role="img" aria-label="{about}" {box} fill="currentColor"><path d="{bars}"/></svg>'


KINDS: Mapping[str, type[Media]] = {
    one.kind: one for one in (PictureValue, TextValue, SoundValue, TableValue, HistogramValue)
}


# -- in a run ----------------------------------------------------------------------------------------------------------
@frozen(repr=False)
class MediaEntry:
    """Media of a run: what was published where and when.

    Args:
        trainer: The trainer.
        name: The address at which it was published, without the trainer.
        iteration: The iteration.
        epoch: The epoch.
        seconds: The seconds of training.
        branch: The branch.
        kind: ``picture``, ``text``, ``sound``, ``table`` or ``histogram``.
        key: The name of its bytes: a digest of them, and the ending of their format.
        size: Their number.
        caption: A line of text.
        facts: What is known of it without its bytes, such as the size of a picture.
        is_left: Whether its branch was left before its iteration.
    """

    trainer: str
    name: str
    iteration: int
    epoch: int
    seconds: float
    branch: int
    kind: str
    key: str
    size: int
    caption: str = ""
    facts: Mapping[str, Any] = field(factory=dict)
    is_left: bool = False
    __repr__ = brief


def describe_media(where: str, value: Media) -> tuple[dict[str, Any], bytes]:
    """Return what an entry says of a value, and its bytes; raise SigmaConfigError if they are too many."""
    data = value.encode()
    if len(data) > MOST_BYTES:
        raise SigmaConfigError(
            f"{where}: a {value.kind} of {len(data):,} bytes is left out. Publish a part of at most {MOST_BYTES:,}."
        )
    key = f"{digest_media(data)}.{value.suffix}"
    return {"kind": value.kind, "key": key, "size": len(data), "caption": value.caption, "facts": value.facts()}, data


def digest_media(data: bytes) -> str:
    """Return the digest that names the bytes of a value."""
    return hashlib.sha256(data).hexdigest()[:32]


def decode_media(entry: MediaEntry, data: bytes | None) -> Media:
    """Return a value from its bytes; raise SigmaCheckpointError if they are missing, or not those of the entry."""
    where, remedy = f"{FOLDER}{entry.key}", "Restore it from a copy"
    if data is None:
        raise SigmaCheckpointError(f"{where}: is missing. {remedy}.")
    if not entry.key.startswith(digest_media(data)):
        raise SigmaCheckpointError(f"{where}: was changed since it was published. {remedy}.")
    try:
        return evolve(KINDS[entry.kind].decode(data), caption=entry.caption)
    except (*DAMAGED, SigmaConfigError) as error:
        raise SigmaCheckpointError(f"{where}: is no {entry.kind}: {error}. {remedy}.") from error
