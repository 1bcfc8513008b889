"""Run a server in the calling thread until it is stopped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any

import uvicorn
from attrs import define, field

from sigma_kernel.errors import SigmaStateError
from sigma_monitor_web.application import Application
from sigma_monitor_web.keys import READ, STEER

FIRST, MANY = 8470, 30  # the ports to try first, in this order
LONGEST = 4 << 20  # bytes of a message
IDLE = 200  # connections without a request; beyond, the oldest are closed
LOOK = 0.1  # seconds between two checks of ``over``


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects the first free port from 8470 on.

    Raises SigmaStateError if there is none.
    """
    error: OSError | None = None
    for tried in [port] if port else [*range(FIRST, FIRST + MANY), 0]:
        try:
            return socket.create_server((host.strip("[]"), tried), family=_family(host), backlog=128)
        except OSError as found:
            error = found
    raise SigmaStateError(f"{host}:{port}: cannot listen: {error}. Choose another host or port.") from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class QuietServer(uvicorn.Server):
    """A uvicorn server that leaves signals to its caller; uvicorn would re-raise them in a task."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle none."""
        yield


@define(eq=False)
class WebServer:
    """Serve an application on a socket, until ``over`` returns True."""

    application: Application
    listener: socket.socket
    host: str
    port: int = field(init=False)

    @port.default
    def _(self) -> int:
        return int(self.listener.getsockname()[1])

    def link(self, scope: str = STEER) -> str:
        """Return the link with the key."""
        key = {READ: self.application.keys.read, STEER: self.application.keys.steer}[scope]
        name = f"[{self.host.strip('[]')}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/#token={key}"

    def run(self, over: Callable[[float], bool]) -> None:
        """Serve; ``over`` waits for the given seconds, and returns whether to stop."""
        asyncio.run(self._serve(over))

    async def _serve(self, over: Callable[[float], bool]) -> None:
        server = QuietServer(
            uvicorn.Config(
                self.application.guard_application(self.host),
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                ws="websockets-sansio",
                ws_max_size=LONGEST,
                ws_max_queue=4,
                h11_max_incomplete_event_size=1 << 14,
                timeout_graceful_shutdown=1,
            )
        )
        serving, seen = asyncio.create_task(server.serve([self.listener])), dict[Any, None]()
        while not serving.done() and not over(0.0):
            close_idle(seen, server.server_state.connections, IDLE)
            await asyncio.wait([serving], timeout=LOOK)
        await self.application.lines.end()
        server.should_exit = True
        await serving


def close_idle(seen: dict[Any, None], connections: set[Any], most: int) -> None:
    """Close the oldest connections without a request if there are many: they occupy places.

    ``seen`` holds the connections, oldest first.
    """
    for peer in seen.keys() - connections:
        del seen[peer]
    seen |= dict.fromkeys(connections - seen.keys())
    idle = [peer for peer in seen if getattr(peer, "cycle", peer) is None and peer.transport is not None]
    for peer in idle[: max(0, len(idle) - most)]:
        peer.transport.close()
