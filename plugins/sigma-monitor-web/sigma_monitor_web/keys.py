"""Keys that let in, and the sessions that they are exchanged for.

A key is shown once, in the fragment of a link, which browsers do not send. The page exchanges it for a cookie that no
script can read. What a session may do, its *scopes*, is held here and nowhere else.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from attrs import define, field

READ, STEER = "read", "steer"
BOTH = frozenset({READ, STEER})
BYTES = 32  # of a key
SESSIONS = 1000  # at a time; the oldest one is forgotten
PEERS = 1000  # whose wrong keys are counted
TRIES, PER_SECOND = 10, 1.0  # wrong keys that are answered at once, and how fast that number recovers


def generate_key() -> str:
    """Return a new key of 256 random bits."""
    return secrets.token_urlsafe(BYTES)


@define(eq=False)
class Keys:
    """The keys of a server by scopes, and its sessions.

    Args:
        steer: The key that lets read and steer.
        read: The key that lets read alone.
        clock: The seconds of a steady clock.
    """

    steer: str = field(factory=generate_key)
    read: str = field(factory=generate_key)
    clock: Callable[[], float] = time.monotonic
    _sessions: OrderedDict[str, frozenset[str]] = field(factory=OrderedDict, init=False)
    _tries: OrderedDict[str, tuple[float, float]] = field(factory=OrderedDict, init=False)  # left, and when, by peer

    def scopes(self, key: str) -> frozenset[str]:
        """Return what a key lets do, nothing for a wrong one; the time that this takes does not depend on the key."""
        given = key.encode()
        steers = secrets.compare_digest(given, self.steer.encode())
        reads = secrets.compare_digest(given, self.read.encode())
        return BOTH if steers else frozenset({READ}) if reads else frozenset()

    def enter(self, key: str) -> tuple[str, frozenset[str]] | None:
        """Return the cookie of a new session and its scopes, or None for a wrong key."""
        scopes = self.scopes(key)
        if not scopes:
            return None
        cookie = generate_key()
        self._sessions[cookie] = scopes
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return cookie, scopes

    def session(self, cookie: str) -> frozenset[str]:
        """Return the scopes of a session; nothing for a cookie that is not known."""
        return self._sessions.get(cookie, frozenset())

    def leave(self, cookie: str) -> None:
        """Forget a session."""
        self._sessions.pop(cookie, None)

    def may_try(self, peer: str = "") -> bool:
        """Return whether a peer may try another key now: wrong ones are limited, for each peer on its own."""
        return self._seconds_left(peer) >= 1

    def count_failure(self, peer: str = "") -> None:
        """Count a wrong key of a peer; of many peers, the one whose last is longest ago is forgotten."""
        self._tries[peer] = (self._seconds_left(peer) - 1, self.clock())
        self._tries.move_to_end(peer)
        while len(self._tries) > PEERS:
            self._tries.popitem(last=False)

    def _seconds_left(self, peer: str) -> float:
        now = self.clock()
        left, since = self._tries.get(peer, (TRIES, now))
        return min(TRIES, left + (now - since) * PER_SECOND)
