"""Open the link of a dashboard in the browser: other users of the machine see the command line, but not the key.

As in Jupyter, the browser is given the path of a file that only its owner can read, and that leads to the link.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import threading
import webbrowser
from functools import partial
from html import escape
from pathlib import Path

KEPT = 60.0  # seconds in which a browser has to read the file
PAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Sigma</title>
<p><a href="{link}">Open the dashboard</a></p>
"""


def open_browser(link: str, kept: float = KEPT) -> bool:
    """Open a link in the browser; return whether it has a window, as a text browser would cover the terminal.

    A link with a key is opened by a file, which is removed after ``kept`` seconds.  If none can be written, the browser
    is not opened: the link was printed.
    """
    if not _has_windows():
        return False
    if "#" not in link:
        return webbrowser.open(link)
    try:
        file = write_redirect(link)
    except OSError:
        return False
    remove = partial(file.unlink, missing_ok=True)
    if not webbrowser.open(file.as_uri()):
        remove()
        return False
    later = threading.Timer(kept, remove)
    later.daemon = True
    later.start()
    atexit.register(remove)  # a run that ends sooner takes it along
    return True


def write_redirect(link: str) -> Path:
    """Write a page that leads to a link, which only this user can read; return its path."""
    handle, name = tempfile.mkstemp(prefix="sigma-", suffix=".html")  # with the mode 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(PAGE.format(link=escape(link)))
    return Path(name)


def _has_windows() -> bool:
    return not sys.platform.startswith("linux") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
