"""The routes: page, login with a key, socket, metrics, layout, and the panels of plugins."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Protocol, TypeVar

from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from sigma_http.guard import READING, WRITING, Guard
from sigma_http.mounting import BasePath
from sigma_kernel import Panel
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaStateError
from sigma_monitor_web.files import PageFile
from sigma_monitor_web.keys import READ, STEER, Keys, Visitor
from sigma_monitor_web.layout import PageLayout
from sigma_monitor_web.talk import Talk, WebLines

POSTS = {
    "/session": READING | WRITING,
    "/login": WRITING,
    "/leave": WRITING,
    "/layout.json": READING | WRITING,
}
DENIED = JSONResponse({"error": "Open the link that the terminal printed."}, 401)
ASKED = JSONResponse({"error": "Log in with your name and password.", "login": True}, 401)
TOO_MANY = JSONResponse({"error": "too many wrong keys. Wait some seconds."}, 429, {"Retry-After": "10"})
LATER = "too many wrong passwords. Wait {seconds} seconds."
UNREADABLE = "the accounts cannot be read now. Tell the person who runs this server."
BEARER = {"WWW-Authenticate": "Bearer"}

T = TypeVar("T")


class Served(Protocol):
    """The source of a server: one run, or a directory of runs."""

    @property
    def name(self) -> str:
        """Return the name of the run, or of the directory."""

    @property
    def where(self) -> str:
        """Return ``monitor``, inside a run, or ``ui``."""

    def talk(self, run: str, scopes: frozenset[str], who: str) -> Talk:
        """Return a new conversation about a run with a person; raises a SigmaError if no run has that name."""

    def metrics(self) -> tuple[bytes, str]:
        """Return the Prometheus exposition and its media type."""


@define(eq=False)
class Application:
    """The ASGI application of a server: its source, keys and files.

    Args:
        served: The source, a run or a directory.
        keys: The accepted keys.
        files: The page, by relative paths.
        layout: The tabs and panels; the page may write them.
        panels: The panels of plugins by name, each with its module.
        base: The path below which a proxy serves it.
    """

    served: Served
    keys: Keys
    files: Mapping[str, PageFile]
    layout: PageLayout
    panels: Mapping[str, tuple[Panel, PageFile]] = field(factory=dict)
    base: str = ""
    lines: WebLines = field(factory=WebLines, init=False)
    _checking: asyncio.Lock = field(factory=asyncio.Lock, init=False)  # one password at a time: each takes 32 MiB

    def guard_application(self, host: str = "", names: Sequence[str] = ()) -> ASGIApp:
        """Return the ASGI application, behind all checks; ``names`` are others by which clients know the server."""
        routes = [
            Route("/panels/{name}.js", self._panel),
            Route("/layout.json", self._layout),
            Route("/layout.json", self._lay, methods=["POST"]),
            Route("/session", self._session),
            Route("/metrics", self._metrics),
            Route("/session", self._enter, methods=["POST"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/link", self._link),
            Route("/leave", self._leave, methods=["POST"]),
            Route("/", self._index),
            Route("/{path:path}", self._file),
            WebSocketRoute("/ws", self._socket),
        ]
        guarded = Guard(Starlette(routes=routes), POSTS, host, names=names)
        return BasePath(guarded, self.base) if self.base else guarded

    # -- sessions ------------------------------------------------------------------------------------------------------
    @property
    def cookie(self) -> str:
        """Return the name of the cookie: one per server, as cookies ignore ports."""
        return f"sigma-{self.keys.name}"

    def _visitor(self, connection: HTTPConnection) -> Visitor:
        return self.keys.find(connection.cookies.get(self.cookie, ""))

    def _scopes(self, connection: HTTPConnection) -> frozenset[str]:
        return self._visitor(connection).scopes

    @property
    def _refusal(self) -> Response:
        """Return the answer to a client without a session."""
        return DENIED if self.keys.accounts is None else ASKED

    def _introduction(self, session: Visitor) -> dict[str, Any]:
        panels = [{"name": name, "title": panel.title, "view": panel.view} for name, (panel, _) in self.panels.items()]
        about = {"run": self.served.name, "where": self.served.where, "process": os.getpid()}
        person = {"person": session.name} if session.name else {}
        return {"scopes": sorted(session.scopes), **about, **person, "panels": panels}

    async def _session(self, request: Request) -> Response:
        session = self._visitor(request)
        return JSONResponse(self._introduction(session), headers=PRIVATE) if session.scopes else self._refusal

    def _welcome(self, request: Request, cookie: str, session: Visitor) -> Response:
        """Return the introduction, with the cookie of a new session."""
        answer = JSONResponse(self._introduction(session), headers=PRIVATE)
        secure = request.url.scheme == "https"
        path = f"{self.base}/"
        answer.set_cookie(self.cookie, cookie, httponly=True, samesite="strict", path=path, secure=secure)
        return answer

    async def _enter(self, request: Request) -> Response:
        """Exchange a key for a cookie."""
        peer = peer_of(request)
        try:
            key = (await request.json())["token"]
        except (ValueError, KeyError, TypeError, RecursionError):
            key = None
        if not isinstance(key, str):
            return JSONResponse({"error": "the body must be an object with a token."}, 400)
        if not self.keys.attempts.may_try(peer):
            return TOO_MANY
        entered = self.keys.enter(key)
        if entered is None:
            self.keys.attempts.count_failure(peer)
            return self._refusal
        return self._welcome(request, entered[0], Visitor(entered[1]))

    async def _log_in(self, request: Request) -> Response:
        """Exchange a name and a password for a cookie; wrong ones delay the next try of a peer, ever longer."""
        if self.keys.accounts is None:
            return JSONResponse({"error": "there are no accounts here. Open the link that the terminal printed."}, 404)
        try:
            body = await request.json()
            name, password = body["name"], body["password"]
        except (ValueError, KeyError, TypeError, RecursionError):
            name = password = None
        if not isinstance(name, str) or not isinstance(password, str):
            return JSONResponse({"error": "the body must be an object with a name and a password."}, 400)
        async with self._checking:
            return await self._check_password(request, name, password)

    async def _check_password(self, request: Request, name: str, password: str) -> Response:
        peer, delays = peer_of(request), self.keys.delays
        if (seconds := math.ceil(delays.wait(peer))) > 0:
            return JSONResponse({"error": LATER.format(seconds=seconds)}, 429, {"Retry-After": str(seconds)})
        entered = await asyncio.to_thread(self.keys.log_in, name, password)
        if entered is None and self.keys.accounts is not None and self.keys.accounts.problem:
            return JSONResponse({"error": UNREADABLE}, 503)
        if entered is None:
            delays.count_failure(peer, name)
            return JSONResponse({"error": "the name or the password is wrong.", "login": True}, 401)
        delays.forget(peer, name)
        return self._welcome(request, *entered)

    async def _link(self, request: Request) -> Response:
        """Return the key that only reads, to a session that may steer."""
        if not (scopes := self._scopes(request)):
            return self._refusal
        if STEER not in scopes:
            return JSONResponse({"error": "this link may only read."}, 403)
        return JSONResponse({"token": self.keys.read}, headers=PRIVATE)

    async def _leave(self, request: Request) -> Response:
        self.keys.leave(request.cookies.get(self.cookie, ""))
        answer = JSONResponse({})
        answer.delete_cookie(self.cookie, httponly=True, samesite="strict", path=f"{self.base}/")
        return answer

    # -- what is served ------------------------------------------------------------------------------------------------
    async def _index(self, request: Request) -> Response:
        return send_file(request, self.files.get("index.html"))

    async def _file(self, request: Request) -> Response:
        return send_file(request, self.files.get(request.path_params["path"]))

    async def _panel(self, request: Request) -> Response:
        _, script = self.panels.get(request.path_params["name"], (None, None))
        return send_file(request, script) if self._scopes(request) else self._refusal

    async def _layout(self, request: Request) -> Response:
        return send_file(request, self.layout.shown) if self._scopes(request) else self._refusal

    async def _lay(self, request: Request) -> Response:
        """Write the layout to its file, if the session may steer."""
        if not (scopes := self._scopes(request)):
            return self._refusal
        if STEER not in scopes:
            return JSONResponse({"error": "this link may only read."}, 403)
        try:
            return JSONResponse({"saved": str(self.layout.save(await request.json()))}, headers=PRIVATE)
        except (ValueError, RecursionError) as error:
            return JSONResponse({"error": f"layout: is not JSON: {error}"}, 400)
        except SigmaConfigError as error:
            return JSONResponse({"error": str(error)}, 400)
        except SigmaStateError as error:
            return JSONResponse({"error": str(error)}, 409)

    async def _metrics(self, request: Request) -> Response:
        """Answer Prometheus, which sends a key in place of a session cookie."""
        (scheme, _, key), peer = request.headers.get("authorization", "").partition(" "), peer_of(request)
        if not self.keys.attempts.may_try(peer):
            return TOO_MANY
        if scheme.lower() != "bearer" or READ not in self.keys.scopes(key.strip()):
            if key:
                self.keys.attempts.count_failure(peer)
            return JSONResponse({"error": "send a key of the dashboard as bearer token."}, 401, BEARER)
        (body, type_), worked = await asyncio.to_thread(_measure_time, self.served.metrics)
        await asyncio.sleep(self.lines.budget.spend(worked))  # sockets share it
        return Response(body, media_type=type_, headers=PRIVATE)

    async def _socket(self, websocket: WebSocket) -> None:
        cookie = websocket.cookies.get(self.cookie, "")
        session = self.keys.find(cookie)
        if not session.scopes:
            await websocket.close()  # before it was accepted: the handshake is refused
            return
        try:
            run = websocket.query_params.get("run", "")
            talk = await asyncio.to_thread(self.served.talk, run, session.scopes, session.name)
        except SigmaError:  # there is no such run
            await websocket.close()
            return
        await self.lines.serve(websocket, talk, lambda: self.keys.find(cookie) is session)


PRIVATE = {"Cache-Control": "no-store"}


def peer_of(request: Request) -> str:
    """Return who is counted as one for wrong keys and passwords: an address, or the network of one of IPv6."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.version == 6 and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False)) if address.version == 6 and not address.is_loopback else host


def _measure_time(make: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a function, and its seconds of work."""
    began = time.thread_time()
    return make(), time.thread_time() - began


def send_file(request: Request, file: PageFile | None) -> Response:
    """Return a file, 304 if the browser has it, or 404."""
    if file is None:
        return JSONResponse({"error": "there is no such file."}, 404)
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.type, headers=headers)
