"""Serve the protocol over WebSockets: one conversation per connection, bounded in memory and time.

A client that does not read gets no new events until it has received the last ones. After each turn it rests for a
multiple of the thread's work, plus the rests of all other clients, so that clients that never pause do not slow
training, however many. Results of commands are sent immediately.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Protocol

from attrs import define, field
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from sigma_monitor_control.budget import PROCESS, WorkBudget

STALLED = 30.0  # seconds until a client that reads nothing is dropped
WAITING = 16  # pending documents of a client; beyond, reading pauses until they are answered
SOON, OFTEN = 0.01, 0.05  # seconds between polls: with pending answers, and with a subscription
CONNECTIONS = 100  # at a time
LOOK = 1.0  # seconds between two looks at whether a client that sends nothing may still watch
SLOW, OVER, FULL, OUT = 4408, 1001, 4429, 4401  # codes of a close


class Talk(Protocol):
    """The interface of ``Conversation``, with one client."""

    @property
    def waits(self) -> bool:
        """Return whether a request is pending."""

    @property
    def is_subscribed(self) -> bool:
        """Return whether there is a subscription."""

    def notify(self, ready: Callable[[], None]) -> None:
        """Call a function, in any thread, when an answer is ready; answers may also be polled."""

    def receive(self, text: str) -> list[str]:
        """Take a document; return the documents to send at once."""

    def answers(self) -> list[str]:
        """Return the ready answers; raise ConnectionError if no more can come."""

    def events(self, now: float) -> list[str]:
        """Return the events that are due."""

    def last_lines(self) -> list[str]:
        """Return the closing messages."""

    def close(self) -> None:
        """Release the source, as the client has left."""


@define(eq=False)
class WebLine:
    """One connection and its pending documents; it ends once ``is_valid``, of the session, returns False."""

    websocket: WebSocket
    talk: Talk
    budget: WorkBudget = PROCESS
    is_valid: Callable[[], bool] = lambda: True
    _looked: float = field(default=-inf, init=False)  # when the session was looked at
    _inbox: asyncio.Queue[str | None] = field(factory=lambda: asyncio.Queue(WAITING), init=False)
    _called: asyncio.Event = field(factory=asyncio.Event, init=False)  # an answer has become ready
    _over: bool = field(default=False, init=False)

    async def serve(self) -> None:
        """Answer until the client leaves, stops reading, or the run ends."""
        loop = asyncio.get_running_loop()
        self.talk.notify(lambda: self._call(loop))
        reader = asyncio.create_task(self._read())
        try:
            while await self._turn():
                continue
        except WebSocketDisconnect:  # it is gone
            return
        except TimeoutError:
            await self._close(SLOW)
        except ConnectionError:  # its source has ended
            await self._close(OVER)
        finally:
            self.talk.close()
            reader.cancel()

    async def end(self) -> None:
        """Send the last events, as the run is over."""
        self._over = True
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            await asyncio.wait_for(self._say(self.talk.last_lines()), 1.0)
        await self._close(OVER)

    async def _read(self) -> None:
        with suppress(WebSocketDisconnect):
            while True:
                await self._inbox.put(await self._text())
        await self._inbox.put(None)

    async def _text(self) -> str:
        """Return the next message; a binary one becomes text that is refused as not JSON."""
        try:
            return await self.websocket.receive_text()
        except KeyError:
            return "a binary message"

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a turn, from any thread, unless the server has ended."""
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._called.set()
        if self._inbox.empty():  # else there is a turn anyway
            self._inbox.put_nowait("")

    async def _turn(self) -> bool:
        """Answer one document and send new events; return whether to continue."""
        try:
            text = await asyncio.wait_for(self._inbox.get(), self._pause())
        except TimeoutError:
            text = ""
        if text is None or self._over:
            return False
        if not self._may_go_on(text):
            await self._close(OUT)
            return False
        self._called.clear()
        began = time.thread_time()
        lines = [*(self.talk.receive(text) if text else []), *self.talk.answers()]
        lines += self.talk.events(time.monotonic()) if self._inbox.empty() else []
        await self._say(lines)
        await self._rest_from_requests(self.budget.spend_thread(began))
        return True

    def _may_go_on(self, text: str) -> bool:
        """Return whether the session still holds: for each document, and now and then."""
        if not text and time.monotonic() - self._looked < LOOK:
            return True
        self._looked = time.monotonic()
        return self.is_valid()

    async def _rest_from_requests(self, seconds: float) -> None:
        """Pause requests and events; answers that become ready are sent at once."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._called.wait(), left)
            except TimeoutError:
                return
            self._called.clear()
            if self._over:
                return
            await self._say(self.talk.answers())

    def _pause(self) -> float | None:
        return SOON if self.talk.waits else OFTEN if self.talk.is_subscribed else None

    async def _say(self, lines: list[str]) -> None:
        for line in lines:
            await asyncio.wait_for(self.websocket.send_text(line), STALLED)

    async def _close(self, code: int) -> None:
        if self.websocket.application_state is WebSocketState.CONNECTED:
            with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
                await asyncio.wait_for(self.websocket.close(code), 1.0)


@define(eq=False)
class WebLines:
    """All connections of a server."""

    budget: WorkBudget = PROCESS
    seen: bool = field(default=False, init=False)  # whether there was a connection
    left: float = field(default=-inf, init=False)  # when the last one ended, by a monotonic clock
    _open: list[WebLine] = field(factory=list, init=False)

    @property
    def count(self) -> int:
        """Return the number of connections."""
        return len(self._open)

    async def serve(self, websocket: WebSocket, talk: Talk, is_valid: Callable[[], bool] = lambda: True) -> None:
        """Accept and serve a connection while its session holds; beyond the limit, it is closed at once."""
        await websocket.accept()
        if len(self._open) >= CONNECTIONS:
            await websocket.close(FULL, "too many connections")
            return
        self._open.append(line := WebLine(websocket, talk, self.budget, is_valid))
        self.seen = True
        try:
            await line.serve()
        finally:
            self._open.remove(line)
            self.left = time.monotonic()

    async def end(self) -> None:
        """End all connections, as the run is over."""
        await asyncio.gather(*(line.end() for line in [*self._open]))
