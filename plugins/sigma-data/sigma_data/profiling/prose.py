"""Tell running text from tables in text files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

END = ".txt"
DELIMITERS = ",;\t|"
READ, FILES = 1 << 16, 20  # bytes of a file, and files, that are looked at
WORDS = 3  # of a line, on average
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
            text = stream.read(READ).decode(errors="replace")
    except OSError:  # whoever reads it all reports it
        return []
    return [line for line in text.splitlines()[:200] if line.strip()]


def _are_prose(lines: Sequence[str]) -> bool:
    solid = [character for line in lines for character in line if not character.isspace()]
    words = [len(line.split()) for line in lines]
    if sum(words) < WORDS * len(lines) or sum(map(str.isalpha, solid)) < LETTERS * len(solid):
        return False
    counts = [[line.count(delimiter) for line in lines] for delimiter in DELIMITERS]
    regular = any(min(count) == max(count) > 0 for count in counts) or (len(words) > WORDS and len({*words}) == 1)
    return len(lines) == 1 or not regular
