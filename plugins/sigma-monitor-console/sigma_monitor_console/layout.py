"""Lay out the progress of trainers in lines that fit a width.

With curves, a trainer has a line, and each of its values has one: name, curve, number. Without, or with many values,
a trainer has one line if everything fits. Otherwise its values go to a second line, and those that do not fit are
counted. The choice does not depend on the digits of values, so that lines do not jump.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import evolve, frozen
from rich.cells import cell_len, set_cell_size

from sigma_monitor_console.reading import Reading, format_number
from sigma_monitor_console.sparks import draw_bars

GAP = "  "
BAR, LEAST = 24, 8  # widths of a bar
DIGITS = 9  # of a value, as in -1.23e-12
LABEL = 20  # the width of a label
CURVE = 40  # the greatest width of a curve
STACKED = 8  # values that have a line each, with their curves; more are put together
FULL, REST, PLAIN = "━", "─", ("#", "-")
SHORT = {
    "validation": "val", "training": "", "accuracy": "acc", "learning_rate": "lr", "mean_absolute_error": "mae",
    "root_mean_square_error": "rmse",
}  # fmt: skip

Piece = tuple[str, str]  # text, and its style
Line = list[Piece]


@frozen
class Look:
    """A trainer at one time: its reading, and words such as its speed."""

    reading: Reading
    words: tuple[str, ...] = ()


def lines(looks: Sequence[Look], width: int, ascii_only: bool = False) -> list[Line]:
    """Return the lines of all trainers, none of them wider than ``width``."""
    if any(look.reading.curves for look in looks) and sum(len(look.reading.values) for look in looks) <= STACKED:
        return _stack_lines(looks, width, ascii_only)
    return [line for block in _compact(looks, width, ascii_only) for line in block]


def _stack_lines(looks: Sequence[Look], width: int, ascii_only: bool) -> list[Line]:
    """Return a line for each trainer, and one for each of its values: name, curve, number."""
    bare = [Look(evolve(look.reading, values={}, curves={}), look.words) for look in looks]
    named = [list(_values(look.reading)) for look in looks]
    label = max((cell_len(name) for names in named for name in names), default=0)
    room = min(CURVE, width - label - DIGITS - 3 * len(GAP))
    rows: list[Line] = []
    for look, names, head in zip(looks, named, _compact(bare, width, ascii_only), strict=True):
        rows += head
        for name, (key, value) in zip(names, look.reading.values.items(), strict=True):
            curve = look.reading.curves.get(key)
            bars = "" if curve is None or room < LEAST else draw_bars(curve.bars(room), ascii_only)
            space = [(set_cell_size(bars, room) + GAP, "bar.complete")] if room >= LEAST else []
            rows.append(
                _crop_line([(f"{GAP}{set_cell_size(name, label)}{GAP}", ""), *space, (format_number(value), "")], width)
            )
    return rows


def _compact(looks: Sequence[Look], width: int, ascii_only: bool) -> list[list[Line]]:
    """Return one line for each trainer if everything fits, or else two."""
    heads, values = _heads(looks, width), [_values(look.reading) for look in looks]
    room = width - max(map(cell_len, heads), default=0) - len(GAP)  # for the bar and what follows
    taken = [
        _width([*(f"{name} {'0' * DIGITS}" for name in names), *look.words])
        for names, look in zip(values, looks, strict=True)
    ]
    whole = max(taken, default=0) + LEAST <= room
    after = max(taken if whole else [_width(_fitting_texts(look.words, room - LEAST)) for look in looks], default=0)
    bar = max(LEAST, min(BAR, room - after))
    blocks: list[list[Line]] = []
    for head, look, named in zip(heads, looks, values, strict=True):
        texts = [f"{name} {value}" for name, value in named.items()]
        tail = [*texts, *look.words] if whole else _fitting_texts(look.words, room - bar)
        bars = _bar(look.reading, min(bar, max(0, room)), ascii_only)
        blocks.append([_crop_line([(head + GAP, ""), *bars, *((GAP + text, "") for text in tail)], width)])
        below = [] if whole else [*texts, *look.words[len(tail) :]]
        if below:
            blocks[-1].append(_crop_line([(GAP + GAP.join(_fit_texts(below, width - len(GAP))), "")], width))
    return blocks


def _heads(looks: Sequence[Look], width: int) -> list[str]:
    """Return name and epoch of each trainer, aligned; a single trainer needs no name."""
    epochs = _pad_texts([look.reading.progress() for look in looks])
    if len(looks) < 2:
        return epochs
    most = max(4, width - cell_len(epochs[0]) - 2 * len(GAP) - LEAST)
    names = _pad_texts(distinct([look.reading.name for look in looks], most))
    return [name + GAP + epoch for name, epoch in zip(names, epochs, strict=True)]


def _pad_texts(texts: Sequence[str]) -> list[str]:
    return [set_cell_size(text, max(map(cell_len, texts))) for text in texts]


def _values(reading: Reading) -> dict[str, str]:
    names = labels(reading.values)
    return {names[name]: format_number(value) for name, value in reading.values.items()}


def _width(texts: Iterable[str]) -> int:
    return sum(cell_len(GAP + text) for text in texts)


def _fitting_texts(texts: Sequence[str], room: int) -> list[str]:
    """Return the first texts, as many as fit with a gap before each."""
    return [text for i, text in enumerate(texts) if _width(texts[: i + 1]) <= room]


def _fit_texts(texts: Sequence[str], width: int) -> list[str]:
    """Return the texts that fit in one line, and the number of the others."""
    if _width(texts) <= width + len(GAP):
        return list(texts)
    kept = _fitting_texts(texts, width + len(GAP) - len(f"{GAP}+{len(texts)}"))
    return [*kept, f"+{len(texts) - len(kept)}"]


def _bar(reading: Reading, width: int, ascii_only: bool) -> Line:
    full, rest = PLAIN if ascii_only else (FULL, REST)
    done = int(width * min(1.0, reading.iteration / reading.goal)) if reading.goal else 0
    return [(full * done, "bar.complete"), (rest * (width - done), "bar.back" if reading.goal else "bar.pulse")]


def _crop_line(line: Line, width: int) -> Line:
    """Return a line cut at a width."""
    spans: Line = []
    for text, style in line:
        if cell_len(text) > width:
            text = set_cell_size(text, max(0, width))
        width -= cell_len(text)
        spans.append((text, style))
    return spans


# -- names -------------------------------------------------------------------------------------------------------------
def labels(names: Iterable[str]) -> dict[str, str]:
    """Return a short label for each name: ``val acc`` for ``validation.accuracy``; no two are equal."""
    short = {name: _short(name) for name in names}
    times = Counter(short.values())
    clear = [text if times[text] == 1 else name.replace(".", " ") for name, text in short.items()]
    return dict(zip(short, distinct(clear, LABEL), strict=True))


def _short(name: str) -> str:
    for long, short in SHORT.items():
        name = re.sub(rf"(?<![^._]){long}(?![^._])", short, name)
    return " ".join(re.split(r"[. ]++|(?<=acc)_|_(?=acc)", name)).strip() or name


def distinct(texts: Sequence[str], most: int) -> list[str]:
    """Return texts of at most ``most`` columns; long ones lose their middle, and equal ones are numbered."""
    cuts: list[str] = []
    for text in texts:
        cut, number = _shorten_text(text, most), 2
        while cut in cuts:
            cut, number = _shorten_text(text, most - len(f"~{number}")) + f"~{number}", number + 1
        cuts.append(cut)
    return cuts


def _shorten_text(text: str, most: int) -> str:
    if cell_len(text) <= most:
        return text
    if most < 3:
        return set_cell_size(text, max(0, most))
    head = (most - 1) // 2
    tail = set_cell_size(text[::-1], most - 1 - head)[::-1]
    return f"{set_cell_size(text, head)}…{tail}"
