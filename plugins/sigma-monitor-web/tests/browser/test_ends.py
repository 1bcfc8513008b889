"""The page of a run that ends, or fails, stays connected until it is closed; one that failed goes on from there."""

from __future__ import annotations

import re
from typing import Any


def test_a_run_that_fails_goes_on_after_a_rewind_or_ends_when_its_page_is_closed(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    playback = window.page.get_by_role("region", name="Playback")
    playback.get_by_text("Training", exact=True).wait_for()
    training.sigma("set", "learning_rate", "1e30", "--run", str(training.results))
    playback.get_by_text("Failed", exact=True).wait_for()
    window.page.get_by_role("button", name=re.compile("Rewind to [0-9,]+")).click()
    rate = window.page.get_by_role("textbox", name=re.compile("Learning rate", re.IGNORECASE)).first
    rate.fill("0.01")
    rate.press("Enter")
    playback.get_by_role("button", name="Continue", exact=True).click()
    playback.get_by_text("Training", exact=True).wait_for()
    training.sigma("set", "learning_rate", "1e30", "--run", str(training.results))
    playback.get_by_text("Failed", exact=True).wait_for()
    alert = window.page.get_by_role("alert").filter(has_text=re.compile(r"the loss is .* Lower the learning rate"))
    alert.wait_for()
    window.page.get_by_text("connected", exact=True).wait_for()
    assert training.process.poll() is None
    window.end()
    assert training.process.wait(60) == 1
    assert "Lower the learning rate" in training.said.read_text()
