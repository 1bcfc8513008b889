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
SESSIONS, OWN = 1000, 200  # concurrent sessions: of all, and of one key or person, whose oldest is dropped


@frozen
class Visitor:
    """What somebody who has come in may do, and the account, if it was by a password."""

    scopes: frozenset[str] = frozenset()
    account: Account | None = None

    @property
    def name(self) -> str:
        """Return the name of the person; empty for a key."""
        return "" if self.account is None else self.account.name

    @property
    def owner(self) -> object:
        """Return what the session was entered by: the name of an account, or the scopes of a key."""
        return self.name or self.scopes


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
    name: str = field(factory=lambda: secrets.token_hex(8), init=False)  # of the server, for its cookie
    _sessions: OrderedDict[str, Visitor] = field(factory=OrderedDict, init=False)

    def scopes(self, key: str) -> frozenset[str]:
        """Return the scopes of a key, none for a wrong one, in time independent of the key."""
        given = key.encode(errors="surrogatepass")
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
        own = [cookie for cookie, other in self._sessions.items() if other.owner == session.owner]
        if len(own) >= OWN:
            self.leave(own[0])
        elif len(self._sessions) >= SESSIONS:
            self._sessions.popitem(last=False)
        cookie = generate_key()
        self._sessions[cookie] = session
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
        if self.accounts is not None and not self.accounts.problem:
            self.leave(cookie)
        return NOBODY

    def leave(self, cookie: str) -> None:
        """Drop a session."""
        self._sessions.pop(cookie, None)
