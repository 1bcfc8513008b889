"""The slots of ``curves.bin``: points and texts in slots of one size, each with a check of its own.

A file that ends anywhere is read up to its last whole slot.  A text is a JSON document, which takes as many slots as it
needs.  Damage to a slot loses what that holds: a point of a row alone, one that sums up others in answers of its level
or coarser ones, and a name or a place all of its points until it is written again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.curves import NUMBERS

POINT = np.dtype(
    [
        ("check", "<u4"),
        ("series", "<u2"),  # the number of its name; of a text, the bytes in this slot
        ("level", "u1"),  # of FACTOR ** level rows; or TEXT, or REST
        ("head", "u1"),  # 1 for the first point of a row; of a text, whether another slot follows
        ("place", "<u4"),  # where it was measured; from here on, a slot of a text has its bytes
        ("count", "<u4"),
        ("iteration", "<i8"),
        ("epoch", "<i8"),
        ("second", "<f8"),
        *((name, "<f8") for name in NUMBERS[:4]),
    ]
)
SIZE = POINT.itemsize
FACTOR = 4  # points of one level that become a point of the next
MOMENT = ("iteration", "epoch", "seconds")  # of a row
REST, TEXT = 254, 255  # the levels of the later slots of a text, and of its first
MOST_SERIES, MOST_COUNT = 1 << 16, (1 << 32) - 1
LONGEST = 1 << 18  # slots of a text, which then has 16 MiB
CHUNK = 1 << 14  # slots that are read at a time
KINDS: Sequence[Mapping[str, type]] = (  # of documents
    {"name": str, "series": int},
    {"trainer": str, "place": int, "branch": int, "session": int, "start": int},
    {"texts": dict, "of": int, "iteration": int, "epoch": int, "seconds": float},  # of a row
)
_NUMBERS, _PIECE, _ROOM = Struct("<IHBBIIqqddddd"), Struct(f"<IHBB{SIZE - 8}s"), SIZE - 8
_WEIGHTS = np.cumprod(np.full(SIZE // 4 - 1, 0x9E3779B1, np.uint32), dtype=np.uint32)  # odd: each change counts

Point = tuple[int, int, int, float, float, float, float, float]  # of a slot from its count on


def encode_point(series: int, level: int, head: bool | int, place: int, *point: Any) -> bytes:
    """Return the slot of a point, without its check."""
    return _NUMBERS.pack(0, series, level, head, place, *point)


def encode_text(document: Mapping[str, Any]) -> bytes:
    """Return the slots of a document, without their checks."""
    data = json.dumps(document).encode()
    starts = range(0, len(data), _ROOM)
    parts = [(data[at : at + _ROOM], REST if at else TEXT, at < starts[-1]) for at in starts]
    return b"".join(_PIECE.pack(0, len(part), level, more, part) for part, level, more in parts)


def seal(slots: bytes) -> bytes:
    """Return slots with their checks."""
    words = _words(bytearray(slots))
    words[:, 0] = _check(words)
    return words.tobytes()


def _words(slots: bytes | bytearray) -> np.ndarray:
    return np.frombuffer(slots, "<u4").reshape(-1, SIZE // 4)


def _check(words: np.ndarray) -> np.ndarray:
    return words[:, 1:] @ _WEIGHTS + np.uint32(1)  # so that zeros, which a crash of the machine may leave, do not pass


@define(eq=False)
class SlotReader:
    """Read the slots of an open file in their order, as far as it has grown."""

    handle: int
    next: int = field(default=0, init=False)  # the slot to read next
    damaged: int = field(default=0, init=False)  # slots so far whose check fails
    _text: list[bytes] | None = field(default=None, init=False)  # the parts so far of one

    def news(self) -> Iterator[tuple[int, np.ndarray | Mapping[str, Any]]]:
        """Yield runs of points, each with the number of its first slot, and the documents between them."""
        while slots := self._read_slots():
            points, words = np.frombuffer(slots, POINT), _words(slots)
            whole = words[:, 0] == _check(words)
            first, self.next, start = self.next, self.next + len(points), 0
            for end in np.flatnonzero(~whole | (points["level"] >= REST)).tolist():
                if start < end:
                    yield first + start, points[start:end]
                start = end + 1
                if not whole[end]:
                    self.damaged += 1
                elif (document := self._read_text(slots[end * SIZE : start * SIZE])) is not None:
                    yield first + end, document
            if start < len(points):
                yield first + start, points[start:]

    def _read_slots(self) -> bytes:
        slots = os.pread(self.handle, CHUNK * SIZE, self.next * SIZE)
        return slots[: len(slots) // SIZE * SIZE]

    def _read_text(self, slot: bytes) -> Mapping[str, Any] | None:
        """Return the document that ends with a slot; None if more slots follow, or if one of them is missing."""
        _, size, level, more, data = _PIECE.unpack(slot)
        parts = [] if level == TEXT else self._text
        if parts is not None:
            parts.append(data[:size])
        self._text = parts if more and parts is not None and len(parts) < LONGEST else None
        if more or parts is None:
            return None
        with suppress(ValueError, RecursionError):
            document = json.loads(b"".join(parts))
            if isinstance(document, dict) and any(_fits(document, kind) for kind in KINDS):
                return document
        return None


def _fits(document: Mapping[str, Any], kind: Mapping[str, type]) -> bool:
    return all(type(document.get(key)) is of for key, of in kind.items())
