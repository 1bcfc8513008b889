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
LONGEST = 1 << 24  # bytes of a tag, which old versions of expat read again with each piece
BYTES = 64  # of memory that a cell may take
BINARY = "xl/workbook.bin"
SHEET = b"sheetData"  # the element of a sheet; the workbook may give its member any name
PLACE = re.compile(r"([A-Za-z]{0,20}+)(\d{0,20}+)", re.ASCII)


def check_sizes(content: bytes, name: str, limit: int) -> None:
    """Raise SigmaDataError for a workbook that unpacks, or whose cells unfold, to more than a limit of bytes."""
    left = limit
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        for info in archive.infolist():
            if info.filename.lower().replace("\\", "/") == BINARY:  # read if that of XML is damaged
                raise SigmaDataError(f"{name}: is a binary workbook of Excel, as in .xlsb. Save it as .xlsx.")
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
    reader = MemberReader.open(name, member.lower().endswith((".xml", ".rels")), extent)
    while piece := stream.read(CHUNK):
        reader.read(piece)
        if extent.cells * BYTES > limit:
            raise SigmaDataError(
                f"{name}: its cells reach from the first to row {extent.rows} and column {extent.columns}, more than "
                f"{limit} bytes. Delete what is far outside of the table, or raise `limit`."
            )
        yield len(piece)
    reader.read(b"", is_last=True)


@define
class MemberReader:
    """Parses a member; one that may be no XML, such as a picture, up to what is none, unless it holds a sheet."""

    name: str
    is_xml: bool
    _parser: expat.XMLParserType
    _holds_sheet: bool = False
    _count: int = 0
    _tail: bytes = b""
    _failure: expat.ExpatError | None = None

    @classmethod
    def open(cls, name: str, is_xml: bool, extent: OpenDocumentExtent | ExcelExtent) -> MemberReader:
        """Return a reader that tells an extent of the elements."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = extent.begin
        if isinstance(extent, ExcelExtent):
            parser.EndElementHandler = extent.end
        return cls(name, is_xml, parser)

    def read(self, piece: bytes, is_last: bool = False) -> None:
        """Read a piece; raise ExpatError where the XML is not well-formed."""
        self._holds_sheet = self._holds_sheet or SHEET in self._tail + piece
        self._count, self._tail = self._count + len(piece), piece[-len(SHEET) :]
        if self._failure is None:
            self._parse(piece, is_last)
        if self._failure is not None and (self.is_xml or self._holds_sheet):
            raise self._failure

    def _parse(self, piece: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            self._failure = error
        else:
            if self._count - self._parser.CurrentByteIndex > LONGEST:
                raise SigmaDataError(f"{self.name}: holds a tag of more than {LONGEST} bytes. Save it again.")


@define
class ExcelExtent:
    """The outermost row and column of the cells of a sheet; those that do not name their places follow each other."""

    rows: int = 1
    columns: int = 1
    _inside: bool = False
    _row: int = 1
    _column: int = 0

    @property
    def cells(self) -> int:
        """Return the number of cells in the rectangle."""
        return self.rows * self.columns

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Follow the beginning of an element."""
        tag = tag.rpartition(":")[2]
        if tag == "c" and self._inside:
            self._column, row = _read_place(attributes.get("r", ""), self._column + 1, self._row)
            self.rows, self.columns = max(self.rows, row), max(self.columns, self._column)
        elif tag == "row" and self._inside:
            _, self._row = _read_place(attributes.get("r", ""), 0, self._row)
        elif tag == "sheetData":
            self._inside = True

    def end(self, tag: str) -> None:
        """Follow the end of an element."""
        if tag.rpartition(":")[2] == "row":
            self._row, self._column = self._row + 1, 0


def _read_place(place: str, column: int, row: int) -> tuple[int, int]:
    """Return the column and the row of a place such as ``B17``, and those given for what it does not name."""
    match = PLACE.fullmatch(place)
    if match is None:
        raise ValueError(f"{place[:40]!r} is no place of a cell")
    letters, digits = match.groups()
    return _column_number(letters) if letters else column, int(digits) if digits else row


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
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
