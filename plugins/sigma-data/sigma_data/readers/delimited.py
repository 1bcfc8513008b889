"""Parse plain delimited text with Arrow, in pieces of whole lines.

Whatever Arrow and Python's csv module could read differently is refused with :class:`Unfit`, and left to the careful
parser of :mod:`sigma_data.readers.csv`, which knows the line and column of an error.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import IO, Any

import numpy as np
import pyarrow as pa
from attrs import field, frozen
from pyarrow import csv

from sigma_data.labels import EXACT
from sigma_data.readers.figures import GAPS
from sigma_data.readers.lines import as_text
from sigma_kernel import Source

CHUNK = 1 << 22  # bytes of a piece, which one thread parses
BLOCK = 1 << 20  # bytes that Arrow parses at once
WIDE = 1 << 12  # columns from which on a line may be longer than a block
ROW, LARGEST = 1 << 9, 1 << 25  # bytes of a piece for each of many columns, and at most
WINDOW = 1 << 16  # what spans a whole window may be a cell that is too long for the csv module
LONGEST = 1 << 24  # bytes of a line
MARK, LF = codecs.BOM_UTF8, 0x0A
INTEGER = re.compile(rb"(?<![\d.])\d{16,}+(?![.eE])")  # long enough for a float to merge it with others


class Unfit(ValueError):
    """Raised if a text is not plain, so that the careful parser must read it."""


@frozen(slots=False)
class Piece:
    """Whole lines of a text, UTF-8 with ends of a line feed; and the number in the file of the first."""

    text: bytes = field(repr=False)
    line: int

    @cached_property
    def has_quotes(self) -> bool:
        """Return whether there are quotes."""
        return b'"' in self.text

    @cached_property
    def count(self) -> int:
        """Return the number of lines."""
        return int(np.count_nonzero(np.frombuffer(self.text, np.uint8) == LF)) + (not self.text.endswith(b"\n"))

    def number_rows(self, rows: int) -> np.ndarray:
        """Return the line of each row; raises Unfit unless each line that is not blank holds one."""
        if rows == self.count:
            return np.arange(self.line, self.line + rows)
        ends = np.flatnonzero(np.frombuffer(self.text.removesuffix(b"\n") + b"\n", np.uint8) == LF)
        there = np.flatnonzero(np.diff(ends, prepend=-1) > 1)
        if rows != len(there):
            raise Unfit("values of several lines")
        return self.line + there


@frozen
class Parser:
    """The names of all columns of a text, its marks, and the Arrow types of those to read; others are inferred.

    Cells in ``gaps`` are missing, except among strings.
    """

    names: Sequence[str]
    delimiter: str = ","
    decimal: str = "."
    types: Mapping[str, Any] = field(factory=dict)
    columns: Sequence[str] | None = None
    gaps: Sequence[str] = ()

    def parse(self, piece: Piece) -> Any:
        """Return the columns of a piece as a table; raises ValueError if Arrow cannot.

        Arrow prepares words for gaps and truths anew for each column, which takes as long as to parse 50 rows: of many
        columns, those that are numbers without them are parsed without them.
        """
        if len(self.names) < WIDE:
            return self._read(piece, self.columns, has_words=True)
        try:
            plain = self._read(piece, self.columns, has_words=False)
        except ValueError:  # a word in a column that has a type
            return self._read(piece, self.columns, has_words=True)
        odd = [
            name for name, column in zip(plain.column_names, plain.columns, strict=True) if self._is_odd(name, column)
        ]
        again = dict(zip(odd, self._read(piece, odd, has_words=True).columns, strict=True)) if odd else {}
        return pa.table(
            [again.get(name, column) for name, column in zip(plain.column_names, plain.columns, strict=True)],
            names=plain.column_names,
        )

    def _is_odd(self, name: str, column: Any) -> bool:
        """Return whether a column that was parsed without words may be another one with them.

        NaN stands for a gap, without which a column of whole numbers is one of integers.
        """
        if pa.types.is_floating(column.type) and name not in self.types:
            return has_whole_numbers_and_nan(column.to_numpy())
        is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
        return not is_number and not (name in self.types and pa.types.is_string(column.type))

    def _read(self, piece: Piece, columns: Sequence[str] | None, has_words: bool) -> Any:
        block = BLOCK if len(self.names) < WIDE else max(BLOCK, len(piece.text))  # of at least a line
        words = {"null_values": list(self.gaps), "true_values": spell("true"), "false_values": spell("false")}
        table = csv.read_csv(
            pa.BufferReader(piece.text),
            csv.ReadOptions(column_names=list(self.names), block_size=block, use_threads=False),
            csv.ParseOptions(delimiter=self.delimiter, quote_char='"' if piece.has_quotes else False),
            csv.ConvertOptions(
                column_types=dict(self.types),
                include_columns=None if columns is None else list(columns),
                decimal_point=self.decimal,
                **(words if has_words else {key: [] for key in words}),
            ),
        )
        return table.combine_chunks()


def spell(word: str) -> list[str]:
    """Return a word in every mixture of small and capital letters."""
    return ["".join(letters) for letters in product(*({letter, letter.upper()} for letter in word))]


GAP_WORDS = tuple(sorted(word for gap in GAPS for word in spell(gap)))


def pieces(source: Source, encoding: str, before: int, delimiter: str, columns: int = 1) -> Iterator[Piece]:
    """Yield the text behind the first lines in pieces; raises ValueError if it is not plain.

    Those of many columns are larger, as each piece takes time for each column.
    """
    if not delimiter.isascii():
        raise Unfit("a delimiter of several bytes")
    line, size = before + 1, CHUNK if columns < WIDE else max(CHUNK, min(columns * ROW, LARGEST))
    with source.open() as stream:
        for chunk in _chunks(stream, encoding, before, size):
            piece = Piece(chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk, line)
            _check_text(piece, delimiter)
            line += piece.count
            if not piece.text.startswith(b"\n") or piece.text.strip(b"\n"):
                yield piece


def _chunks(stream: IO[bytes], encoding: str, before: int, size: int) -> Iterator[bytes]:
    """Yield the lines behind the first ones as UTF-8, several at a time."""
    codec = codecs.lookup(encoding).name
    if codec not in ("utf-8", "utf-8-sig"):
        yield from _recode(stream, encoding, before, size)
        return
    head = b"".join(stream.readline(LONGEST) for _ in range(before))
    if b"\r" in head.replace(b"\r\n", b""):
        raise Unfit("other ends of lines")
    while chunk := stream.read(size):
        chunk += stream.readline(LONGEST)
        yield chunk.removeprefix(MARK) if codec == "utf-8-sig" and not head else chunk
        head = MARK


def _recode(stream: IO[bytes], encoding: str, before: int, size: int) -> Iterator[bytes]:
    with as_text(stream, encoding, newline="") as text:
        for _ in range(before):
            text.readline(LONGEST)
        while part := text.read(size):
            yield (part + text.readline(LONGEST)).encode()


def _check_text(piece: Piece, delimiter: str) -> None:
    """Raise ValueError unless lines are plain."""
    text = piece.text
    if b"\r" in text or b"\0" in text or text.startswith(MARK):
        raise Unfit("other ends of lines, or marks")
    if not text.isascii():
        text.decode()
    if piece.has_quotes and not has_plain_quotes(text, delimiter):
        raise Unfit("quotes that are no frame")
    mark = b"\n" if piece.has_quotes else delimiter.encode()  # a quoted cell may hold delimiters
    for start in range(0, len(text) - WINDOW, WINDOW):
        if text.find(b"\n", start, start + WINDOW) < 0 and text.find(mark, start, start + WINDOW) < 0:
            raise Unfit("a long cell")


def has_plain_quotes(text: bytes, delimiter: str) -> bool:
    """Return whether quotes stand around whole cells of one line, and two within a quoted cell for one."""
    codes = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    if len(quotes) % 2:
        return False
    framed = np.frombuffer(b"\n" + text + b"\n", np.uint8)  # one further on than `quotes` say
    around = np.stack([framed[quotes[::2]], framed[quotes[1::2] + 2]])
    ends = np.flatnonzero(codes == ord("\n"))
    marks = [ord(delimiter), ord("\n"), ord('"')]
    within = np.searchsorted(ends, quotes[::2]) != np.searchsorted(ends, quotes[1::2])
    return bool(np.isin(around, marks).all()) and not within.any()


def has_whole_numbers_and_nan(values: np.ndarray) -> bool:
    """Return whether there are NaN among these numbers, and no fractions."""
    there = values[~np.isnan(values)]
    return len(there) < len(values) and bool((there == np.trunc(there)).all())


def merges_integers(values: np.ndarray, text: bytes) -> bool:
    """Return whether some of these numbers, parsed from a text, may stand for several integers; infinities count."""
    return bool((np.abs(values) >= EXACT).any() and (np.isinf(values).any() or INTEGER.search(text)))
