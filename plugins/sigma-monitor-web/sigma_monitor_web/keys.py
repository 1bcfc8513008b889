"""Exchange access keys for sessions.

A key is shown once, in the fragment of a link, which browsers do not send. The page exchanges it for a cookie that no
script can read. The permissions of a session, its *scopes*, are held only here.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict

from attrs import define, field

from sigma_http.attempts import Attempts
from sigma_http.tokens import generate_key

READ, STEER = "read", "steer"
BOTH = frozenset({READ, STEER})
SESSIONS = 1000  # concurrent sessions; the oldest one is dropped


@define(eq=False)
class Keys:
    """The keys of a server by scopes, and its sessions.

    Args:
        steer: The key for reading and steering.
        read: The key for reading only.
        attempts: The wrong keys of each peer.
    """

    steer: str = field(factory=generate_key)
    read: str = field(factory=generate_key)
    attempts: Attempts = field(factory=Attempts)
    _sessions: OrderedDict[str, frozenset[str]] = field(factory=OrderedDict, init=False)

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
