"""The monitor ``web``: serve a dashboard from the process of the run."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_http.serving import is_loopback, listening
from sigma_http.tokens import SHORTEST, check_token, generate_key, read_token
from sigma_kernel import settings
from sigma_kernel.contracts import Monitor, View
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_monitor_control.aside import Aside
from sigma_monitor_control.protocol import Conversation
from sigma_monitor_web.accounts import Accounts, read_accounts
from sigma_monitor_web.application import Application
from sigma_monitor_web.describer import Describer
from sigma_monitor_web.exposition import expose_view
from sigma_monitor_web.files import page
from sigma_monitor_web.keys import Keys
from sigma_monitor_web.layout import NAME, PageLayout, panels
from sigma_monitor_web.listing import check_answer, describe_folder, reproduce_folder, select_results
from sigma_monitor_web.opening import open_browser
from sigma_monitor_web.reach import ServerReach
from sigma_monitor_web.serving import WebServer
from sigma_monitor_web.system import sampling
from sigma_monitor_web.talk import Talk, WebLines

PATIENCE = 10.0  # seconds to wait for a page to open or to reconnect


def _token(monitor: Any, attribute: Any, token: str) -> None:
    check_token(f"WebMonitor.{attribute.name}", token)


@define(eq=False)
class WebMonitor(Monitor):
    """Serve a dashboard to watch and steer the run; print its link, and open it in the browser.

    Args:
        host: The address to listen on. An address other than this machine's needs a ``token``, or ``accounts``.
        port: The port to listen on; 0 is the first free one from 8470 on.
        token: The key of the link; by default new for each run. ``$NAME`` takes it from an environment variable, to
            keep it out of the configuration.
        read_token: The key of links that only read; by default new for each run. ``$NAME`` as for ``token``.
        accounts: A file of people who log in with a password, by ``sigma password``; the link has no key then.
        names: Host names by which others know the server, such as ``train.example.org``.
        certificate: A PEM file with the certificate of the server, for TLS; ``key`` is that of its private key.
        key: A PEM file with the private key, without a password.
        proxy: Addresses of proxies in front of the server, whose X-Forwarded-For and X-Forwarded-Proto are believed.
        base: The path below which a proxy serves it, such as ``/sigma``.
        open: Whether to open the browser.
        layout: A JSON file with the tabs and panels, which the page may write; by default, ``layout.json`` in the run
            folder. Without a file, the page uses its default.
    """

    host: str = field(default="127.0.0.1", validator=settings.instance_of(str, "a string"))
    port: int = field(default=0, validator=[settings.whole, settings.ge(0)])
    token: str = field(default="", validator=_token, repr=False)
    read_token: str = field(default="", validator=_token, repr=False)
    accounts: str = field(default="", validator=settings.instance_of(str, "a string"))
    names: Sequence[str] = field(factory=list)
    certificate: str = field(default="", validator=settings.instance_of(str, "a string"))
    key: str = field(default="", validator=settings.instance_of(str, "a string"))
    proxy: Sequence[str] = field(factory=list)
    base: str = field(default="", validator=settings.instance_of(str, "a string"))
    open: bool = field(default=True, validator=settings.in_((False, True)))
    layout: str = field(default="", validator=settings.instance_of(str, "a string"))
    _last: WebServer | None = field(default=None, init=False, repr=False)
    _seen: bool = field(default=False, init=False, repr=False)  # a page or the browser was opened
    _waited: bool = field(default=False, init=False, repr=False)  # for pages, after a failure
    _opened: float = field(default=-math.inf, init=False, repr=False)  # when the browser was opened

    steers = True

    def __attrs_post_init__(self) -> None:
        """Refuse other machines without a token or accounts, and passwords that others can read on their way."""
        self.reach.check("WebMonitor")
        if not is_loopback(self.host) and not self.token and not self.accounts:
            raise SigmaConfigError(
                f"WebMonitor.host: {self.host!r} can be reached from other machines. Give a token, too, of at least "
                f"{SHORTEST} characters; or keep the default, and forward the port with ssh -L."
            )
        if not is_loopback(self.host) and self.accounts and not self.certificate and not self.proxy:
            raise SigmaConfigError(
                f"WebMonitor.accounts: passwords would travel to {self.host!r} unencrypted. Give certificate and key, "
                "or a proxy that encrypts; or keep the default host, and forward the port with ssh -L."
            )

    @property
    def reach(self) -> ServerReach:
        """Return how clients reach the server besides its address."""
        return ServerReach(self.names, self.certificate, self.key, self.proxy, self.base)

    def make_keys(self) -> Keys:
        """Return the keys and the accounts of a server.

        Raises SigmaConfigError if an environment variable is missing or too short, or for a file that is none.
        """
        given = {name: read_token(f"WebMonitor.{name}", getattr(self, name)) for name in ("token", "read_token")}
        if given["token"] and given["token"] == given["read_token"]:
            raise SigmaConfigError("WebMonitor.read_token: is the token that steers. Take another one for reading.")
        accounts = Accounts(Path(self.accounts)) if self.accounts else None
        if accounts is not None and not read_accounts(accounts.path):
            raise SigmaConfigError(f"{self.accounts}: has no account. `sigma password {self.accounts} NAME` adds one.")
        steer, read = (key or generate_key() for key in given.values())
        return Keys(steer, read, accounts=accounts)

    def watch(self, view: View) -> None:
        """Serve until the run is over."""
        with self._serve_view(view, self.make_keys(), self.port) as server:
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
            application = Application(run, keys, page(), layout, own, self.base)
            yield WebServer(application, listener, self.host, self.reach)
        run.end()


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

    def talk(self, run: str, scopes: frozenset[str], who: str = "") -> Talk:
        """Return a new conversation."""
        data = {"profile": self.describer.profile, "findings": self.describer.findings}
        more = {**data, "results": self.results, "reproduce": self.reproduce}
        return Conversation(self.view, scopes, self.aside.do, more, who)

    def results(self, view: View) -> Any:
        """Return a future of the baselines of a run that has ended, and of what is said about its results."""
        return self.aside.do(lambda: {} if view.folder is None else select_results(describe_folder(view.folder)))

    def reproduce(self, view: View) -> Any:
        """Return a future of the commands that train the run again."""
        if view.folder is None:
            raise SigmaStateError(f"{view.name}: has no run folder, so that its configuration is not kept.")
        folder = view.folder
        return self.aside.do(lambda: check_answer(reproduce_folder(folder)))

    def end(self) -> None:
        """End the threads, after their current work, and the process."""
        self.aside.end()
        self.describer.end()

    def metrics(self) -> tuple[bytes, str]:
        """Return the Prometheus exposition."""
        return expose_view(self.view)
