"""Tell running text from tables in text files."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

END = ".txt"
DELIMITERS = ",;\t|"
READ, FILES = 1 << 16, 20  # bytes of a file, and files, that are looked at
WORDS = 3  # of a line, on average
SHORT = 2  # of a line of verse, on average, if lines differ
STOPS = tuple(".!?\u3002\uff01\uff1f\u2026\u300d\u300f\u201d")  # of sentences; also those of Chinese and Japanese
ENDS = 0.3  # share of lines that end so where words do not tell
LETTERS = 0.5  # least share of what is no blank


def is_prose(*files: Path) -> bool:
    """Return whether files hold running text by their names and beginnings: lines of words, and no regular cells."""
    if not files or any(file.suffix.lower() != END for file in files):
        return False
    beginnings = [lines for file in islice(sorted(files), FILES) if (lines := _read_lines(file))]
    return bool(beginnings) and all(map(_are_prose, beginnings))


def _read_lines(file: Path) -> list[str]:
    """Return the first lines that are not blank."""
    try:
        with file.open("rb") as stream:
            content = stream.read(READ)
    except OSError:  # reading the whole file reports it
        return []
    encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8"
    return [line for line in content.decode(encoding, errors="replace").splitlines()[:200] if line.strip()]


def _are_prose(lines: Sequence[str]) -> bool:
    solid = [character for line in lines for character in line if not character.isspace()]
    words = [len(line.split()) for line in lines]
    ends = sum(line.rstrip().endswith(STOPS) for line in lines) / len(lines)
    least = WORDS if len({*words}) == 1 else SHORT
    has_words = sum(words) >= least * len(lines) or ends >= ENDS  # some scripts have no blanks
    if not has_words or sum(map(str.isalpha, solid)) < LETTERS * len(solid):
        return False
    columns = len(words) > WORDS and len({*words}) == 1 and ends < ENDS  # verse may have as many words in each line
    return len(lines) == 1 or not (columns or _are_regular(lines))


def _are_regular(lines: Sequence[str]) -> bool:
    """Return whether each line has as many cells; the last may be blank, and a line of verse end with a comma."""
    raw = [[line.count(delimiter) for line in lines] for delimiter in DELIMITERS]
    solid = [line.rstrip().rstrip(DELIMITERS) for line in lines]
    inner = [[line.count(delimiter) for line in solid] for delimiter in DELIMITERS]
    return any(
        min(within) == max(within) > 0 or min(count) == max(count) > 0 < max(within)
        for count, within in zip(raw, inner, strict=True)
    )
