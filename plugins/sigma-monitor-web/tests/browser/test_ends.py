"""The page of a run that ends, or fails, stays connected until it is closed."""

from __future__ import annotations

import re
from typing import Any


def test_a_run_that_fails_shows_why_until_its_page_is_closed(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    playback = window.page.get_by_role("region", name="Playback")
    playback.get_by_text("Training", exact=True).wait_for()
    training.sigma("set", "learning_rate", "1e30", "--run", str(training.results))
    playback.get_by_text("Failed", exact=True).wait_for()
    alert = window.page.get_by_role("alert").filter(has_text=re.compile(r"the loss is .* Lower the learning rate"))
    alert.wait_for()
    window.page.get_by_text("connected", exact=True).wait_for()  # again, to the server that shows the end
    assert training.process.poll() is None
    window.end()
    assert training.process.wait(60) == 1
    assert "Lower the learning rate" in training.said.read_text()
