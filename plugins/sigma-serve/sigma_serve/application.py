"""The routes: predict, health, metrics, the OpenAPI document, and a page to try it."""

from __future__ import annotations

import asyncio
import base64
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sigma_http.attempts import Attempts
from sigma_http.guard import HEADERS, WRITING, BodyRules, Guard
from sigma_kernel.errors import SigmaError
from sigma_serve.batching import Batcher
from sigma_serve.bodies import CSV, JSON, BodyError, read_body
from sigma_serve.measures import Measures
from sigma_serve.model import ServedNetwork, write_csv, write_json
from sigma_serve.openapi import describe_api

PAGE = Path(__file__).with_name("page.html")
AT_ONCE = 1 << 16  # bytes of a body that is read beside other requests
BEARER = {"WWW-Authenticate": "Bearer"}
Endpoint = Callable[[Request], Awaitable[Response]]


def page_headers(page: str) -> dict[str, str]:
    """Return the headers of responses; scripts and styles are those of the page alone, by their hashes."""
    script, style = (page.split(f"<{tag}>")[1].split(f"</{tag}>")[0] for tag in ("script", "style"))
    hashes = [base64.b64encode(sha256(text.encode()).digest()).decode() for text in (script, style)]
    policy = (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    return {**HEADERS, "Content-Security-Policy": policy}


@define(eq=False)
class PredictionApplication:
    """The ASGI application that serves a network.

    Args:
        served: The network.
        batcher: Predicts.
        token: The bearer token of requests; none if it is empty.
        most_rows: Rows of a request.
        most_bytes: Bytes of a request.
    """

    served: ServedNetwork
    batcher: Batcher
    token: str = ""
    most_rows: int = 10_000
    most_bytes: int = 8 << 20
    measures: Measures = field(factory=Measures, init=False)
    attempts: Attempts = field(factory=Attempts, init=False)
    _page: str = field(factory=partial(PAGE.read_text, "utf-8"), init=False)

    def guard_application(self, host: str = "", names: Sequence[str] = ()) -> ASGIApp:
        """Return the ASGI application, behind all checks."""
        routes = [
            Route("/predict", self._lock(self._predict), methods=["POST"]),
            Route("/metrics", self._lock(self._metrics)),
            Route("/openapi.json", self._lock(self._openapi)),
            Route("/health", self._health),
            Route("/", self._index),
        ]
        rules = BodyRules(
            {JSON: f"JSON ({JSON})", CSV: f"a table ({CSV})"},
            self.most_bytes,
            page_only=False,
            remedy="Use the address that the terminal printed, or add this one with --name.",
        )
        missing = {404: _say_missing}
        application = Starlette(routes=routes, exception_handlers=missing)
        return Guard(application, {"/predict": WRITING}, host, rules, page_headers(self._page), names)

    # -- the lock ------------------------------------------------------------------------------------------------------
    def _lock(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint that answers only requests with the token."""

        async def answer_locked(request: Request) -> Response:
            return self._refusal(request) or await endpoint(request)

        return answer_locked

    def _refusal(self, request: Request) -> Response | None:
        if not self.token:
            return None
        peer = request.client.host if request.client else ""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        given = key.strip().encode() if scheme.lower() == "bearer" else b""
        if given and not self.attempts.may_try(peer):
            return JSONResponse({"error": "too many wrong tokens. Wait some seconds."}, 429, {"Retry-After": "10"})
        if secrets.compare_digest(given, self.token.encode()):
            return None
        if given:
            self.attempts.count_failure(peer)
        return JSONResponse({"error": "send the token of the server as bearer token."}, 401, BEARER)

    # -- predictions ---------------------------------------------------------------------------------------------------
    async def _predict(self, request: Request) -> Response:
        began, rows = time.perf_counter(), 0
        try:
            answer, rows = await self._answer(request)
        except BodyError as error:
            answer = JSONResponse({"error": error.why}, error.status)
        self.measures.count(answer.status_code, time.perf_counter() - began, rows)
        return answer

    async def _answer(self, request: Request) -> tuple[Response, int]:
        """Return the response, and the number of rows that were predicted."""
        top, kind = _top(request), request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise BodyError(415, "the body is compressed. Send it as it is.")
        body, trained = await self._body(request), self.served.trained
        if len(body) <= AT_ONCE and kind == JSON:
            sections = read_body(trained, kind, body, self.most_rows)
        else:
            sections = await asyncio.to_thread(read_body, trained, kind, body, self.most_rows)
        try:
            outputs = await asyncio.wrap_future(self.batcher.submit(sections))
        except SigmaError as error:
            raise BodyError(422, str(error).removeprefix("data: ").removeprefix("predict: ")) from error
        predictions = self.served.describe(outputs, top)
        if _wants_csv(request.headers.get("accept", "")):
            return Response(write_csv(predictions), media_type=CSV), len(predictions.places)
        return Response(write_json(predictions), media_type=JSON), len(predictions.places)

    async def _body(self, request: Request) -> bytes:
        try:
            return await request.body()
        except ClientDisconnect:  # the guard stops reading a body that is larger than it said
            raise BodyError(413, f"the body is larger than {self.most_bytes:,} bytes.") from None

    # -- what it is ----------------------------------------------------------------------------------------------------
    async def _health(self, request: Request) -> Response:
        about = {"run": self.served.name, "checkpoint": self.served.trained.path.name, "locked": bool(self.token)}
        return JSONResponse({"status": "ok", **about, "most_rows": self.most_rows, "most_bytes": self.most_bytes})

    async def _metrics(self, request: Request) -> Response:
        body, kind = self.measures.expose()
        return Response(body, media_type=kind)

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(describe_api(self.served.trained, self.served.name, self.most_rows, bool(self.token)))

    async def _index(self, request: Request) -> Response:
        return HTMLResponse(self._page)


async def _say_missing(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "there is no such path. GET / says which there are."}, 404)


def _top(request: Request) -> int:
    given = request.query_params.get("top", "1")
    if not re.fullmatch("[1-9][0-9]{0,5}", given):
        raise BodyError(422, f"top: must be a whole number from 1 on (got {given[:20]!r}).")
    return int(given)


def _wants_csv(accept: str) -> bool:
    """Return whether a client prefers CSV to JSON."""
    weights: dict[str, float] = {}
    for part in accept.lower().split(","):
        kind, *settings = [word.strip() for word in part.split(";")]
        given = next((word[2:] for word in settings if re.fullmatch(r"q=[01](\.[0-9]{0,3})?", word)), "1")
        weights[kind] = float(given)
    general = weights.get("*/*", weights.get("application/*", 0.0))
    return weights.get(CSV, 0.0) > weights.get(JSON, general)
