"""Valid files of the formats that mutated_tables reads beside tables as text and of Arrow, and how each is read."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import openpyxl
import soundfile
from PIL import Image

from sigma_data import File, Hdf5Reader, IdxReader, NpyReader, NpzReader, SoundFolder
from sigma_data.pictures.decoding import PictureForm
from sigma_data.pictures.samples import PictureSamples

DRAWN = np.random.default_rng(0)
PIXELS = DRAWN.integers(0, 256, (12, 10, 3), np.uint8)
WAVE = 0.5 * np.sin(np.arange(900) / 7)
ROWS = [["number", "word", "when"], *([i / 3, ["red", "green", None][i % 3], i % 5] for i in range(40))]
LARGEST = 1 << 20  # pixels of a picture
SHEET = "xl/worksheets/sheet1.xml"
TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"


def sink(write: Callable[[io.BytesIO], object]) -> bytes:
    """Return what a function writes."""
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def pack(members: dict[str, bytes]) -> bytes:
    """Return a zip archive of members."""

    def write(out: io.BytesIO) -> None:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return sink(write)


def unpack(content: bytes) -> dict[str, bytes]:
    """Return the members of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_xlsx(out: io.BytesIO) -> None:
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    book.save(out)


def write_ods_content() -> bytes:
    def cell(value: object) -> str:
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, str):
            return f'<table:table-cell office:value-type="string"><p>{value}</p></table:table-cell>'
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'

    rows = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in ROWS)
    body = f'<office:spreadsheet><table:table table:name="S">{rows}</table:table></office:spreadsheet>'
    return (
        f'<?xml version="1.0"?><office:document-content xmlns:office="{OFFICE}" xmlns:table="{TABLE}">'
        f"<office:body>{body}</office:body></office:document-content>"
    ).encode()


def pack_ods(content: bytes) -> bytes:
    manifest = b'<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    return pack({"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": manifest})


def write_hdf5(out: io.BytesIO) -> None:
    with h5py.File(out, "w") as file:
        file.create_dataset("inputs", data=DRAWN.normal(size=(40, 3)), chunks=(7, 3), compression="gzip", shuffle=True)
        file.create_dataset("targets", data=np.arange(40) % 3)
        file["words"] = np.array([b"cat", b"dog"] * 20)


def write_picture(kind: str) -> bytes:
    return sink(lambda out: Image.fromarray(PIXELS).save(out, kind))


def write_sound(kind: str) -> bytes:
    return sink(lambda out: soundfile.write(out, WAVE, 8000, format=kind))


XLSX = sink(write_xlsx)
PICTURES = {"png": "PNG", "jpg": "JPEG", "gif": "GIF", "bmp": "BMP", "tiff": "TIFF", "webp": "WEBP"}
SOUNDS = {"wav": "WAV", "flac": "FLAC"}
ARRAYS = {"inputs": PIXELS, "targets": np.arange(12)}
WRITERS: dict[str, Callable[[], bytes]] = {
    "xlsx": lambda: XLSX,
    "sheet.xlsx": lambda: unpack(XLSX)[SHEET],
    "ods": lambda: pack_ods(write_ods_content()),
    "content.ods": write_ods_content,
    "h5": lambda: sink(write_hdf5),
    "npz": lambda: sink(lambda out: np.savez_compressed(out, **ARRAYS)),
    "npy": lambda: sink(lambda out: np.save(out, PIXELS)),
    "idx": lambda: struct.pack(">HBBIII", 0, 8, 3, *PIXELS.shape) + PIXELS.tobytes(),
    **{name: lambda kind=kind: write_picture(kind) for name, kind in PICTURES.items()},
    **{name: lambda kind=kind: write_sound(kind) for name, kind in SOUNDS.items()},
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {  # of what is mutated before it is packed, with the right checksums
    "sheet.xlsx": lambda content: pack({**unpack(XLSX), SHEET: content}),
    "content.ods": pack_ods,
}


def read_picture(path: Path, limit: int) -> int:
    form = PictureForm(8, 8, "rgb", "crop", 255, LARGEST)
    return len(PictureSamples(form, 1.0, threads=1).read(path, form.shape))


def read_sound(path: Path, limit: int) -> int:
    form = SoundFolder(path.parent, seconds=0.1, rate=16_000, threads=1)
    return len(form.samples(path, (8, 40)))


def read_arrays(reader: Callable[[int], NpyReader | IdxReader | NpzReader | Hdf5Reader]) -> Callable[[Path, int], int]:
    return lambda path, limit: len(next(iter(reader(limit).read(File(path)).values())))


READERS: dict[str, Callable[[Path, int], int]] = {  # by the end of the name; each returns the number of rows
    ".h5": read_arrays(lambda limit: Hdf5Reader(limit=limit)),
    ".npz": read_arrays(lambda limit: NpzReader(limit=limit)),
    ".npy": read_arrays(lambda limit: NpyReader()),
    ".idx": read_arrays(lambda limit: IdxReader()),
    **{f".{name}": read_picture for name in PICTURES},
    **{f".{name}": read_sound for name in SOUNDS},
}
