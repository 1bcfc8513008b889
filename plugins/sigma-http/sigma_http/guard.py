"""Check every request before it reaches a route.

Refused are a foreign host name (DNS rebinding), a method that the path lacks, a request of another site (by its Origin,
or without our own header), and a body that is too large. Responses carry a content security policy: the page runs only
the files shipped with it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import field, frozen
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
OWN_HEADER = "x-sigma"  # no form or link of another site can send it
MOST_BODY = 64 * 1024  # bytes of a request
LONGEST_BODY = 30.0  # seconds until it has come
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src data:; font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
READING, WRITING = frozenset({"GET", "HEAD"}), frozenset({"POST"})


@frozen
class Refusal:
    """The reason for refusing a request, and its HTTP status."""

    status: int
    why: str


@frozen
class BodyRules:
    """What a server asks of requests that have a body.

    Args:
        types: The media types that it reads, each with its name in an error.
        most: Bytes of a body.
        page_only: Whether only the server's own page may send one; else any program may, but no page of another site.
        remedy: What to do about a wrong name of the server.
    """

    types: Mapping[str, str] = field(factory=lambda: {"application/json": "JSON"})
    most: int = MOST_BODY
    page_only: bool = True
    remedy: str = "Open the link that the terminal printed."


@frozen
class Guard:
    """Check every request, and add the policy to every response.

    Args:
        app: The application behind the checks.
        posts: The allowed methods by path; by default GET and HEAD.
        host: The configured host name of the server, besides those of the loopback interface.
        rules: What is asked of a request that has a body.
        headers: Headers of every response.
        names: Other names by which clients know the server.
    """

    app: ASGIApp
    posts: Mapping[str, frozenset[str]]
    host: str = ""
    rules: BodyRules = field(factory=BodyRules)
    headers: Mapping[str, str] = field(factory=lambda: HEADERS)
    names: Sequence[str] = ()
    _hosts: frozenset[str] = field(init=False)

    @_hosts.default
    def _(self) -> frozenset[str]:
        names = (name.lower().strip("[]") for name in (self.host, *self.names) if name)
        return frozenset((*LOOPBACK, *(f"[{name}]" if ":" in name else name for name in names)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send, refusal)
        elif refusal is not None:
            await JSONResponse({"error": refusal.why}, refusal.status)(scope, receive, _add_headers(send, self.headers))
        else:
            with suppress(ClientDisconnect):  # the client disconnected during its request
                await self.app(scope, _limit_body(receive, self.rules.most), _add_headers(send, self.headers))

    async def _websocket(self, scope: Scope, receive: Receive, send: Send, refusal: Refusal | None) -> None:
        if refusal is None:
            await self.app(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": refusal.why})

    # -- the checks ----------------------------------------------------------------------------------------------------
    def refusal(self, scope: Scope) -> Refusal | None:
        """Return the reason for refusing a request, or None."""
        headers, websocket = Headers(scope=scope), scope["type"] == "websocket"
        hosts = headers.getlist("host")
        if len(hosts) != 1 or name_of(hosts[0]) not in self._hosts:
            return Refusal(421, f"this server is not known by that name. {self.rules.remedy}")
        method = "GET" if websocket else scope["method"]
        allowed = self.posts.get(scope["path"], READING)
        if method not in allowed:
            return Refusal(405, f"{method} is not allowed here. Use {' or '.join(sorted(allowed))}.")
        if websocket or method in WRITING:
            return _foreign(headers, hosts[0], scope, self.rules) or _unfit(headers, websocket, self.rules)
        return None


def name_of(host: str) -> str:
    """Return the name in a Host header, without its port; empty if it is not a name."""
    match = re.fullmatch(r"(?P<name>\[[0-9a-f:.]++\]|[a-z0-9._-]++)(:[0-9]{1,5})?", host.lower())
    return match["name"] if match else ""


def _foreign(headers: Headers, host: str, scope: Scope, rules: BodyRules) -> Refusal | None:
    """Return the reason for refusing a request that can change state, or that another site's page has sent.

    A page that came without encryption is another site for a server that encrypts: somebody may have changed it.
    """
    origins, websocket = headers.getlist("origin"), scope["type"] == "websocket"
    schemes = ["https"] if scope.get("scheme") in ("https", "wss") else ["http", "https"]
    own = [x.lower() for x in origins] in [[f"{scheme}://{host.lower()}"] for scheme in schemes]
    if not own and (origins or rules.page_only):
        return Refusal(403, "this request comes from another site.")
    if not websocket and rules.page_only and headers.get(OWN_HEADER) != "1":
        return Refusal(403, "this request was not sent by the dashboard.")
    return None


def _unfit(headers: Headers, websocket: bool, rules: BodyRules) -> Refusal | None:
    """Return the reason for refusing a body by its headers."""
    if not websocket and headers.get("content-type", "").partition(";")[0].strip().lower() not in rules.types:
        names = " or ".join(rules.types.values())
        return Refusal(415, f"the body must be {names}.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or int(length[:20]) > rules.most:
        return Refusal(413, f"the body is larger than {rules.most:,} bytes.")
    return None


def _limit_body(receive: Receive, most: int) -> Receive:
    """Return a function that receives a body up to the limits of size and time, and then reports a disconnect."""
    taken, is_whole, end = 0, False, time.monotonic() + LONGEST_BODY

    async def receive_limited() -> Message:
        nonlocal taken, is_whole
        try:
            message = await asyncio.wait_for(receive(), None if is_whole else max(0.0, end - time.monotonic()))
        except TimeoutError:
            return {"type": "http.disconnect"}
        taken, is_whole = taken + len(message.get("body", b"")), not message.get("more_body", False)
        return {"type": "http.disconnect"} if taken > most else message

    return receive_limited


def _add_headers(send: Send, more: Mapping[str, str]) -> Send:
    """Return a function that sends responses with the policy."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Any = MutableHeaders(scope=message)
            for name, value in more.items():
                headers[name] = value
        await send(message)

    return send_with_headers
