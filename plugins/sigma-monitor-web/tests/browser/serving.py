"""Serve the dashboard of a fake run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sigma_monitor_web.monitor import WebMonitor
from sigma_testing import FakeView


@contextmanager
def serve_view(view: FakeView, **settings: Any) -> Iterator[str]:
    """Serve a fake run by a monitor with these settings; return its link."""
    thread = threading.Thread(target=WebMonitor(open=False, **settings).watch, args=(view,))
    thread.start()
    try:
        while not view.texts:
            time.sleep(0.01)
        yield view.texts[0].split()[-1]
    finally:
        view.over.set()
        thread.join()


def hear_messages(
    page: Any, send: Callable[[Mapping[str, Any]], object], receive: Callable[[Mapping[str, Any]], object]
) -> None:
    """Call a function with each message that a page sends from now on, and another with each that it receives."""

    def listen(socket: Any) -> None:
        socket.on("framesent", lambda text: send(json.loads(text)))
        socket.on("framereceived", lambda text: receive(json.loads(text)))

    page.on("websocket", listen)
