"""Run the server of the dashboard in the calling thread until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable

from attrs import define, field

from sigma_http.serving import address, run_server, serve_until
from sigma_monitor_web.application import Application
from sigma_monitor_web.keys import READ, STEER
from sigma_monitor_web.reach import ServerReach

LONGEST = 4 << 20  # bytes of a message


@define(eq=False)
class WebServer:
    """Serve an application on a socket, until ``over`` returns True."""

    application: Application
    listener: socket.socket
    host: str
    reach: ServerReach = field(factory=ServerReach)
    port: int = field(init=False)

    @port.default
    def _(self) -> int:
        return int(self.listener.getsockname()[1])

    def link(self, scope: str = STEER) -> str:
        """Return the link with the key; without it where people log in."""
        key = {READ: self.application.keys.read, STEER: self.application.keys.steer}[scope]
        scheme = "https" if self.reach.encrypts else "http"
        place = f"{address(self.host, self.port, scheme)}{self.reach.base.removeprefix('/')}".rstrip("/")
        return f"{place}/" if self.application.keys.accounts is not None else f"{place}/#token={key}"

    def run(self, over: Callable[[float], bool]) -> None:
        """Serve; ``over`` waits for the given seconds, and returns whether to stop."""
        sockets = {"ws": "websockets-sansio", "ws_max_size": LONGEST, "ws_max_queue": 4}
        guarded = self.application.guard_application(self.host, self.reach.names)
        more = {**sockets, **self.reach.server_settings()}
        run_server(serve_until(guarded, self.listener, over, self.application.lines.end, **more))
