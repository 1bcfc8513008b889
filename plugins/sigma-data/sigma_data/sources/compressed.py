"""Decompress another source: gzip, bz2, xz, zstd, or a member of zip or tar."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, Literal

from attrs import define, field, frozen

from sigma_kernel import SigmaDataError, Source
from sigma_kernel.errors import suggest_name
from sigma_kernel.settings import ge

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"PK\x05\x06": "zip",
         b"\x28\xb5\x2f\xfd": "zstd"}  # fmt: skip
TAR, TAR_AT = b"ustar", 257  # of the first member
MEMORY = 1 << 28  # bytes that decompressing an xz file may take; the strongest preset takes 65 MiB
DAMAGE = (
    OSError,
    EOFError,
    LookupError,  # of zipfile, for a member without a name
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)


@frozen
class Compressed(Source):
    """Decompress gzip, bz2, xz, zstd or one member of a zip or tar file while reading.

    Raises SigmaDataError, with the position, if there are more than ``limit`` decompressed bytes, or if the file is
    truncated or damaged.

    Args:
        source: Source to decompress.
        kind: Format; ``auto`` detects it from the first bytes.
        member: Member of a zip or tar file to read; needed only if there are several.
        limit: Most decompressed bytes.
    """

    source: Source
    kind: Literal["auto", "gzip", "bz2", "xz", "zstd", "zip", "tar"] = "auto"
    member: str | None = None
    limit: int = field(default=1 << 30, validator=ge(1))
    name: str = field(init=False)

    @name.default
    def _name(self) -> str:
        return f"{self.source.name}:{self.member}" if self.member else self.source.name

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Return the decompressed content as an open file."""
        with ExitStack() as stack:
            packed = stack.enter_context(self.source.open())
            try:
                inside = stack.enter_context(self._unpack(packed))
            except DAMAGE as error:
                raise SigmaDataError(f"{self.name}: cannot be unpacked: {error}.") from None
            yield io.BufferedReader(Bounded(inside, self.name, self.limit))

    def _unpack(self, packed: IO[bytes]) -> IO[bytes]:
        kind = self.kind if self.kind != "auto" else compression(packed)
        if kind is None:
            raise SigmaDataError(
                f"{self.name}: is not compressed in a known way. Known are gzip, bz2, xz, zstd, zip and tar."
            )
        unpack: dict[str, Callable[[IO[bytes]], Any]] = {
            "gzip": lambda stream: gzip.GzipFile(fileobj=stream, mode="rb"),  # a temporary file has another mode
            "bz2": bz2.BZ2File,
            "xz": lambda stream: io.BufferedReader(Xz(stream)),
            "zstd": _unpack_zstd,
            "zip": self._zip_member,
            "tar": self._tar_member,
        }
        inside: IO[bytes] = unpack[kind](packed)
        return inside

    def _zip_member(self, packed: IO[bytes]) -> IO[bytes]:
        archive = zipfile.ZipFile(packed)
        return archive.open(self._choose([info.filename for info in archive.infolist() if not info.is_dir()]))

    def _tar_member(self, packed: IO[bytes]) -> IO[bytes]:
        chosen = self.member
        if chosen is None:
            with self.source.open() as stream:
                chosen = self._choose([name for name, _ in _members(stream)])
        names = []
        for name, unpack in _members(packed):
            names.append(name)
            if name == chosen:
                return unpack()
        return io.BytesIO(self._choose(names).encode())  # which raises, as the name is not there

    def _choose(self, files: list[str]) -> str:
        """Return the name of the member to read."""
        if self.member is None and len(files) != 1:
            raise SigmaDataError(
                f"{self.name}: holds {len(files)} files: {_format_names(files)}. Name one as `member`."
            )
        chosen = self.member or files[0]
        if chosen not in files:
            raise SigmaDataError(
                f"{self.source.name}: holds no {chosen!r}.{suggest_name(chosen, files)} It has {_format_names(files)}."
            )
        return chosen


def _members(stream: IO[bytes]) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """Yield the files in a tar archive, in one pass, as it may be compressed itself; each is opened before the next."""
    archive = tarfile.open(fileobj=stream, mode="r|")  # noqa: SIM115 - the caller reads a member of it
    return ((info.name, partial(_extract, archive, info)) for info in archive if info.isreg())


def _extract(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    return archive.extractfile(info) or io.BytesIO()


def _unpack_zstd(packed: IO[bytes]) -> Any:
    import pyarrow as pa  # which takes a tenth of a second, and Python has no zstd before 3.14

    return pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd")


def _format_names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")


def compression(stream: IO[bytes]) -> str | None:
    """Return the compression of a stream by its first bytes, without consuming them; None if it has none."""
    if stream.seekable():
        start = stream.read(TAR_AT + len(TAR))
        stream.seek(-len(start), 1)
    else:
        start = stream.peek(TAR_AT + len(TAR)) if hasattr(stream, "peek") else b""
    kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    return "tar" if kind is None and start[TAR_AT:].startswith(TAR) else kind


@define(eq=False, slots=False)
class Bounded(io.RawIOBase):
    """Read at most ``limit`` bytes from a decompressing stream; errors say at which byte."""

    stream: IO[bytes]
    name: str
    limit: int
    done: int = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer; return the number of bytes."""
        try:
            chunk = self.stream.read(min(len(buffer), self.limit - self.done + 1))
        except DAMAGE as error:
            reason = str(error) or "it ends too soon"
            raise SigmaDataError(
                f"{self.name}: damaged or cut off after {self.done} unpacked bytes ({reason}). Fetch it again."
            ) from None
        self.done += len(chunk)
        if self.done > self.limit:
            raise SigmaDataError(
                f"{self.name}: unpacks to more than {self.limit} bytes. If that is right, raise `limit`."
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)


@define(eq=False, slots=False)
class Xz(io.RawIOBase):
    """Decompress xz with a memory limit, which :class:`lzma.LZMAFile` lacks; files may be concatenated."""

    stream: IO[bytes]
    unpacker: lzma.LZMADecompressor = field(factory=lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY))

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer; return the number of bytes."""
        chunk = b""
        while not chunk:
            if self.unpacker.eof:
                left = self.unpacker.unused_data.lstrip(b"\x00") or self.stream.read(io.DEFAULT_BUFFER_SIZE)
                if not left:
                    return 0
                self.unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
            else:
                left = self.stream.read(io.DEFAULT_BUFFER_SIZE) if self.unpacker.needs_input else b""
                if self.unpacker.needs_input and not left:
                    raise EOFError("it ends too soon")
            chunk = self.unpacker.decompress(left, len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)
