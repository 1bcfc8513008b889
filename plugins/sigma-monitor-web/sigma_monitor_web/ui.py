"""``sigma ui``: show finished and running runs in the browser."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from sigma_http.serving import listening
from sigma_monitor_web.application import Application
from sigma_monitor_web.files import page
from sigma_monitor_web.keys import Keys
from sigma_monitor_web.layout import NAME, PageLayout, panels
from sigma_monitor_web.monitor import WebMonitor, open_browser
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
@click.option("--open/--no-open", "opens", default=True, help="Open the browser.")
def ui(folder: Path, data: Path | None, host: str, port: int, token: str, opens: bool) -> None:
    """Show the runs in FOLDER (by default runs/) in the browser, finished and running ones, until Ctrl-C."""
    settings = WebMonitor(host=host, port=port, token=token, open=opens)  # which checks them
    shelf, own = Shelf(folder, data=data), panels()
    application = Application(shelf, Keys(settings.key()), page(), PageLayout(folder / NAME, own), own)
    with listening(host, port) as listener:
        shelf.list.begin()
        server = WebServer(application, listener, host)
        say(f"dashboard of {folder}: {server.link()}")
        if opens:
            open_browser(server.link())
        try:
            server.run(threading.Event().wait)
        except KeyboardInterrupt:
            say("closed")
        finally:
            shelf.end()
