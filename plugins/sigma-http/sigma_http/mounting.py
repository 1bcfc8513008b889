"""Serve an application below a path, as behind a proxy that serves others as well."""

from __future__ import annotations

from attrs import frozen
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send


@frozen
class BasePath:
    """Take a path off the paths of requests; a proxy may do so before, so that others are passed on as they are.

    Args:
        app: The application.
        base: The path, without a slash at its end, such as ``/sigma``.
    """

    app: ASGIApp
    base: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; that for the path itself is sent to the directory, where relative links work."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path == self.base:
            await RedirectResponse(f"{self.base}/", 308)(scope, receive, send)
        elif path.startswith(f"{self.base}/"):
            await self.app({**scope, "path": path[len(self.base) :]}, receive, send)
        else:
            await self.app(scope, receive, send)
