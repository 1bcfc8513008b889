"""Download files: mirrors, retries and resumed downloads."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pooch  # type: ignore[import-untyped]
import requests
from attrs import frozen

from sigma_kernel import SigmaDataError

CHUNK = 1 << 16  # bytes written at once
OFFLINE = "SIGMA_OFFLINE"  # if set, nothing is downloaded
PAUSE = 1.0  # seconds before the second attempt; the pause grows by as much for each later one
FINAL = {400, 401, 403, 404, 405, 410, 451}  # HTTP statuses that are not retried


class NewMessages(logging.Filter):
    """Pass each message once, so that an address that is tried again is not announced again."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = set[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message is new."""
        text = record.getMessage()
        new = text not in self._passed
        self._passed.add(text)
        return new


pooch.get_logger().addFilter(NewMessages())


class Refused(Exception):
    """An address will not serve the file; retrying is pointless."""


def fetch_file(
    addresses: Sequence[str], sha256: str, cache: Path | None, attempts: int, timeout: float, limit: int
) -> Path:
    """Return the path of the file with this hash, downloaded from the first address that has it if it is not cached."""
    folder = cache or Path(pooch.os_cache("sigma"))
    resume = Resumed(folder / f"{sha256}.part", timeout, limit)
    name = re.sub(r"[^\w.-]", "_", addresses[0].partition("?")[0].rstrip("/").rpartition("/")[2])
    path = folder / f"{sha256[:16]}-{name}"
    reasons: dict[str, str] = {}
    refused: set[str] = set()
    for attempt in range(attempts):
        for address in (address for address in addresses if address not in refused):
            try:
                return _fetch_from(address, sha256, path, resume)
            except (Refused, ValueError) as error:  # pooch raises ValueError for a wrong hash
                refused.add(address)
                reasons[address] = str(error)
            except requests.RequestException as error:
                reasons[address] = _short(error)
        if refused >= set(addresses):
            break
        if attempt + 1 < attempts:
            time.sleep(PAUSE * (attempt + 1))
    listed = "".join(f"\n  {address}: {reason}" for address, reason in reasons.items())
    raise SigmaDataError(f"{addresses[0]}: cannot be fetched.{listed}\nCheck the connection, the address and the hash.")


def _fetch_from(address: str, sha256: str, path: Path, resume: Resumed) -> Path:
    if os.environ.get(OFFLINE) and not path.exists():
        raise Refused(f"{OFFLINE} is set, and the file is not here yet")
    begun = resume.part.exists()
    get = partial(pooch.retrieve, address, sha256, fname=path.name, path=path.parent, downloader=resume)
    try:
        return Path(get())
    except ValueError:
        if not begun:
            raise
        return Path(get())  # the partial download may have been wrong: start again from the beginning


def _short(error: requests.RequestException) -> str:
    return str(error.args[0] if error.args else error)[:200]


@frozen
class Resumed:
    """Resumable downloader for pooch.  ``part`` keeps the bytes of an interrupted download.

    A process claims the part by renaming it, so that no two processes write to the same file.
    """

    part: Path
    timeout: float
    limit: int

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download a URL to a file; raise Refused or a RequestException if that fails."""
        with suppress(FileNotFoundError):
            os.replace(self.part, output_file)
        try:
            self._continue(url, Path(output_file))
        except Refused:
            raise
        except BaseException:
            os.replace(output_file, self.part)
            raise

    def _continue(self, url: str, path: Path) -> None:
        start = path.stat().st_size
        wanted = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with requests.get(url, headers=wanted, stream=True, timeout=self.timeout) as answer:
            if answer.status_code == requests.codes.requested_range_not_satisfiable:
                return  # the part was complete already; the hash is checked later
            if answer.status_code in FINAL:
                raise Refused(f"the server answers {answer.status_code} {answer.reason}")
            answer.raise_for_status()
            resumed = answer.status_code == requests.codes.partial_content
            self._write(answer, path, start if resumed else 0)

    def _write(self, answer: requests.Response, path: Path, start: int) -> None:
        size = start
        with path.open("r+b") as file:
            file.truncate(start)
            file.seek(start)
            for chunk in answer.iter_content(CHUNK):
                size += len(chunk)
                if size > self.limit:
                    raise Refused(f"the file is larger than {self.limit} bytes; if that is right, raise `limit`")
                file.write(chunk)
