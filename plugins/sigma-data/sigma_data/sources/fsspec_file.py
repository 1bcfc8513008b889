"""Files at any place that fsspec knows: object stores, archives on the web, repositories, memory."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from typing import IO, Any

from attrs import Attribute, field, frozen

from sigma_data.bounds import CHUNK
from sigma_data.sources.url import check_hash
from sigma_kernel import SigmaConfigError, SigmaDataError, SigmaError, SigmaPluginError, Source
from sigma_kernel.settings import ge, optional

CONTENT = re.compile(r"etag|md5|crc|checksum|digest|sha|generation|version|modif|mtime|updated|created|date_time", re.I)
IN_MEMORY = 1 << 24  # bytes of a file whose hash is checked; larger ones are kept in a temporary file


def _address(owner: Any, attribute: Attribute[Any], value: str) -> None:
    if not re.match(r"[a-z][a-z0-9+.-]*+://", value):
        raise SigmaConfigError(f"{attribute.name}: {value!r} names no place. Give it as s3://, gs://, memory:// ...")


@frozen
class FsspecFile(Source):
    """Read a file from a place that fsspec knows, such as ``s3://bucket/houses.csv`` or ``memory://houses.csv``.

    Needs fsspec, which ``sigma-data[places]`` installs, and the library of the place, such as ``s3fs`` or ``gcsfs``.
    Credentials are best left to that library (environment, configuration files): settings are saved with a run.
    Raises SigmaDataError, with the address, for a file that is missing or cannot be read, or has another hash.

    Args:
        address: Address of the file.
        options: Options of the file system, such as ``{ anon = true }`` for public buckets.
        sha256: SHA-256 of the file; if given, it is checked before anything of the file is used.
        limit: Most bytes of a file whose hash is checked.
    """

    address: str = field(validator=_address)
    options: Mapping[str, Any] = field(factory=dict)
    sha256: str | None = field(default=None, validator=optional(check_hash))
    limit: int = field(default=1 << 34, validator=ge(1))
    name: str = field(init=False)

    @name.default
    def _name(self) -> str:
        return self.address

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Return the open file."""
        with ExitStack() as stack:
            with self._reading(Exception):  # each file system raises exceptions of its own
                system, path = self._file_system()
                stream = stack.enter_context(system.open(path, "rb"))
                if self.sha256 is not None:
                    copy: Any = stack.enter_context(tempfile.SpooledTemporaryFile(IN_MEMORY))
                    self._copy(stream, copy)
                    stream = copy
            with self._reading(OSError):
                yield stream

    def peek(self, size: int) -> bytes:
        """Return the first bytes of the file; its hash is not checked."""
        with self.look() as stream:
            return bytes(stream.read(size))

    @contextmanager
    def look(self) -> Iterator[IO[bytes]]:
        """Return the open file, of which few bytes are to be read; its hash is not checked."""
        with self._reading(Exception):
            system, path = self._file_system()
            with system.open(path, "rb") as stream:
                yield stream

    def stamp(self) -> Any:
        """Return what differs after a change of the file, such as its ETag; None if the place does not tell."""
        if identity := self.identify():
            return identity
        with suppress(Exception):
            system, path = self._file_system()
            return None if _is_archive(system) else system.ukey(path)  # that of an archive differs each time
        return None

    def identify(self) -> list[list[str]] | None:
        """Return what tells the content from another one: the hash, or the size and what the place says of it.

        That is an ETag, a version, a hash or a time; None if the place says nothing of the kind, or has no such file.
        Of a file in an archive, it is also what the place of the archive says of that.
        """
        if self.sha256 is not None:
            return [["sha256", self.sha256.lower()]]
        with suppress(Exception):
            return _identify(*self._file_system())
        return None

    @property
    def size(self) -> int:
        """Return the bytes of the file; 0 if the place does not tell."""
        with suppress(Exception):
            system, path = self._file_system()
            return int(system.info(path)["size"])
        return 0

    def _copy(self, stream: IO[bytes], copy: Any) -> None:
        """Copy a file, and check its hash."""
        digest, size = sha256(), 0
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
            if size > self.limit:
                raise SigmaDataError(f"{self.name}: has more than {self.limit} bytes. If that is right, raise `limit`.")
            copy.write(chunk)
        if digest.hexdigest() != str(self.sha256).lower():
            raise SigmaDataError(
                f"{self.name}: has the SHA-256 {digest.hexdigest()}, not {self.sha256}. The file is another one, or "
                "damaged: check the address and the hash."
            )
        copy.seek(0)

    def _file_system(self) -> tuple[Any, str]:
        try:
            core = import_module("fsspec.core")
        except ImportError as error:
            raise SigmaPluginError(
                'fsspec is not installed. Install it: python -m pip install "sigma-data[places]"'
            ) from error
        try:
            system, path = core.url_to_fs(self.address, **self.options)
        except ImportError as error:
            raise SigmaPluginError(f"{self.name}: {error}.") from error
        return system, path

    @contextmanager
    def _reading(self, *kinds: type[Exception]) -> Iterator[None]:
        """Turn exceptions of some kinds into a SigmaDataError."""
        try:
            yield
        except SigmaError:
            raise
        except FileNotFoundError:
            raise SigmaDataError(f"{self.name}: there is no such file. Check the address.") from None
        except kinds as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
            raise SigmaDataError(f"{self.name}: cannot be read: {reason}. Check address and `options`.") from error


def _identify(system: Any, path: str) -> list[list[str]] | None:
    """Return what a file system says of the content of a file, and of the archives that it is in; None if not enough.

    The member of a tar has a time alone, which archives of reproducible builds do not tell.
    """
    system.invalidate_cache()  # of folders that were listed before
    details = {name: value for name, value in system.info(path).items() if value not in (None, "")}
    about = sorted([name, str(value)] for name, value in details.items() if CONTENT.search(name))
    if not about:
        return None
    about.append(["size", str(details.get("size"))])
    if not _is_archive(system):
        return about
    outer = _identify(*_find_archive(system))
    return about + (outer or []) if outer or "CRC" in details else None


def _is_archive(system: Any) -> bool:
    return isinstance(system, import_module("fsspec.archive").AbstractArchiveFileSystem)


def _find_archive(system: Any) -> tuple[Any, str]:
    """Return the file system and the path of an archive whose members are a file system."""
    given = system.storage_options
    options = {"protocol": given.get("target_protocol"), **(given.get("target_options") or {})}
    outer, path = import_module("fsspec.core").url_to_fs(given["fo"], **options)
    return outer, path
