"""Find the dialect of a delimited text from its first bytes."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from attrs import field, frozen

from sigma_data.readers.figures import GAPS, MISSING, Figures, truth

MARKS = (",", ";", "\t", "|", " ")
SPELLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
LINES = 100  # looked at
BYTE_ORDERS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*+)?", re.ASCII)
GROUPED = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:\{mark}\d{{3}})++", re.ASCII) for mark in ".,"}
COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})++|\d*+),\d++(?:[eE][+-]?\d++)?", re.ASCII)
POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})++|\d*+)\.\d++(?:[eE][+-]?\d++)?", re.ASCII)

Rows = Sequence[Sequence[str]]


@frozen
class Dialect:
    """How a delimited text is written; ``reasons`` say why, by the name of the setting."""

    encoding: str
    delimiter: str
    decimal: str
    thousands: str | None
    header: bool
    reasons: Mapping[str, str] = field(factory=dict, repr=False)


def detect(head: bytes, **given: str | bool | None) -> Dialect:
    """Return the dialect of a text that begins with these bytes; what is ``given`` is not looked for.

    It is a pure function.  The last line of ``head`` may be cut off.
    """
    reasons = dict.fromkeys(given, "as set")

    def choose(name: str, find: Callable[[], tuple[str | bool | None, str]]) -> object:
        if name not in given:
            given[name], reasons[name] = find()
        return given[name]

    encoding = str(choose("encoding", lambda: _encoding(head)))
    text = _lines_of(head, encoding)
    delimiter = str(choose("delimiter", lambda: _delimiter(text)))
    rows = _rows_of(text, delimiter)
    decimal = str(choose("decimal", lambda: _decimal(rows, delimiter)))
    thousands = choose("thousands", lambda: _thousands(rows, decimal))
    figures = Figures(decimal, None if thousands is None else str(thousands))
    header = bool(choose("header", lambda: _header(rows, figures)))
    return Dialect(encoding, delimiter, decimal, figures.thousands, header, reasons)


def _encoding(head: bytes) -> tuple[str, str]:
    for mark, name in BYTE_ORDERS:
        if head.startswith(mark):
            return name, "it begins with the mark of this encoding"
    zeros = head[::2].count(0), head[1::2].count(0)
    if max(zeros) > len(head) // 5 and 10 * min(zeros) < max(zeros):
        return ("utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"), "every other byte is zero"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        if not {0x81, 0x8D, 0x8F, 0x90, 0x9D} & {*head}:
            return "cp1252", f"byte {error.start} is no UTF-8"
        return "latin-1", f"byte {error.start} is no UTF-8, and there are bytes that cp1252 lacks"
    return "utf-8-sig", "all bytes are plain ASCII" if head.isascii() else "all bytes are valid UTF-8"


def _lines_of(head: bytes, encoding: str) -> list[str]:
    """Return the first lines of a text that are not blank."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    lines = text.splitlines(keepends=True)
    whole = lines if len(lines) < 2 or text.endswith(("\n", "\r")) else lines[:-1]
    return [line for line in whole if line.strip()][:LINES]


def _rows_of(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return [line.rstrip("\r\n").split(delimiter) for line in lines]


def _delimiter(lines: Sequence[str]) -> tuple[str, str]:
    ranks = {}
    for mark in MARKS:
        rows = _rows_of(lines, mark)
        width, times = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
        if width > 1 and times >= 0.9 * len(rows):
            cells = [cell for row in rows for cell in row]
            whole = sum(_is_whole(cell, mark) for cell in cells) / len(cells)
            ranks[mark] = times / len(rows) * whole, whole, -MARKS.index(mark), width
    if not ranks:
        return ",", "no mark divides all lines alike"
    mark = max(ranks, key=lambda mark: ranks[mark])
    return mark, f"{SPELLED[mark]} divide the lines into {ranks[mark][-1]} values each"


def _is_whole(cell: str, mark: str) -> bool:
    """Return whether a cell is likely to be one value, and not a part or several of them."""
    plain = cell.strip()
    if mark == " " and not plain:
        return False
    return bool(COMMA.fullmatch(plain)) or (not any(other in plain for other in ";\t|") and "," not in plain)


def _decimal(rows: Rows, delimiter: str) -> tuple[str, str]:
    cells = [cell.strip() for row in rows for cell in row]
    points = [cell for cell in cells if POINT.fullmatch(cell) and not GROUPED["."].fullmatch(cell)]
    commas = [cell for cell in cells if COMMA.fullmatch(cell) and not GROUPED[","].fullmatch(cell)]
    if not commas and not points and delimiter == ";":  # of countries that write a comma before the fraction
        commas = [cell for cell in cells if COMMA.fullmatch(cell) and cell.count(",") == 1 and "." not in cell]
    if commas and not points:
        return ",", f"{commas[0]!r} is a number with it"
    if points:
        return ".", f"{points[0]!r} is a number with it"
    return ".", "no number has a fraction"


def _thousands(rows: Rows, decimal: str) -> tuple[str | None, str]:
    mark = "." if decimal == "," else ","
    figures = Figures(decimal, mark)
    columns = list(zip(*rows, strict=False))
    for column in columns:
        cells = [cell.strip() for cell in column[1:] if cell.strip().lower() not in MISSING]
        grouped = [cell for cell in cells if mark in cell]
        if grouped and all(map(figures.is_number, cells)):
            return mark, f"{grouped[0]!r} is a number with it"
    return None, "no number has groups of digits"


def _header(rows: Rows, figures: Figures) -> tuple[bool, str]:
    if not rows:
        return True, "there are no lines"
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    if _are_years(first[1:]) and first[0] not in GAPS and not _is_value(first[0], figures):
        return True, "the first line holds a name and years"
    values = [cell for cell in first if _is_value(cell, figures)]
    if values:
        return False, f"the first line holds {values[0]!r}, which is a value"
    for i, cell in enumerate(first):
        column = [row[i] for row in rest if i < len(row)]
        if any(_is_value(other.strip(), figures) for other in column):
            return True, f"{cell!r} stands above values"
    if len({*first}) < len(first):
        return False, "the first line holds a value twice"
    if any(not cell for cell in first[1:]):
        return False, "the first line has a gap"
    if not rest:
        return True, "the first line holds words alone"
    repeated = [cell for i, cell in enumerate(first) if any(cell == row[i].strip() for row in rest if i < len(row))]
    if repeated:
        return False, f"{repeated[0]!r} of the first line occurs below it"
    return True, "the words of the first line do not occur below it"


def _is_value(cell: str, figures: Figures) -> bool:
    """Return whether a cell holds a number, a boolean or a date."""
    return figures.is_number(cell) or truth(cell) is not None or DATE.fullmatch(cell) is not None


def _are_years(cells: Sequence[str]) -> bool:
    years = [int(cell) for cell in cells if re.fullmatch(r"(?:1[5-9]|20)\d\d", cell, re.ASCII)]
    return len(years) == len(cells) > 1 and all(a < b for a, b in pairwise(years))
