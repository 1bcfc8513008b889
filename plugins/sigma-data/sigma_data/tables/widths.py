"""Check how many columns a file describes before Arrow reads that, which takes seconds and gigabytes for millions.

Arrow's descriptions are FlatBuffers, in which a few offsets lead to the fields; that of Parquet begins with the number
of its fields.  What does not look like a description is left to Arrow, which says what is wrong with it.
"""

from __future__ import annotations

import re
import struct
from typing import IO, Any

from attrs import frozen

from sigma_kernel import SigmaDataError

WIDEST = 100_000  # columns of a table, with the fields within them
LONGEST = 1 << 25  # bytes of a description by Arrow
ORC, PACKED_ORC = 1 << 23, 1 << 21  # bytes of a footer of ORC, which has about 26 a column, and of one that is packed
POSTSCRIPT = re.compile(rb"\x08([\x80-\xff]{0,9}+[\x00-\x7f])(?:\x10(.))?", re.DOTALL)
FOOTER, SHARE = 1 << 26, 4  # bytes that the footer of Parquet may have, and the part of the file if it has more
PARQUET = re.compile(
    rb"\x15[\x80-\xff]{0,9}+[\x00-\x7f]\x19(?:([\x00-\xef])|[\xf0-\xff]([\x80-\xff]{0,9}+[\x00-\x7f]))"
)
FOOTER_SCHEMA, MESSAGE_SCHEMA, FIELDS, CHILDREN = 1, 2, 1, 5  # places in the tables of Arrow's FlatBuffers


def check_width(columns: int, name: str) -> None:
    """Raise SigmaDataError for too many columns."""
    if columns > WIDEST:
        raise SigmaDataError(f"{name}: has {columns} columns, more than {WIDEST}. Store it as rows or as an array.")


def check_arrow(file: Any, name: str) -> None:
    """Raise SigmaDataError for a file of Arrow that describes too many columns."""
    size = file.size()
    file.seek(max(0, size - 10))
    end = file.read(10)
    length = int.from_bytes(end[:4], "little")
    if end[4:] == b"ARROW1" and length < size:
        file.seek(size - 10 - length)
        _check_fields(file, length, FOOTER_SCHEMA, name)


def check_stream(stream: IO[bytes], name: str) -> None:
    """Raise SigmaDataError for a stream of Arrow that describes too many columns."""
    head = stream.read(8)
    if head[:4] == b"\xff\xff\xff\xff":
        _check_fields(stream, int.from_bytes(head[4:], "little"), MESSAGE_SCHEMA, name)


def check_parquet(file: Any, name: str) -> None:
    """Raise SigmaDataError for a file of Parquet that describes too many columns, or little else."""
    size = file.size()
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != b"PAR1" or length > size - 8:
        return
    file.seek(size - 8 - length)
    if match := PARQUET.match(file.read(64)):
        count = match[1][0] >> 4 if match[1] else _read_varint(match[2])
        check_width(count - 1, name)  # the first is the table itself
    if length > max(FOOTER, size // SHARE):
        raise SigmaDataError(
            f"{name}: {length} of its {size} bytes describe the others. Write it with fewer columns, or larger groups "
            "of rows."
        )


def check_orc(file: Any, name: str) -> None:
    """Raise SigmaDataError for a file of ORC whose footer is too long."""
    size = file.size()
    file.seek(max(0, size - 256))
    end = file.read(256)
    match = POSTSCRIPT.match(end[-1 - end[-1] : -1]) if end else None
    if match is None:
        return
    length, most = _read_varint(match[1]), ORC if match[2] in (None, b"\0") else PACKED_ORC
    if most < length < size:
        raise SigmaDataError(
            f"{name}: describes its columns in {length} bytes, more than {most}. Store it as rows or as an array."
        )


def _check_fields(file: Any, length: int, schema: int, name: str) -> None:
    """Raise SigmaDataError for a description that follows in a file and has too many fields."""
    if length > LONGEST:
        raise SigmaDataError(
            f"{name}: describes its columns in {length} bytes, more than {LONGEST}. Store it as rows or as an array."
        )
    check_width(_count_fields(FlatBuffer(file.read(length)), schema), name)


def _read_varint(content: bytes) -> int:
    return sum((byte & 127) << (7 * i) for i, byte in enumerate(content))


# -- FlatBuffers -------------------------------------------------------------------------------------------------------
@frozen
class FlatBuffer:
    """A FlatBuffer: tables, whose fields are found by offsets; struct.error for one that leads outside."""

    content: bytes

    def follow(self, table: int, place: int) -> int | None:
        """Return where a table or a vector in a table begins; None if it has none."""
        slots = table - struct.unpack_from("<i", self.content, table)[0]
        slot = 4 + 2 * place
        if slot >= struct.unpack_from("<H", self.content, slots)[0]:
            return None
        at = table + struct.unpack_from("<H", self.content, slots + slot)[0]
        return None if at == table else self.read_offset(at)

    def read_offset(self, at: int) -> int:
        """Return the place that an offset leads to."""
        return at + self.read_number(at)

    def read_number(self, at: int) -> int:
        """Return an unsigned number of 32 bits."""
        return int(struct.unpack_from("<I", self.content, at)[0])


def _count_fields(buffer: FlatBuffer, schema: int) -> int:
    """Return the number of fields of a schema, with those within them, or one beyond the limit; 0 if it is damaged."""
    try:
        root = buffer.follow(buffer.read_number(0), schema)
        vectors, count = [root if root is None else buffer.follow(root, FIELDS)], 0
        while vectors := [vector for vector in vectors if vector is not None]:
            counts = [buffer.read_number(vector) for vector in vectors]
            count += sum(counts)
            if count > WIDEST:
                break
            places = [vector + 4 + 4 * i for vector, n in zip(vectors, counts, strict=True) for i in range(n)]
            vectors = [buffer.follow(buffer.read_offset(place), CHILDREN) for place in places]
        return count
    except struct.error:
        return 0
