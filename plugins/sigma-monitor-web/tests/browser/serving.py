"""Serve the dashboard of a fake run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
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
