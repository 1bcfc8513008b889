"""``sigma ui``: show finished and running runs in the browser."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import click

from sigma_http.serving import listening
from sigma_monitor_web.application import Application
from sigma_monitor_web.files import page
from sigma_monitor_web.layout import NAME, PageLayout, panels
from sigma_monitor_web.monitor import WebMonitor
from sigma_monitor_web.opening import open_browser
from sigma_monitor_web.serving import WebServer
from sigma_monitor_web.shelf import Shelf
from sigma_run.launcher import say


@click.command()
@click.argument("folder", default="runs", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--data",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Where the data of these runs are, if they were moved.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Listen on this port; 0 is the first free one.")
@click.option("--token", default="", metavar="TOKEN", help="The key of the link; $NAME takes it from the environment.")
@click.option("--read-token", default="", metavar="TOKEN", help="The key of links that only read; $NAME as above.")
@click.option("--accounts", default="", metavar="FILE", help="People who log in, as `sigma password` writes them.")
@click.option("--name", "names", metavar="HOST", multiple=True, help="A host name of this server (repeatable).")
@click.option("--certificate", default="", metavar="FILE", help="A certificate in PEM, for TLS.")
@click.option("--key", default="", metavar="FILE", help="The private key of the certificate, in PEM.")
@click.option(
    "--proxy", metavar="ADDRESS", multiple=True, help="Believe X-Forwarded headers of this proxy (repeatable)."
)
@click.option("--base", default="", metavar="PATH", help="The path below which a proxy serves it, such as /sigma.")
@click.option("--open/--no-open", "opens", default=True, help="Open the browser.")
def ui(folder: Path, data: Path | None, opens: bool, **access: Any) -> None:
    """Show the runs in FOLDER (by default runs/) in the browser, finished and running ones, until Ctrl-C."""
    settings = WebMonitor(open=opens, **access)  # which checks them
    shelf, own = Shelf(folder, data=data), panels()
    layout = PageLayout(folder / NAME, own)
    application = Application(shelf, settings.make_keys(), page(), layout, own, settings.base)
    with listening(settings.host, settings.port) as listener:
        shelf.list.begin()
        server = WebServer(application, listener, settings.host, settings.reach)
        say(f"dashboard of {folder}: {server.link()}")
        if opens:
            open_browser(server.link())
        try:
            server.run(threading.Event().wait)
        except KeyboardInterrupt:
            say("closed")
        finally:
            shelf.end()
