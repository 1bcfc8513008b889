"""The people who may enter by a password: a file with a line for each, which ``sigma password`` writes.

A line is a name, ``read`` or ``steer``, and the hash of a password: ``anna steer scrypt$...``. Empty lines, and those
that begin with ``#``, are skipped.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkstemp

from attrs import define, field, frozen

from sigma_http.passwords import LONGEST, PasswordHash, hash_password, parse_hash
from sigma_kernel.errors import SigmaConfigError

NAME = re.compile(r"\w[\w.@-]{0,63}")
SCOPES = {"read": frozenset({"read"}), "steer": frozenset({"read", "steer"})}
MOST = 1 << 20  # bytes of a file


@frozen
class Account:
    """A person: what they may do, and the hash of their password."""

    name: str
    scope: str
    hash: PasswordHash = field(repr=False)

    @property
    def scopes(self) -> frozenset[str]:
        """Return what the person may do."""
        return SCOPES[self.scope]

    def to_line(self) -> str:
        """Return the line of a file."""
        return f"{self.name} {self.scope} {self.hash.to_text()}"


def check_name(where: str, name: str) -> None:
    """Raise SigmaConfigError for a name that no account can have."""
    if not NAME.fullmatch(name):
        raise SigmaConfigError(
            f"{where}: {name!r:.100} is not an account name. Use letters, digits and . @ - _, 64 at most."
        )


def parse_accounts(text: str, place: str) -> dict[str, Account]:
    """Return the accounts of a text by name; raise SigmaConfigError, with the line, for what is none."""
    accounts = dict[str, Account]()
    for number, line in enumerate(text.splitlines(), 1):
        words, where = line.split(), f"{place}:{number}"
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or words[1] not in SCOPES:
            raise SigmaConfigError(f"{where}: must be a name, read or steer, and a hash. `sigma password` writes it.")
        check_name(where, words[0])
        if words[0] in accounts:
            raise SigmaConfigError(f"{where}: {words[0]} has a line already. Remove one of them.")
        accounts[words[0]] = Account(words[0], words[1], parse_hash(where, words[2]))
    return accounts


def read_accounts(path: Path) -> dict[str, Account]:
    """Return the accounts of a file; raise SigmaConfigError for one that cannot be read, or that others can."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(MOST + 1)
    except OSError as error:
        raise SigmaConfigError(f"{path}: cannot be read: {error.strerror}. `sigma password` writes it.") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SigmaConfigError(f"{path}: other users can open it. Take that away: chmod 600 {path}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise SigmaConfigError(f"{path}: is not UTF-8 text. `sigma password` writes it.") from None
    if len(data) > MOST:
        raise SigmaConfigError(f"{path}: is longer than {MOST:,} bytes. `sigma password` writes it.")
    return parse_accounts(text, str(path))


def write_accounts(path: Path, accounts: Mapping[str, Account]) -> None:
    """Write a file of accounts that its owner alone can open, whole or not at all; raises SigmaConfigError."""
    text = "".join(f"{account.to_line()}\n" for account in accounts.values())
    try:
        descriptor, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # which only its owner can open
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise SigmaConfigError(f"{path}: cannot be written: {error.strerror}. Choose another place.") from None


@define(eq=False)
class Accounts:
    """The accounts of a file, read again when it has changed, so that people come and go while a run trains.

    Args:
        path: The file.
    """

    path: Path
    _held: dict[str, Account] = field(factory=dict, init=False)
    _version: tuple[int, int, int] | None = field(default=None, init=False)
    problem: str = field(default="", init=False)  # why the file cannot be read now
    _nobody: PasswordHash | None = field(default=None, init=False)  # what a wrong name takes as long to check as

    def current(self) -> Mapping[str, Account]:
        """Return the accounts; none while the file is missing or damaged, so that nobody enters by mistake."""
        try:
            status = self.path.stat()
            version = (status.st_mtime_ns, status.st_size, status.st_ino)
            if version != self._version:
                self._held = read_accounts(self.path)
                self._version, self.problem = version, ""
        except (OSError, SigmaConfigError) as error:
            self._complain(f"{self.path}: {error.strerror}." if isinstance(error, OSError) else str(error))
        return self._held

    def _complain(self, problem: str) -> None:
        """Let nobody in, and say why, once."""
        if problem != self.problem:
            logging.getLogger("sigma.web").warning("nobody can log in: %s", problem)
        self._held, self._version, self.problem = {}, None, problem

    def check(self, name: str, password: str) -> Account | None:
        """Return the account of a name with its password; None for a wrong one, after the same time."""
        if len(password) > LONGEST:
            return None
        account = self.current().get(name)
        if self._nobody is None:
            self._nobody = hash_password("nobody has this password")
        right = (self._nobody if account is None else account.hash).matches(password)
        return account if right and account is not None else None
