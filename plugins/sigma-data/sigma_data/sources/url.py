"""Files on the web, downloaded once and cached."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any

from attrs import Attribute, field, frozen

from sigma_kernel import SigmaDataError, Source
from sigma_kernel.settings import ge, gt


def _address(owner: Any, attribute: Attribute[Any], value: str) -> None:
    if not re.match(r"https?://[^/]", value):
        raise SigmaDataError(f"{attribute.name}: {value!r} is not a URL. It must begin with https:// or http://.")


def _addresses(owner: Any, attribute: Attribute[Any], values: tuple[str, ...]) -> None:
    for value in values:
        _address(owner, attribute, value)


def check_hash(owner: Any, attribute: Attribute[Any], value: str) -> None:
    """Raise SigmaDataError unless a setting is a SHA-256."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise SigmaDataError(
            f"sha256: {value!r} is not the hash of a file, 64 hexadecimal digits. `sha256sum` prints it."
        )


@frozen
class Url(Source):
    """Download a file from a URL or its mirrors, check its SHA-256 and cache it, with pooch.

    A file in the cache is used while its hash is right. An interrupted download is resumed; no URL is tried again if
    that cannot help. Raises SigmaDataError with every reason if the file cannot be downloaded.

    Args:
        url: Address of the file.
        sha256: SHA-256 of the file, in 64 hexadecimal digits.
        mirrors: Other addresses of the same file.
        cache: Directory to keep the file in; by default the user's cache directory.
        attempts: Most attempts for each address.
        timeout: Seconds without a byte after which an attempt is given up.
        limit: Most bytes, so that a wrong address cannot fill the disk.
    """

    url: str = field(validator=_address)
    sha256: str = field(validator=check_hash)
    mirrors: tuple[str, ...] = field(default=(), validator=_addresses)
    cache: Path | None = None
    attempts: int = field(default=3, validator=ge(1))
    timeout: float = field(default=30.0, validator=gt(0.0))
    limit: int = field(default=1 << 34, validator=ge(1))  # bytes, so that a wrong address cannot fill the disk
    name: str = field(init=False)

    @name.default
    def _name(self) -> str:
        return self.url

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Return the open file, downloaded if it is not cached."""
        path = self.fetch()
        with self._keeping():
            return path.open("rb")

    def fetch(self) -> Path:
        """Return the path of the file in the cache, downloaded if it is not there."""
        from sigma_data.sources.download import fetch_file  # pooch and requests take long to import

        addresses = (self.url, *self.mirrors)
        with self._keeping():
            return fetch_file(addresses, self.sha256.lower(), self.cache, self.attempts, self.timeout, self.limit)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Turn errors of the cache into a SigmaDataError."""
        try:
            yield
        except OSError as error:
            raise SigmaDataError(f"{self.name}: cannot be kept: {error}. Choose another folder as `cache`.") from None
