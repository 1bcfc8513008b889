"""What a run publishes later appears by itself, and a run that says nothing, or only errors, is told from others."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RARELY = ("--set", 'hooks.score.every="29000 epochs"')


@pytest.fixture
def early(browsers: Any, tmp_path: Path) -> Iterator[Any]:
    """Return a run that does not evaluate until it is told to."""
    with browsers.run(tmp_path, "digits", *browsers.ENDLESS, *browsers.SLOWLY, *RARELY) as run:
        yield run


def test_what_is_published_after_the_page_was_opened_appears_by_itself(early: Any, visit: Any) -> None:
    window = visit()
    window.page.set_default_timeout(120_000)
    window.page.goto(early.link)
    loss = window.page.get_by_role("region", name="Loss", exact=True)
    loss.get_by_role("img", name=re.compile("training now")).wait_for()
    assert loss.get_by_role("img", name=re.compile("validation now")).count() == 0
    early.sigma("set", "hooks.score.every", "1 epoch", "--run", str(early.results))
    loss.get_by_role("img", name=re.compile("training now .*; validation now")).wait_for()
    window.page.get_by_role("region", name="Accuracy", exact=True).get_by_role("img", name=re.compile("now")).wait_for()
    assert window.page.get_by_role("region", name="F1", exact=True).count() == 0
    early.sigma("attach", "more", '{type = "f1", on = "validation", every = "1 epoch"}', "--run", str(early.results))
    window.page.get_by_role("region", name="F1", exact=True).get_by_role("img", name=re.compile("now")).wait_for()
    assert window.complaints == []


def test_a_run_that_says_nothing_refuses_commands_at_once_until_it_speaks_again(training: Any, visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(training.link)
    page.get_by_text("connected", exact=True).wait_for()
    playback = page.get_by_role("region", name="Playback")
    playback.get_by_text("Training", exact=True).wait_for()
    os.kill(training.process.pid, signal.SIGSTOP)
    try:
        page.get_by_role("banner").get_by_text(re.compile(r"^no word from the run for \d+ s$")).wait_for(timeout=8000)
        playback.get_by_role("button", name="Pause", exact=True).click()
        playback.get_by_text(re.compile("The run has said nothing for")).wait_for(timeout=500)
    finally:
        os.kill(training.process.pid, signal.SIGCONT)
    page.get_by_text("connected", exact=True).wait_for()
    playback.get_by_text("Training", exact=True).wait_for()  # what was refused is not done later
    playback.get_by_role("button", name="Pause", exact=True).click()
    playback.get_by_text("Paused", exact=True).wait_for()
    playback.get_by_role("button", name="Continue", exact=True).click()
    playback.get_by_text("Training", exact=True).wait_for()


def test_an_error_of_what_is_followed_is_seen_until_there_is_news_again(training: Any, visit: Any) -> None:
    window = visit()
    failing = [True]

    def meet(socket: Any) -> None:
        server = socket.connect_to_server()

        def ask(message: str) -> None:
            document = json.loads(message)
            if failing[0] and document["do"] == "follow":
                error = {"kind": "SigmaStateError", "message": "the disk is on fire."}
                socket.send(json.dumps({"id": document["id"], "error": error}))
            else:
                server.send(message)

        socket.on_message(ask)

    window.page.route_web_socket("**/ws", meet)
    window.page.goto(training.link)
    alert = window.page.get_by_role("alert").filter(has_text="is asked again: the disk is on fire.")
    alert.wait_for()
    failing[0] = False
    alert.wait_for(state="detached")
    window.page.get_by_role("img", name=re.compile("training now")).first.wait_for()


def test_a_page_asks_for_a_point_for_each_pixel_of_its_width(training: Any, visit: Any) -> None:
    window, most = visit(), list[int]()

    def sent(text: str | bytes) -> None:
        document = json.loads(text)
        if document["do"] in ("follow", "series"):
            most.append(document["most"])

    window.page.on("websocket", lambda socket: socket.on("framesent", sent))
    window.page.goto(training.link)
    window.page.get_by_role("img", name=re.compile("training now")).first.wait_for()
    assert {*most} == {1440}
    window.page.set_viewport_size({"width": 800, "height": 900})
    window.page.wait_for_timeout(500)
    assert {*most} == {1440}  # which is enough
    window.page.set_viewport_size({"width": 1800, "height": 900})
    window.page.wait_for_timeout(500)
    assert most[-1] == 1800
