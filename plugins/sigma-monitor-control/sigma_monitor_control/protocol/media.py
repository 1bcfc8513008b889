"""Requests for media: what hooks have published, by name, and the bytes of one value."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from sigma_kernel.contracts import MediaEntry, PictureValue, SoundValue, View
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.protocol.reading import Later, select_trainer
from sigma_monitor_control.protocol.values import to_json

MOST_MOMENTS, MOST_ENTRIES = 100, 4000  # of a name by default, and of all names: an answer is no longer than it may be
NO_ENTRY = ("trainer", "name")  # fields that an answer does not repeat


def media(
    view: View,
    trainer: str | None = None,
    name: str | None = None,
    span: list[float] | None = None,
    most: int = MOST_MOMENTS,
) -> Later:
    """Return the media of a trainer by name, or those of a ``name``: how many there are, and some, evenly chosen.

    They are in order of branches and iterations; ``span`` are the first and the last iteration that is asked for.
    """
    if span is not None and (len(span) != 2 or not span[0] <= span[1]):
        raise SigmaConfigError(f"media: 'span' must be the first and the last iteration (got {span}).")
    shown = select_trainer(view, trainer)
    return Later(lambda: _media(view, shown, name, span, most))


def _media(view: View, trainer: str, name: str | None, span: list[float] | None, most: int) -> dict[str, Any]:
    names = dict[str, list[MediaEntry]]()
    for entry in view.trainer(trainer).media():
        if name in (None, entry.name) and (span is None or span[0] <= entry.iteration <= span[1]):
            names.setdefault(entry.name, []).append(entry)
    each = max(1, min(most, MOST_ENTRIES // max(1, len(names))))
    return {name: {"total": len(own), "entries": [*map(_entry, _choose(own, each))]} for name, own in names.items()}


def _choose(entries: list[MediaEntry], most: int) -> list[MediaEntry]:
    """Return at most so many entries, evenly chosen; the first and the last are among them."""
    if len(entries) <= most:
        return entries
    if most == 1:
        return entries[-1:]
    return [entries[round(at * (len(entries) - 1) / (most - 1))] for at in range(most)]


def _entry(entry: MediaEntry) -> dict[str, Any]:
    fields: dict[str, Any] = to_json(entry)
    return {name: value for name, value in fields.items() if name not in NO_ENTRY}


def medium(view: View, key: str, trainer: str | None = None) -> Later:
    """Return the bytes of a value by its key, in base64: a PNG or WAV file, UTF-8 or JSON."""
    name = select_trainer(view, trainer)
    return Later(lambda: _medium(view, name, key))


def _medium(view: View, trainer: str, key: str) -> dict[str, str]:
    own = view.trainer(trainer)
    data = own.read_media(key) if any(entry.key == key for entry in own.media()) else None
    if data is None:
        raise SigmaConfigError(f"medium: {key:.60} is not there, or no longer. Ask for the media again.")
    types = {kind.suffix: kind.media_type for kind in (PictureValue, SoundValue)}
    return {"type": types.get(key.rpartition(".")[2], "text/plain"), "data": b64encode(data).decode()}


MEDIA: Mapping[str, Callable[..., Any]] = {one.__name__: one for one in (media, medium)}
