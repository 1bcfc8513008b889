"""Tables in files with one JSON object a line, or one list of objects."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from sigma_data.sources import stamp_of
from sigma_data.tables.batches import DEEPEST, RecordBatches, plain_batches, plain_schema, reading
from sigma_data.tables.cells import as_dates, is_float, may_merge
from sigma_kernel import SigmaDataError, Source

CHUNK = 1 << 24  # bytes that are parsed at once
LONGEST = 1 << 24  # bytes of an object
LONG = re.compile(rb"(?<![\d.])\d{16,}+(?![.eE])")
FIELD = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*+:')
FIELDS = 10_000  # of a table; parsers take time by the square of their number
CELLS = 1 << 24  # of a table, missing ones included, whatever its size in bytes
SAMPLED = 1000  # lines
TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"')


def open_json(source: Source) -> RecordBatches:
    """Return the objects of a file as rows; fields of objects within them are columns ``a.b``."""
    tables, places, fields, rows, size = [], list[Sequence[int] | None](), set[str](), 0, 0
    for line, text in _pieces(source):
        tables.append(_parse(text, line, source.name))
        fields |= {*tables[-1].column_names}
        rows, size = rows + tables[-1].num_rows, size + len(text)
        check_cells(len(fields), rows, size, source.name)
        ends = text.rstrip().count(b"\n") + 1
        places.append(range(line, line + ends) if ends == tables[-1].num_rows else None)
    if not sum(table.num_rows for table in tables):
        raise SigmaDataError(f"{source.name}: there is no row of values. Check the file.")
    with reading(source.name):
        joined = pa.concat_tables(tables, promote_options="permissive")
        whole = pa.table([as_dates(column) for column in joined.columns], names=joined.column_names)
    schema = plain_schema(whole.schema, source.name)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        return plain_batches([whole], schema, columns)

    def locate(row: int) -> str:
        left = row
        for table, lines in zip(tables, places, strict=True):
            if left < table.num_rows and lines is not None:
                return f"{source.name}:{lines[left]}"
            left -= table.num_rows
        return f"{source.name}: row {row}"

    return RecordBatches(source.name, schema, whole.num_rows, start, locate, lambda: stamp_of(source))


def _pieces(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield lines with the number of the first, several at a time; a list of objects as one object a line."""
    line = 1
    with source.open() as stream:
        first = stream.read(CHUNK)
        if first.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            first = _as_lines(first + stream.read(), source.name)
        else:
            first += stream.readline(LONGEST)
        chunk = first.removeprefix(b"\xef\xbb\xbf")
        while chunk:
            if chunk.strip():
                yield line, chunk
            line += chunk.count(b"\n")
            chunk = stream.read(CHUNK)
            chunk += stream.readline(LONGEST)


def _as_lines(text: bytes, name: str) -> bytes:
    check_cells(_count_names(text[:LONGEST]), 1, len(text), name)
    _check_depth(text, 1, name)
    try:
        rows = json.loads(text.decode("utf-8-sig"))
    except ValueError as error:
        raise SigmaDataError(f"{name}: is not JSON: {error}. Correct it.") from None
    if not all(isinstance(row, dict) for row in rows):
        raise SigmaDataError(f"{name}: holds a list of other things than objects. Give each row as an object.")
    out = BytesIO()
    out.writelines(json.dumps(row).encode() + b"\n" for row in rows)
    return out.getvalue()


def _parse(text: bytes, line: int, name: str) -> Any:
    _check_fields(text, name)
    _check_depth(text, line, name)
    try:
        table = arrow_json.read_json(pa.BufferReader(text), arrow_json.ReadOptions(block_size=len(text) + 1))
        if any(is_float(column) and may_merge(column) for column in table.columns) and LONG.search(TEXT.sub(b"", text)):
            raise ValueError("floats cannot tell integers beyond 2**53 apart; write them as text")
        return table
    except (ValueError, NotImplementedError) as error:
        with reading(f"{name}:{line}"):
            raise _find_error(text, line, name) or error from None


def _check_depth(text: bytes, line: int, name: str) -> None:
    """Raise SigmaDataError for objects within objects that could exhaust the stack of a parser."""
    if _depths(text).max(initial=0) > DEEPEST:  # brackets in texts count, too
        plain = TEXT.sub(b'""', text)
        if (depths := _depths(plain)).max(initial=0) > DEEPEST:
            at = line + plain.count(b"\n", 0, int(depths.argmax()))
            raise SigmaDataError(f"{name}:{at}: holds fields within fields, more than {DEEPEST} deep. Store fewer.")


def _check_fields(text: bytes, name: str) -> None:
    """Raise SigmaDataError if the objects have so many different fields that most cells of the table are missing."""
    lines = text.splitlines()
    if max(map(len, lines), default=0) > 5 * FIELDS or _has_rare_fields(lines[:: len(lines) // SAMPLED + 1]):
        check_cells(_count_names(text), len(lines), len(text), name)


def _count_names(text: bytes) -> int:
    """Return the number of different fields, or one beyond the limit."""
    names = set[bytes]()
    for field in FIELD.finditer(text):
        names.add(field[1])
        if len(names) > FIELDS:
            break
    return len(names)


def _has_rare_fields(lines: Sequence[bytes]) -> bool:
    return 1 in Counter(field for line in lines for field in {*FIELD.findall(line)}).values()


def check_cells(fields: int, rows: int, size: int, name: str) -> None:
    """Raise SigmaDataError for a table with too many fields, or with many more cells than its bytes can fill."""
    if fields > FIELDS or fields * rows > max(CELLS, 4 * size):
        count = f"more than {FIELDS}" if fields > FIELDS else fields
        raise SigmaDataError(
            f"{name}: {rows} objects have {count} different fields. Give them the same fields, or store lists."
        )


def _depths(text: bytes) -> np.ndarray:
    codes = np.frombuffer(text, np.uint8)
    steps = np.isin(codes, [ord("["), ord("{")]).astype(np.int8) - np.isin(codes, [ord("]"), ord("}")])
    return np.cumsum(steps, dtype=np.int32)


def _find_error(text: bytes, line: int, name: str) -> SigmaDataError | None:
    """Return the error for the first line that is not an object of JSON; None if Arrow has another reason."""
    for number, row in enumerate(text.split(b"\n"), line):
        try:
            value = json.loads(row) if row.strip() else {}
        except ValueError as error:
            return SigmaDataError(f"{name}:{number}: is not JSON: {error}. Correct this line.")
        if not isinstance(value, dict):
            return SigmaDataError(f'{name}:{number}: is not an object, such as {{"a": 1}}. Correct this line.')
    return None
