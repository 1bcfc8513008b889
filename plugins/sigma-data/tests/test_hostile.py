"""Arbitrary bytes: whatever a file contains, it is read or refused with one error, within a memory limit."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_data import BytesReader, Compressed, Csv, CsvReader, IdxReader, LinesReader, NpyReader
from sigma_data.bounds import CHUNK
from sigma_kernel import Reader

EXAMPLES = 60
LIMIT = 100_000  # limit for decompressed bytes in these tests
COST = 4 * CHUNK  # in addition to twelve times the file: a requested chunk, its copies, and bz2's own tables


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", content)
    return packed.getvalue()


# xz with a small window, because the file may legitimately request the memory of the strongest preset
PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes, "gzip": gzip.compress, "bz2": lambda content: bz2.compress(content, 1),
    "xz": lambda content: lzma.compress(content, preset=0), "zip": zipped,
}  # fmt: skip

ANY = st.binary(max_size=200)
SIDE = st.sampled_from([0, 1, 2, 3, 255, 2**16, 2**31, 2**32 - 1]) | st.integers(0, 2**32 - 1)
IDX = st.builds(
    lambda code, axes, sides, rest: bytes([0, 0, code, axes]) + b"".join(s.to_bytes(4, "big") for s in sides) + rest,
    st.sampled_from([8, 9, 0x0B, 0x0C, 0x0D, 0x0E]) | st.integers(0, 255), st.integers(0, 34) | st.integers(0, 255),
    st.lists(SIDE, max_size=6), ANY,
)  # fmt: skip
HEADER = st.builds(
    "{{'descr': {!r}, 'fortran_order': {!r}, 'shape': {!r}}}\n".format,
    st.sampled_from(["<f8", ">i2", "|b1", "|u1", "<f2", "|O", "<c8", "<U9", "|V4", "", [("a", "<f4")], 3, None]),
    st.sampled_from([True, False, None, "no"]),
    st.lists(st.integers(-(2**70), 2**70) | st.integers(0, 4) | st.booleans() | st.floats(), max_size=40).map(tuple)
    | st.lists(SIDE, min_size=1, max_size=3).map(tuple)
    | st.none(),
) | st.text("{}[]()'\":,-+~0123456789.eEjrbuf\\ \n", max_size=120)
NPY = st.builds(
    lambda version, header, length, rest: (
        b"\x93NUMPY" + bytes(version) + (length or len(header)).to_bytes(2 if version[0] == 1 else 4, "little")
        + header.encode() + rest
    ),
    st.sampled_from([(1, 0), (2, 0), (3, 0), (4, 0), (1, 1)]), HEADER, st.sampled_from([0, 0, 0, 0, 1, 65535]), ANY,
)  # fmt: skip
TEXT = st.text("a,b;\t|\"'\n\r 0123456789.-+eENaif?_\x00\ufeffé٣\u2028", max_size=150)
CELL = st.sampled_from(["1", "2", " -0.5", "1e39", "-1e300", "1e400", "inf", "nan", "NA", "", "x", '"x,\ny"', "٣"])
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width).map(",".join), min_size=1, max_size=5)
)
GRID = st.builds(lambda head, rows: "\n".join([*head, *rows]), st.sampled_from([[], ["a"], ["a,b"], ["a,b,"]]), ROWS)
TABLE = (TEXT | GRID).map(lambda text: text.encode("utf-8", "surrogatepass"))
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "ascii", "utf-7", "cp037", "\0"])
NAMES = st.sampled_from(["a", "b", "", 0, 1, -1, 7, "*"])
CSV = st.builds(
    CsvReader, st.none() | st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.lists(NAMES, max_size=2).map(tuple),
    st.booleans(), st.sampled_from(",;\t| a0"), st.sampled_from(["refuse", "nan"]), ENCODINGS,
)  # fmt: skip
READERS: dict[str, tuple[st.SearchStrategy[Reader], st.SearchStrategy[bytes]]] = {
    "idx": (st.just(IdxReader()), IDX),
    "npy": (st.just(NpyReader()), NPY),
    "csv": (CSV, TABLE),
    "lines": (st.builds(LinesReader, ENCODINGS, st.integers(1, 50)), TABLE),
    "bytes": (st.builds(BytesReader, st.integers(1, 2**70), st.integers(0, 2**70)), ANY),
}


@st.composite
def files(draw: st.DrawFn, inside: st.SearchStrategy[bytes]) -> bytes:
    """Return bytes of this kind or any, often repeated, perhaps compressed, perhaps modified or truncated."""
    content = draw(inside | ANY) * draw(st.sampled_from([1, 1, 1, 50, 5000]))
    packed = bytearray(PACK[draw(st.sampled_from(sorted(PACK)))](content[: 5 * LIMIT]))
    for _ in range(draw(st.sampled_from([0, 0, 1, 4]) if packed else st.just(0))):
        packed[draw(st.integers(0, len(packed) - 1))] = draw(st.integers(0, 255))
    return bytes(packed[: draw(st.integers(0, len(packed)) | st.just(len(packed)))])


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_any_file_is_read_or_reported_with_little_memory(held, told, kind, data):
    reader, inside = READERS[kind]
    chosen, content = data.draw(reader), data.draw(files(inside))
    source = held(content) if data.draw(st.booleans()) else Compressed(held(content), limit=LIMIT)
    tracemalloc.start()
    try:
        text = told(chosen.read, source)
        assert tracemalloc.get_traced_memory()[1] < COST + 12 * max(len(content), LIMIT)
    finally:
        tracemalloc.stop()
    assert text.startswith(("held", "encoding"))
    assert text.endswith((".", "?", "held: nothing"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_any_table_gives_finite_rows_or_an_error(tmp_path_factory, told, data):
    path = tmp_path_factory.getbasetemp() / "hostile.csv"
    path.write_bytes(data.draw(TABLE | files(TABLE)))
    table = Csv(
        path, data.draw(NAMES | st.lists(NAMES, max_size=2).map(tuple)),
        inputs=data.draw(st.just(("*",)) | st.lists(NAMES, min_size=1, max_size=2).map(tuple)),
        targets=data.draw(st.sampled_from(["auto", "classes", "numbers"])), header=data.draw(st.booleans()),
        missing=data.draw(st.sampled_from(["refuse", "drop", 0, -1.5])), encoding=data.draw(ENCODINGS),
    )  # fmt: skip

    def read() -> None:
        for values in table.all_rows()[0].block(0).values():
            assert len(values)
            assert np.isfinite(values).all()

    assert told(read).startswith((str(path), "encoding", "data: section", "held: nothing"))
