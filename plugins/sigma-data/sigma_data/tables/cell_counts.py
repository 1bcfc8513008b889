"""Check how large a spreadsheet becomes before it is parsed: calamine allocates all cells between the outermost ones.

A file of a few bytes may name the cell XFD1048576, or repeat a cell a million times, at which the parser would end the
process.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

from attrs import define

from sigma_data.sources.compressed import DAMAGE
from sigma_kernel import SigmaDataError

CHUNK = 1 << 20
LONGEST = 1 << 24  # bytes of a tag, or of a text without one
BYTES = 64  # of memory that a cell may take
CELL = re.compile(rb"""\sr\s*+=\s*+["']([A-Za-z]{1,20}+)?(\d{1,20}+)""")
OPENED = re.compile(rb"<(?:[\w.-]{1,64}+:)?(?:c|row)[\s/>]")
HIDDEN = re.compile(rb"""\sr\s*+=\s*+["'][^"'<]{0,40}&""")  # a place written by entities


def check_sizes(content: bytes, name: str, limit: int) -> None:
    """Raise SigmaDataError for a workbook that unpacks, or whose cells unfold, to more than a limit of bytes."""
    left = limit
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        for info in archive.infolist():
            with archive.open(info) as stream:
                for size in _read_member(stream, info.filename, name, limit):
                    left -= size
                    if left < 0:
                        raise SigmaDataError(
                            f"{name}: unpacks to more than {limit} bytes. If that is right, raise `limit`."
                        )
    except (*DAMAGE, expat.ExpatError) as error:
        raise SigmaDataError(f"{name}: cannot be read ({error}). Save it again.") from None


def _read_member(stream: IO[bytes], member: str, name: str, limit: int) -> Iterator[int]:
    """Read a member of a workbook, and yield the sizes of its pieces.

    Raises ExpatError for XML that is not well-formed, such as one that is cut off: calamine might never return from it.
    """
    extent = OpenDocumentExtent() if member == "content.xml" else ExcelExtent()
    parser = expat.ParserCreate()
    if isinstance(extent, OpenDocumentExtent):
        parser.StartElementHandler = extent.begin
    is_xml = member.endswith((".xml", ".rels"))
    for piece in _read_pieces(stream, name):
        if is_xml:
            parser.Parse(piece)
        if isinstance(extent, ExcelExtent):
            extent.read(piece)
        if extent.cells * BYTES > limit:
            raise SigmaDataError(
                f"{name}: its cells reach from the first to row {extent.rows} and column {extent.columns}, more than "
                f"{limit} bytes. Delete what is far outside of the table, or raise `limit`."
            )
        yield len(piece)
    if is_xml:
        parser.Parse(b"", True)


def _read_pieces(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield the text of a member in pieces that do not cut a tag."""
    carried = b""
    while chunk := stream.read(CHUNK):
        head, mark, rest = chunk.rpartition(b">")
        if mark:
            yield carried + head + mark
            carried = rest
        else:
            carried += chunk
        if len(carried) > LONGEST:
            raise SigmaDataError(f"{name}: holds a text of more than {LONGEST} bytes. Save it again.")
    yield carried


@define
class ExcelExtent:
    """The outermost row and column of the cells of a member; those that do not name their places are counted."""

    rows: int = 1
    columns: int = 1
    _opened: int = 0
    _named: int = 0
    _longest: int = 0
    _open_row: int = 0
    _count_of_rows: int = 0

    @property
    def cells(self) -> int:
        """Return the number of cells in the rectangle."""
        return self.rows * self.columns

    def read(self, text: bytes) -> None:
        """Count the cells of a piece of XML."""
        if HIDDEN.search(text):
            raise ValueError("places of cells are written by entities")
        places = CELL.findall(text)
        self._named += sum(bool(letters) for letters, _ in places)
        widest = max(map(_column_number, {letters for letters, _ in places}), default=0)
        parts = [len(OPENED.findall(part)) for part in re.split(rb"<(?:[\w.-]{1,64}+:)?row(?=[\s/>])", text)]
        self._opened += sum(parts)
        self._longest = max(self._longest, self._open_row + parts[0], *parts)
        self._open_row = parts[-1] + (self._open_row if len(parts) == 1 else 0)
        self._count_of_rows += len(parts) - 1
        unnamed = self._longest if self._opened > self._named else 0
        self.columns = max(self.columns, widest + unnamed, unnamed)
        self.rows = max(self.rows, self._count_of_rows, *(int(digits) for _, digits in places), 1)


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


@define
class OpenDocumentExtent:
    """The rows and columns of the largest table of an OpenDocument file, repeated cells unfolded, as they are read."""

    rows: int = 1
    columns: int = 1
    cells: int = 0
    _row: int = 0
    _repeat: int = 1
    _column: int = 0
    _repeat_of_cell: int = 1

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Follow the beginning of an element."""
        tag = tag.rpartition(":")[2]
        repeats = {name.rpartition(":")[2]: value for name, value in attributes.items()}
        if tag == "table":
            self._row, self._column, self._repeat = 0, 0, 0
        elif tag == "table-row":
            self._row, self._column = self._row + self._repeat, 0
            self._repeat = int(repeats.get("number-rows-repeated", 1))
        elif tag in ("table-cell", "covered-table-cell"):
            self._column += (count := int(repeats.get("number-columns-repeated", 1)))
            self._repeat_of_cell = count
            if "value-type" in repeats or "formula" in repeats:
                self._fill()
        elif self._column:
            self._fill()

    def _fill(self) -> None:
        """Note that the cell just read holds a value, so that all before it are unfolded."""
        self.rows, self.columns = max(self.rows, self._row + self._repeat), max(self.columns, self._column)
        self.cells = self.rows * self.columns
