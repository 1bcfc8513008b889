"""Exchange access keys and passwords for sessions.

A key is shown once, in the fragment of a link, which browsers do not send; where a dashboard is open to a team, its
people have passwords. The page exchanges either for a cookie that no script can read. The permissions of a session, its
*scopes*, are held only here.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict

from attrs import define, field, frozen

from sigma_http.attempts import Attempts, GrowingDelays
from sigma_http.tokens import generate_key
from sigma_monitor_web.accounts import Account, Accounts

READ, STEER = "read", "steer"
BOTH = frozenset({READ, STEER})
SESSIONS = 1000  # concurrent sessions; the oldest one is dropped


@frozen
class Visitor:
    """What somebody who has come in may do, and the account, if it was by a password."""

    scopes: frozenset[str] = frozenset()
    account: Account | None = None

    @property
    def name(self) -> str:
        """Return the name of the person; empty for whoever has a key."""
        return "" if self.account is None else self.account.name


NOBODY = Visitor()


@define(eq=False)
class Keys:
    """The keys of a server by scopes, its accounts, and its sessions.

    Args:
        steer: The key for reading and steering.
        read: The key for reading only.
        attempts: The wrong keys of each peer.
        accounts: The people who may enter by a password, if there are any.
        delays: The wrong passwords of each peer.
    """

    steer: str = field(factory=generate_key)
    read: str = field(factory=generate_key)
    attempts: Attempts = field(factory=Attempts)
    accounts: Accounts | None = None
    delays: GrowingDelays = field(factory=GrowingDelays)
    _sessions: OrderedDict[str, Visitor] = field(factory=OrderedDict, init=False)

    def scopes(self, key: str) -> frozenset[str]:
        """Return the scopes of a key, none for a wrong one, in time independent of the key."""
        given = key.encode()
        steers = secrets.compare_digest(given, self.steer.encode())
        reads = secrets.compare_digest(given, self.read.encode())
        return BOTH if steers else frozenset({READ}) if reads else frozenset()

    def enter(self, key: str) -> tuple[str, frozenset[str]] | None:
        """Return the cookie of a new session and its scopes, or None for a wrong key."""
        scopes = self.scopes(key)
        return (self._begin(Visitor(scopes)), scopes) if scopes else None

    def log_in(self, name: str, password: str) -> tuple[str, Visitor] | None:
        """Return the cookie of a new session of an account and the session, or None for a wrong name or password."""
        account = None if self.accounts is None else self.accounts.check(name, password)
        if account is None:
            return None
        session = Visitor(account.scopes, account)
        return self._begin(session), session

    def _begin(self, session: Visitor) -> str:
        cookie = generate_key()
        self._sessions[cookie] = session
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return cookie

    def session(self, cookie: str) -> frozenset[str]:
        """Return the scopes of a session; none for an unknown cookie."""
        return self.find(cookie).scopes

    def find(self, cookie: str) -> Visitor:
        """Return a session; one without scopes for an unknown cookie, and for an account that has changed since."""
        session = self._sessions.get(cookie, NOBODY)
        if session.account is None:
            return session
        accounts = {} if self.accounts is None else self.accounts.current()
        if accounts.get(session.account.name) == session.account:
            return session
        self.leave(cookie)
        return NOBODY

    def leave(self, cookie: str) -> None:
        """Drop a session."""
        self._sessions.pop(cookie, None)
