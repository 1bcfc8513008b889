"""Files that describe a million columns: each is refused at once, before Arrow reads what it describes."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from sigma_data.sources import File
from sigma_data.tables import open_table, widths
from sigma_kernel import SigmaDataError

MILLION = 1_000_000


@pytest.fixture(scope="module")
def schema() -> pa.Schema:
    return pa.schema([(f"c{i}", pa.int8()) for i in range(150_000)])


@pytest.fixture(autouse=True)
def _imported(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "small.parquet")
    open_table(tmp_path / "small.parquet")


def refusal(path: Path) -> str:
    """Return the error of a file, which comes within a second and 64 MB."""
    tracemalloc.start()
    begin, before = time.process_time(), pa.total_allocated_bytes()
    with pytest.raises(SigmaDataError) as caught:
        open_table(path)
    spent, (_, most) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (spent < 1, most < 64e6, pa.total_allocated_bytes() - before < 64e6) == (True, True, True)
    return str(caught.value)


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_first_line_of_a_million_columns_is_refused(tmp_path: Path, delimiter: str, end: str) -> None:
    row = delimiter.join(f"c{i}" for i in range(MILLION))
    (tmp_path / "t.csv").write_text(row + end)
    assert refusal(tmp_path / "t.csv").startswith(f"{tmp_path}/t.csv: has {MILLION} columns, more than 100000. Store")


@pytest.mark.parametrize("text", ["{{{}}}\n", "[{{{}}}]"])
def test_an_object_of_a_million_fields_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text.format(",".join(f'"c{i}":1' for i in range(MILLION))))
    assert "t.json: 1 objects have more than 10000 different fields" in refusal(tmp_path / "t.json")


@pytest.mark.parametrize("write", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_schema_of_arrow_is_refused_by_its_number_of_fields(tmp_path: Path, write, schema: pa.Schema) -> None:
    with write(str(tmp_path / "t"), schema):
        pass
    assert refusal(tmp_path / "t").endswith("t: has 150000 columns, more than 100000. Store it as rows or as an array.")
    nested = pa.schema([("a", pa.struct(list(schema)[:60_000])), ("b", pa.struct(list(schema)[60_000:]))])
    with write(str(tmp_path / "n"), nested):
        pass
    assert "n: has 150002 columns, more than 100000" in refusal(tmp_path / "n")


def test_fields_that_share_their_bytes_are_counted(tmp_path: Path) -> None:
    with pa.ipc.new_stream(str(tmp_path / "t"), pa.schema([("a", pa.int8())])):
        pass
    whole = (tmp_path / "t").read_bytes()
    metadata = whole[8 : 8 + int.from_bytes(whole[4:8], "little")]
    buffer = widths.FlatBuffer(metadata)
    schema = buffer.follow(buffer.read_number(0), widths.MESSAGE_SCHEMA)
    field = buffer.read_offset(buffer.follow(schema, widths.FIELDS) + 4)
    slots = schema - struct.unpack_from("<i", metadata, schema)[0]
    at = schema + struct.unpack_from("<H", metadata, slots + 4 + 2 * widths.FIELDS)[0]
    vector = len(metadata)  # of a million offsets, each to a copy of the only field behind it
    forged = bytearray(metadata) + struct.pack("<I", MILLION) + bytes(4 * MILLION)
    forged[at : at + 4] = struct.pack("<I", vector - at)
    assert field < vector  # offsets lead forward alone, so that these fields are damaged, but counted
    (tmp_path / "t").write_bytes(whole[:4] + struct.pack("<I", len(forged)) + forged)
    assert "t: has 1000000 columns, more than 100000" in refusal(tmp_path / "t")


@pytest.mark.parametrize(
    "content",
    [
        b"ARROW1\0\0" + struct.pack("<I", 1 << 30) + b"ARROW1",
        b"\xff\xff\xff\xff" + struct.pack("<I", 1 << 30),
        b"PAR1" + struct.pack("<I", 1 << 30) + b"PAR1",
        b"\xff\xff\xff\xff" + struct.pack("<I", 64) + b"\xff" * 64,
        b"ARROW1\0\0" + b"\xff" * 64 + struct.pack("<I", 64) + b"ARROW1",
        b"PAR1" + b"\x15\x02\x19" + b"\xff" * 20 + struct.pack("<I", 23) + b"PAR1",
    ],
)
def test_descriptions_that_are_none_are_damaged_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t").write_bytes(content)
    assert refusal(tmp_path / "t").startswith(f"{tmp_path}/t: ")


def test_a_long_description_is_refused_by_its_length(tmp_path: Path) -> None:
    length = 1 << 26
    with (tmp_path / "t").open("wb") as file:
        file.write(b"\xff\xff\xff\xff" + struct.pack("<I", length))
        file.truncate(8 + length)
    assert f"t: describes its columns in {length} bytes, more than {1 << 25}." in refusal(tmp_path / "t")
    with (tmp_path / "p").open("wb") as file:
        file.write(b"PAR1")
        file.truncate(4 + 2 * length)
        file.seek(0, 2)
        file.write(struct.pack("<I", 2 * length) + b"PAR1")
    assert f"p: {2 * length} of its {2 * length + 12} bytes describe the others. Write" in refusal(tmp_path / "p")


def test_a_footer_of_parquet_is_refused_by_its_number_of_fields(tmp_path: Path) -> None:
    whole = (tmp_path / "small.parquet").read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    footer = whole[-8 - length : -8]
    assert footer[2:4] == b"\x19\x2c"  # a list of two structures: the table, and its column
    varint = b"\xc0\x84\x3d"  # 1,000,000
    forged = footer[:3] + b"\xfc" + varint + footer[4:]
    (tmp_path / "t").write_bytes(whole[: -8 - length] + forged + struct.pack("<I", len(forged)) + b"PAR1")
    assert "t: has 999999 columns, more than 100000" in refusal(tmp_path / "t")


def test_the_fields_of_files_by_arrow_are_counted_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = pa.struct([("x", pa.int8()), ("y", pa.list_(pa.string()))])
    table = pa.table({"a": [1], "b": pa.array([{"x": 1, "y": ["z"]}], inner), "c": pa.array(["d"]).dictionary_encode()})
    fields = 3 + 2 + 1  # those of the table, of the structure, and of the list
    with pa.ipc.new_stream(str(tmp_path / "s"), table.schema) as writer:
        writer.write_table(table)
    with pa.ipc.new_file(str(tmp_path / "f"), table.schema) as writer:
        writer.write_table(table)
    for name in ("s", "f"):
        monkeypatch.setattr(widths, "WIDEST", fields)
        assert open_table(tmp_path / name).rows in (1, None)
        monkeypatch.setattr(widths, "WIDEST", fields - 1)
        with pytest.raises(SigmaDataError, match=f"has {fields} columns"):
            open_table(tmp_path / name)
    monkeypatch.setattr(widths, "WIDEST", 2)
    pq.write_table(pa.table({f"c{i}": [1] for i in range(20)}), tmp_path / "p")
    with pytest.raises(SigmaDataError, match="has 20 columns"):
        open_table(tmp_path / "p")
    with pytest.raises(SigmaDataError, match="has 3 columns"):
        open_table(File(_write(tmp_path / "c", b"a,b,c\n1,2,3\n")))
    monkeypatch.setattr(widths, "WIDEST", 3)
    assert open_table(_write(tmp_path / "q", b'"a,b,,,","c"\n1,2\n')).schema.names == ["a,b,,,", "c"]


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "zstd"])
def test_a_long_footer_of_orc_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    orc.write_table(pa.table({f"c{i}": [1] for i in range(500)}), tmp_path / "t.orc", compression=compression)
    assert open_table(tmp_path / "t.orc").read().num_columns == 500
    monkeypatch.setattr(widths, "ORC" if compression == "uncompressed" else "PACKED_ORC", 1000)
    assert "t.orc: describes its columns in " in refusal(tmp_path / "t.orc")
