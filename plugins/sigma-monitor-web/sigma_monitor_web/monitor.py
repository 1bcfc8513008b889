"""The monitor ``web``: serve a dashboard from the process of the run."""

from __future__ import annotations

import math
import os
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_http.serving import is_loopback, listening
from sigma_http.tokens import SHORTEST, check_token, generate_key, read_token
from sigma_kernel import settings
from sigma_kernel.contracts import Monitor, View
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.aside import Aside
from sigma_monitor_control.protocol import Conversation
from sigma_monitor_web.application import Application
from sigma_monitor_web.describer import Describer
from sigma_monitor_web.exposition import expose_view
from sigma_monitor_web.files import page
from sigma_monitor_web.keys import Keys
from sigma_monitor_web.layout import NAME, PageLayout, panels
from sigma_monitor_web.listing import describe_folder, select_results
from sigma_monitor_web.serving import WebServer
from sigma_monitor_web.system import sampling
from sigma_monitor_web.talk import Talk, WebLines

PATIENCE = 10.0  # seconds to wait for a page to open or to reconnect


def _token(monitor: Any, attribute: Any, token: str) -> None:
    check_token("WebMonitor.token", token)


@define(eq=False)
class WebMonitor(Monitor):
    """Serve a dashboard to watch and steer the run; print its link, and open it in the browser.

    Args:
        host: The address to listen on. An address other than this machine's needs a ``token``.
        port: The port to listen on; 0 is the first free one from 8470 on.
        token: The key of the link; by default new for each run. ``$NAME`` takes it from an environment variable, to
            keep it out of the configuration.
        open: Whether to open the browser.
        layout: A JSON file with the tabs and panels, which the page may write; by default, ``layout.json`` in the run
            folder. Without a file, the page uses its default.
    """

    host: str = field(default="127.0.0.1", validator=settings.instance_of(str, "a string"))
    port: int = field(default=0, validator=[settings.whole, settings.ge(0)])
    token: str = field(default="", validator=_token, repr=False)
    open: bool = field(default=True, validator=settings.in_((False, True)))
    layout: str = field(default="", validator=settings.instance_of(str, "a string"))
    _last: WebServer | None = field(default=None, init=False, repr=False)
    _seen: bool = field(default=False, init=False, repr=False)  # a page or the browser was opened
    _waited: bool = field(default=False, init=False, repr=False)  # for pages, after a failure
    _opened: float = field(default=-math.inf, init=False, repr=False)  # when the browser was opened

    steers = True

    def __attrs_post_init__(self) -> None:
        """Refuse other machines without a token."""
        if not is_loopback(self.host) and not self.token:
            raise SigmaConfigError(
                f"WebMonitor.host: {self.host!r} can be reached from other machines. Give a token, too, of at least "
                f"{SHORTEST} characters; or keep the default, and forward the port with ssh -L."
            )

    def watch(self, view: View) -> None:
        """Serve until the run is over."""
        with self._serve_view(view, Keys(self.key()), self.port) as server:
            view.log(f"dashboard: {server.link()}")
            if self.layout and not Path(self.layout).exists():
                view.log(f"dashboard: {self.layout} does not exist yet. Saving the layout in the page writes it.")
            opened = self.open and open_browser(server.link())
            self._last, self._opened = server, time.monotonic() if opened else -math.inf
            with sampling(view):
                server.run(view.wait)
            self._seen = opened or server.application.lines.seen

    def is_attended(self) -> bool:
        """Return whether a page is open, was open some seconds ago, or is about to open in the browser."""
        if self._last is None:
            return False
        lines, self._waited = self._last.application.lines, True
        return lines.count > 0 or time.monotonic() - max(lines.left, self._opened) < PATIENCE

    def linger(self, view: View) -> None:
        """Serve the ended run at the same address until no page has been open for some seconds."""
        over = self._waited and view.status() == "failed"  # as long as pages were open
        if self._last is None or not self._seen or over:
            return
        with self._serve_view(view, self._last.application.keys, self._last.port) as server:
            print("The dashboard stays open until you close its page, or press Ctrl-C.", file=sys.stderr, flush=True)
            server.run(IdleTimeout(server.application.lines))

    @contextmanager
    def _serve_view(self, view: View, keys: Keys, port: int) -> Iterator[WebServer]:
        run, own = OneRun(view), panels()
        inside = None if view.folder is None else view.folder / NAME
        layout = PageLayout(Path(self.layout) if self.layout else inside, own)
        with listening(self.host, port) as listener:
            yield WebServer(Application(run, keys, page(), layout, own), listener, self.host)
        run.end()

    def key(self) -> str:
        """Return the token, or else a new key.

        Raises SigmaConfigError if the environment variable is missing or too short.
        """
        return read_token("WebMonitor.token", self.token) or generate_key()


def open_browser(link: str) -> bool:
    """Open a link in the browser; return whether it has a window, as a text browser would cover the terminal."""
    windows = not sys.platform.startswith("linux") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    )
    return windows and webbrowser.open(link)


@define(eq=False)
class IdleTimeout:
    """True once no page was open for ``patience`` seconds.

    Args:
        lines: The connections.
        patience: The seconds.
        clock: A monotonic clock, in seconds.
    """

    lines: WebLines
    patience: float = PATIENCE
    clock: Callable[[], float] = time.monotonic
    _since: float | None = field(default=None, init=False)  # since when no page was open

    def __call__(self, seconds: float) -> bool:
        """Return whether all pages are closed long enough."""
        if self.lines.count:
            self._since = None
            return False
        self._since = self.clock() if self._since is None else self._since
        return self.clock() - self._since >= self.patience


@define(eq=False)
class OneRun:
    """The run that serves itself."""

    view: View
    where: str = "monitor"
    aside: Aside = field(factory=Aside, init=False)
    describer: Describer = field(factory=Describer, init=False)

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return self.view.name

    def talk(self, run: str, scopes: frozenset[str]) -> Talk:
        """Return a new conversation."""
        more = {"profile": self.describer.profile, "findings": self.describer.findings, "results": self.results}
        return Conversation(self.view, scopes, self.aside.do, more)

    def results(self, view: View) -> Any:
        """Return a future of the baselines of a run that has ended, and of what is said about its results."""
        return self.aside.do(lambda: {} if view.folder is None else select_results(describe_folder(view.folder)))

    def end(self) -> None:
        """End the threads, after their current work, and the process."""
        self.aside.end()
        self.describer.end()

    def metrics(self) -> tuple[bytes, str]:
        """Return the Prometheus exposition."""
        return expose_view(self.view)
