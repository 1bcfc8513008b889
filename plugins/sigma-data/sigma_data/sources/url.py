"""A file on the web, fetched once."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from attrs import Attribute, field, frozen

from sigma_kernel import SigmaDataError, Source
from sigma_kernel.settings import ge, gt


def _address(owner: Any, attribute: Attribute[Any], value: str) -> None:
    if not re.match(r"https?://[^/]", value):
        raise SigmaDataError(f"{attribute.name}: {value!r} is no address. It begins with https:// or http://.")


def _addresses(owner: Any, attribute: Attribute[Any], values: tuple[str, ...]) -> None:
    for value in values:
        _address(owner, attribute, value)


def _hash(owner: Any, attribute: Attribute[Any], value: str) -> None:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise SigmaDataError(
            f"sha256: {value!r} is not the hash of a file, 64 hexadecimal digits. `sha256sum` prints it."
        )


@frozen
class Url(Source):
    """Fetch a file from the first of several addresses that has it, and keep it; pooch sees to its hash.

    The file in the folder ``cache`` (by default one of the user's own) is used while its hash is right.  A download
    that was interrupted goes on where it ended; every address is tried up to ``attempts`` times, as far as trying
    again can help.  What cannot be fetched is a SigmaDataError with every reason.  ``timeout`` is in seconds without
    a byte.
    """

    url: str = field(validator=_address)
    sha256: str = field(validator=_hash)
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
        """Return the open file, fetched if it is not here yet."""
        from sigma_data.sources.download import fetched  # pooch and requests take long to import

        try:
            addresses = (self.url, *self.mirrors)
            path = fetched(addresses, self.sha256.lower(), self.cache, self.attempts, self.timeout, self.limit)
            return path.open("rb")
        except OSError as error:
            raise SigmaDataError(f"{self.name}: cannot be kept: {error}. Choose another folder as `cache`.") from None
