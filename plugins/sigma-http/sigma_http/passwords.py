"""Keep passwords as hashes that are slow to try, and check them.

A hash is one word, ``scrypt$N$r$p$SALT$HASH``, with salt and hash in base64. Its cost is that of the OWASP Password
Storage Cheat Sheet for scrypt with 32 MiB: N = 2**15, r = 8, p = 3, some 0.2 s of one core.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets

from attrs import field, frozen

from sigma_kernel.errors import SigmaConfigError

SHORTEST, LONGEST = 12, 1024  # characters of a password
COST, BLOCK, PARALLEL = 2**15, 8, 3  # N, r and p
SALT, LENGTH = 16, 32  # bytes
MOST_MEMORY = 1 << 28  # bytes of one check
FORM = re.compile(r"scrypt\$(?P<n>\d{1,8})\$(?P<r>\d{1,3})\$(?P<p>\d{1,3})\$(?P<salt>[\w+/=-]++)\$(?P<hash>[\w+/=-]++)")


@frozen
class PasswordHash:
    """A hash, with what it takes to make it of a password."""

    cost: int
    block: int
    parallel: int
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)

    def matches(self, password: str) -> bool:
        """Return whether this is the hash of a password, in time independent of the password."""
        digest = _scrypt(password, self.salt, self.cost, self.block, self.parallel, len(self.digest))
        return secrets.compare_digest(digest, self.digest)

    def to_text(self) -> str:
        """Return the hash as one word."""
        salt, digest = (base64.b64encode(part).decode() for part in (self.salt, self.digest))
        return f"scrypt${self.cost}${self.block}${self.parallel}${salt}${digest}"


def hash_password(password: str) -> PasswordHash:
    """Return a new hash of a password, with a salt of its own; raise SigmaConfigError for a short or long one."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise SigmaConfigError(
            f"password: must have {SHORTEST} to {LONGEST:,} characters (it has {len(password)}). Take a few words."
        )
    salt = secrets.token_bytes(SALT)
    return PasswordHash(COST, BLOCK, PARALLEL, salt, _scrypt(password, salt, COST, BLOCK, PARALLEL, LENGTH))


def parse_hash(where: str, text: str) -> PasswordHash:
    """Return the hash that a word is; raise SigmaConfigError for any other word, and for one that costs too much."""
    if (match := FORM.fullmatch(text)) is None:
        raise SigmaConfigError(f"{where}: is not a hash of a password. `sigma password` writes them.")
    cost, block, parallel = (int(match[name]) for name in ("n", "r", "p"))
    try:
        salt, digest = (base64.b64decode(match[name], validate=True) for name in ("salt", "hash"))
    except binascii.Error:
        raise SigmaConfigError(f"{where}: salt and hash must be base64. `sigma password` writes them.") from None
    power = cost > 1 and cost & (cost - 1) == 0
    if not power or not block or not parallel or 128 * cost * block > MOST_MEMORY or len(digest) < SALT:
        raise SigmaConfigError(f"{where}: no cost of scrypt that is taken here. `sigma password` writes hashes anew.")
    return PasswordHash(cost, block, parallel, salt, digest)


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int, length: int) -> bytes:
    """Return scrypt (RFC 7914) of a password."""
    room = 2 * 128 * block * (cost + parallel)  # bytes; OpenSSL refuses what needs more than it is told
    given = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(given, salt=salt, n=cost, r=block, p=parallel, maxmem=room, dklen=length)
