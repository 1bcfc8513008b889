"""Read mutated files of all formats: python -m tests.reliability.mutated_tables COUNT [SEED] [FORMAT ...].

Each ends in rows or in one SigmaDataError that names the file, in time, and all of a format within a limit of memory; a
crash of a parser ends this process.  Prints what they came to, in JSON.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import resource
import sqlite3
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq

from sigma_data.tables import open_table
from sigma_kernel import SigmaDataError
from tests.reliability import other_formats
from tests.reliability.other_formats import PACKERS, READERS, sink

SECONDS = 2.0  # of processor time for a file
MEMORY = 64 << 20  # bytes above the limit that the files of a format may take
ADDRESSES = 16 << 30
LIMIT = 1 << 22  # bytes that a file may unpack to
ROWS = 40
TABLE = pa.table({
    "number": [0.5 * i for i in range(ROWS)],
    "whole": [i % 7 or None for i in range(ROWS)],
    "word": [["red", "green", None, "x, \"y\""][i % 4] for i in range(ROWS)],
    "list": [[i, i + 1] for i in range(ROWS)],
})  # fmt: skip
FLAT = TABLE.drop_columns(["list"])


def write_ipc(out: io.BytesIO, new: Callable[..., pa.RecordBatchWriter], compression: str | None = None) -> None:
    with new(out, TABLE.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(TABLE)


def write_sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "t.db")
        connection.execute("CREATE TABLE t (number REAL, whole INTEGER, word TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", zip(*FLAT.to_pydict().values(), strict=True))
        connection.commit()
        connection.close()
        return (Path(folder) / "t.db").read_bytes()


def write_tar(mode: str) -> bytes:
    info = tarfile.TarInfo("t.csv")
    info.size = len(CSV)

    def write(out: io.BytesIO) -> None:
        with tarfile.open(fileobj=out, mode=mode) as archive:
            archive.addfile(info, io.BytesIO(CSV))

    return sink(write)


def write_zip(out: io.BytesIO) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", CSV)


CSV = sink(lambda out: pyarrow.csv.write_csv(FLAT, out))
WRITERS: dict[str, Callable[[], bytes]] = {
    "csv": lambda: CSV,
    "tsv": lambda: CSV.replace(b",", b"\t"),
    "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()).encode(),
    "json": lambda: json.dumps(TABLE.to_pylist()).encode(),
    "parquet": lambda: sink(lambda out: pq.write_table(TABLE, out)),
    "parquet.zstd": lambda: sink(lambda out: pq.write_table(TABLE, out, compression="zstd", use_dictionary=False)),
    "arrow": lambda: sink(lambda out: write_ipc(out, pa.ipc.new_file)),
    "arrow.lz4": lambda: sink(lambda out: write_ipc(out, pa.ipc.new_file, "lz4")),
    "arrows": lambda: sink(lambda out: write_ipc(out, pa.ipc.new_stream)),
    "arrows.zstd": lambda: sink(lambda out: write_ipc(out, pa.ipc.new_stream, "zstd")),
    "orc": lambda: sink(lambda out: pyarrow.orc.write_table(TABLE, out)),
    "db": write_sqlite,
    "csv.gz": lambda: gzip.compress(CSV),
    "csv.bz2": lambda: bz2.compress(CSV),
    "csv.xz": lambda: lzma.compress(CSV, preset=0),
    "csv.zst": lambda: pa.compress(CSV, "zstd", asbytes=True),
    "csv.zip": lambda: sink(write_zip),
    "tar": lambda: write_tar("w"),
    "tar.gz": lambda: write_tar("w:gz"),
    **other_formats.WRITERS,
}


def mutate(content: bytes, draw: random.Random) -> bytes:
    """Return content with a few changes; those that keep lengths leave more for a parser to follow."""
    out = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 4, 16])):
        at = draw.randrange(len(out) or 1)
        match draw.randrange(8):
            case 0:
                del out[at:]
            case 1:
                del out[at : at + draw.randrange(1, 64)]
            case 2:
                out[at:at] = draw.randbytes(draw.randrange(1, 16))
            case 3:
                out[at:at] = out[at : at + draw.randrange(1, 256)] * draw.choice([1, 1, 1, 30])
            case 4:
                width = draw.choice([1, 2, 4, 8])
                number = draw.choice([0, 1, -1, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1)), 127, 100])
                out[at : at + width] = number.to_bytes(width, "little", signed=True)
            case 5:
                words = (
                    b"\0",
                    b'"',
                    b"\n",
                    b"\r",
                    b",",
                    b";",
                    b"\xff",
                    b"[" * 500,
                    b"9" * 40,
                    b"1e999",
                    b"\xef\xbb\xbf",
                )
                out[at:at] = draw.choice(words)
            case _:
                out[at : at + 1] = bytes([draw.randrange(256)])
    return bytes(out)


def count_rows(path: Path) -> int:
    """Return the number of rows in a file, read as users read it."""
    if path.suffix in READERS:
        return READERS[path.suffix](path, LIMIT)
    opened = open_table(path, limit=LIMIT)
    rows = sum(batch.num_rows for batch in opened)
    opened.place(max(0, rows - 1))
    return rows


def read(path: Path) -> str:
    """Return what reading a file came to, without its places."""
    began = time.process_time()
    try:
        count_rows(path)
        result = "rows"
    except SigmaDataError as error:
        lines = str(error).splitlines()
        result = "refused" if str(path) in lines[0] and len(lines) in (1, 3) else f"no place: {error}"
    except Exception as error:
        result = f"raised: {error!r}"
    seconds = time.process_time() - began
    return result if seconds < SECONDS else f"{result}, after {seconds:.1f} s"


def read_mutated(name: str, seed: int, count: int, folder: Path) -> dict[str, object]:
    """Return how often which result came, and those that should not."""
    content, results, odd = WRITERS[name](), Counter[str](), {}
    path, pack = folder / f"t.{name}", PACKERS.get(name, bytes)
    path.write_bytes(pack(content))
    count_rows(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(seed, seed + count):
        print(f"{name}: file {i}", file=sys.stderr, flush=True)  # which one ended the process
        path.write_bytes(pack(mutate(content, random.Random(i))))
        result = read(path)
        results[result.partition(":")[0]] += 1
        if result not in ("rows", "refused"):
            odd[str(i)] = result[:300]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > LIMIT + MEMORY:
        odd["memory"] = f"{grown / 1e6:.0f} MB"
    return {**results, "odd": odd}


def main(count: int, seed: int = 0, *names: str) -> int:
    """Read mutated files of formats, by default of all; print what they came to."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    with tempfile.TemporaryDirectory() as folder:
        results = {name: read_mutated(name, seed, count, Path(folder)) for name in names or WRITERS}
    print(json.dumps(results, indent=1))
    return any(result["odd"] for result in results.values())


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int([*sys.argv, 0][2]), *sys.argv[3:]))
