"""Exchange access keys for sessions.

A key is shown once, in the fragment of a link, which browsers do not send. The page exchanges it for a cookie that no
script can read. The permissions of a session, its *scopes*, are held only here.
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
SESSIONS = 1000  # concurrent sessions; the oldest one is dropped
PEERS = 1000  # peers whose wrong keys are counted
TRIES, PER_SECOND = 10, 1.0  # wrong keys answered at once, and the rate at which this allowance recovers


def generate_key() -> str:
    """Return a new key of 256 random bits."""
    return secrets.token_urlsafe(BYTES)


@define(eq=False)
class Keys:
    """The keys of a server by scopes, and its sessions.

    Args:
        steer: The key for reading and steering.
        read: The key for reading only.
        clock: A monotonic clock, in seconds.
    """

    steer: str = field(factory=generate_key)
    read: str = field(factory=generate_key)
    clock: Callable[[], float] = time.monotonic
    _sessions: OrderedDict[str, frozenset[str]] = field(factory=OrderedDict, init=False)
    _tries: OrderedDict[str, tuple[float, float]] = field(factory=OrderedDict, init=False)  # allowance, time by peer

    def scopes(self, key: str) -> frozenset[str]:
        """Return the scopes of a key, none for a wrong one, in time independent of the key."""
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
        """Return the scopes of a session; none for an unknown cookie."""
        return self._sessions.get(cookie, frozenset())

    def leave(self, cookie: str) -> None:
        """Drop a session."""
        self._sessions.pop(cookie, None)

    def may_try(self, peer: str = "") -> bool:
        """Return whether a peer may try another key now; wrong keys are rate-limited per peer."""
        return self._seconds_left(peer) >= 1

    def count_failure(self, peer: str = "") -> None:
        """Count a wrong key of a peer; beyond the limit of peers, the least recent one is dropped."""
        self._tries[peer] = (self._seconds_left(peer) - 1, self.clock())
        self._tries.move_to_end(peer)
        while len(self._tries) > PEERS:
            self._tries.popitem(last=False)

    def _seconds_left(self, peer: str) -> float:
        now = self.clock()
        left, since = self._tries.get(peer, (TRIES, now))
        return min(TRIES, left + (now - since) * PER_SECOND)
