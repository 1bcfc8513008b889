"""Run a server in the calling thread until it is stopped."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from sigma_http.listening import ListeningSocket, SilentConnections
from sigma_kernel.errors import SigmaStateError

if sys.platform == "win32":
    from asyncio import ProactorEventLoop as Loop
else:
    from asyncio import SelectorEventLoop as Loop

FIRST, MANY = 8470, 30  # the ports to try first, in this order
IDLE = 200  # connections without a request; beyond, the oldest are closed
LOOK = 0.1  # seconds between two checks of ``over``
HANDSHAKE = 10.0  # seconds of a TLS handshake; asyncio would wait for a silent client for a minute


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
            plain = socket.create_server((host.strip("[]"), tried), family=_family(host), backlog=128)
        except OSError as found:
            error = found
        else:  # asyncio sends answers at once, TCP_NODELAY, only by sockets that name their protocol
            return ListeningSocket(plain.family, plain.type, socket.IPPROTO_TCP, fileno=plain.detach())
    raise SigmaStateError(f"{host}:{port}: cannot listen: {error}. Choose another host or port.") from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def address(host: str, port: int, scheme: str = "http") -> str:
    """Return the address of a server, as a browser takes it."""
    return f"{scheme}://[{host.strip('[]')}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"


class QuietServer(uvicorn.Server):
    """A uvicorn server that leaves signals to its caller; uvicorn would re-raise them in a task."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle none."""
        yield


class ServingLoop(Loop):
    """An event loop whose servers end a TLS handshake that takes longer than ``HANDSHAKE`` seconds."""

    async def create_server(self, *arguments: Any, **more: Any) -> asyncio.Server:
        """Create a server as any loop does; uvicorn has no setting for this limit."""
        limit = {"ssl_handshake_timeout": HANDSHAKE} if more.get("ssl") is not None else {}
        create: Any = super().create_server
        server: asyncio.Server = await create(*arguments, **limit, **more)
        return server


def run_server(serving: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine of a server, such as :func:`serve_until`, in the calling thread."""
    with asyncio.Runner(loop_factory=ServingLoop) as runner:
        runner.run(serving)


async def serve_until(
    application: ASGIApp,
    listener: socket.socket,
    over: Callable[[float], bool],
    end: Callable[[], Awaitable[None]],
    **more: Any,
) -> None:
    """Serve an application on a socket.

    ``over`` waits for the given seconds, and returns whether to stop; then ``end`` is awaited, and the requests that
    have begun are answered.  ``more`` are settings of uvicorn.  A socket of :func:`listening` limits the connections
    on which nothing is said.
    """
    settings: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "lifespan": "off",
        "server_header": False,
        "proxy_headers": False,  # else any program of this machine could choose its address
        "h11_max_incomplete_event_size": 1 << 14,
        "timeout_graceful_shutdown": 1,
    }
    server = QuietServer(uvicorn.Config(application, **settings | more))
    connections, seen = server.server_state.connections, dict[Any, None]()
    silent = SilentConnections(connections)
    if isinstance(listener, ListeningSocket):
        listener.silent = silent
    serving = asyncio.create_task(server.serve([listener]))
    while not serving.done() and not over(0.0):
        silent.look()
        close_idle(seen, connections, IDLE)
        await asyncio.wait([serving], timeout=LOOK)
    await end()
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
