"""Profile texts: how long they are, and how many words occur in several of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from sigma_data.profiling.drafting import count_rows
from sigma_data.profiling.kinds import shorten
from sigma_data.profiling.profile import draw_bars
from sigma_kernel import Inspection
from sigma_text.encoders.pieces import Counts, choose_length, read_texts

MOST = 100_000  # texts that are looked at
BARS = 12


@frozen
class TextProfile:
    """Texts: how many, how long, in words; how many words they have, and how many of these are in several texts."""

    rows: int
    lengths: tuple[int, ...]  # shortest, median, longest
    usual: int  # 99 % are not longer
    empty: int
    words: int
    common: int
    histogram: tuple[int, ...]

    @classmethod
    def from_column(cls, column: Any) -> TextProfile:
        """Return the profile of a column of texts, of its first MOST rows if it is longer."""
        texts = read_texts(column.slice(0, MOST), lower=True)
        counts = Counts.from_batches([texts], "words")
        lengths = np.repeat([*counts.lengths], [*counts.lengths.values()]) if counts.lengths else np.zeros(1, np.int64)
        top = max(1, choose_length(counts.lengths))
        return cls(
            rows=len(column),
            lengths=(int(lengths.min()), int(np.median(lengths)), int(lengths.max())),
            usual=top,
            empty=counts.lengths[0],
            words=len(counts.pieces),
            common=sum(count > 1 for count in counts.texts.values()),
            histogram=tuple(np.histogram(np.minimum(lengths, top), BARS, (0, top))[0].tolist()),
        )

    @property
    def sentence(self) -> str:
        """Return lengths and words as a part of a sentence."""
        shortest, median, longest = self.lengths
        return f"{shortest:,} to {longest:,} words, half of them at most {median:,}; {self.words:,} different words"

    def to_json(self) -> dict[str, Any]:
        """Return the profile as plain values."""
        shortest, median, longest = self.lengths
        lengths = {"shortest": shortest, "median": median, "longest": longest, "usual": self.usual}
        words = {"words": self.words, "common": self.common}
        return {"rows": self.rows, "empty": self.empty, "lengths": lengths, **words, "histogram": [*self.histogram]}


def tabulate_classes(texts: Sequence[str], classes: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of a table for people: for each class its number of texts, their lengths, and the first one."""
    yield ["class", "texts", "words", "", "first"]
    by_class: dict[str, list[str]] = {}
    for text, name in zip(texts, classes, strict=True):
        by_class.setdefault(name, []).append(text)
    for name, own in sorted(by_class.items()):
        profile = TextProfile.from_column(pa.array(own, pa.large_string()))
        shortest, median, longest = profile.lengths
        lengths = f"{shortest:,} … {median:,} … {longest:,}"
        yield [name, f"{len(own):,}", lengths, draw_bars(profile.histogram), shorten(own[0], 60)]


def inspect_texts(place: Path, texts: Sequence[str], classes: Sequence[str], notes: Sequence[str] = ()) -> Inspection:
    """Return the lengths and the words of texts at a place, in all and by class."""
    profile = TextProfile.from_column(pa.array(texts, pa.large_string()))
    counts = dict(sorted(Counter(classes).items()))
    head = f"{place}: {profile.rows:,} texts in {len(counts)} classes, of {profile.sentence}"
    document = {"name": place.name, **profile.to_json(), "classes": counts}
    return Inspection(head, [*tabulate_classes(texts, classes)], [*notes, *describe_texts(texts, profile)], document)


def inspect_running(place: Path, texts: Sequence[str], notes: Sequence[str] = ()) -> Inspection:
    """Return the lengths of texts without classes at a place."""
    profile = TextProfile.from_column(pa.array(texts, pa.large_string()))
    head = f"{place}: {describe_running(texts, profile)}"
    document = {"name": place.name, **profile.to_json(), "characters": sum(map(len, texts))}
    rows = [row[1:] for row in tabulate_classes(texts, [""] * len(texts))]
    return Inspection(head, rows, [*notes, *describe_texts(texts, profile)], document)


def describe_running(texts: Sequence[str], profile: TextProfile) -> str:
    """Return how much running text there is, as a part of a sentence."""
    what = "1 text" if len(texts) == 1 else f"{len(texts):,} texts"
    return f"{what} without classes, {sum(map(len, texts)):,} characters, {profile.words:,} different words"


def describe_texts(texts: Any, profile: TextProfile) -> list[str]:
    """Return a sentence for texts without words, and one for texts that occur twice."""
    notes = [f"{count_rows(profile.empty)} without a word."] if profile.empty else []
    if equal := len(texts) - len({*texts}):
        notes.append(f"{count_rows(equal)} equal to an earlier text, which may be in another split.")
    return notes
