"""Who has no link, and what belongs to another site, is refused by the server as a browser meets it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

STRANGE = """async ([host, token]) => {
    const found = {};
    const asks = async (name, url, more) => {
        try { const answer = await fetch(url, more); found[name] = answer.status; }
        catch { found[name] = "refused"; }
    };
    const headers = { "Content-Type": "application/json", "X-Sigma": "1" }, body = JSON.stringify({ token });
    await asks("enter", `http://${host}/session`, { method: "POST", credentials: "include", body, headers });
    await asks("read", `http://${host}/session`, { credentials: "include" });
    found.socket = await new Promise((tell) => {
        const socket = new WebSocket(`ws://${host}/ws`);
        socket.onopen = () => tell("open");
        socket.onclose = () => tell("refused");
    });
    await new Promise((loaded) => {
        const frame = document.createElement("iframe");
        frame.onload = loaded;
        frame.src = `http://${host}/`;
        document.body.append(frame);
    });
    return found;
}"""


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[str]:
    """Return the address of another site of the same machine: the browser sends it the same cookies."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    (tmp_path / "index.html").write_text("<!doctype html><title>elsewhere</title><body>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_a_page_of_another_origin_is_refused_though_it_has_the_cookie_and_the_token(
    training: Any, visit: Any, foreign: str
) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    host, token = training.link.removeprefix("http://").split("/#token=")
    assert window.page.context.cookies(training.link), "the window has come in"
    window.page.goto(foreign)
    found = window.page.evaluate(STRANGE, [host, token])
    assert found == {"enter": "refused", "read": "refused", "socket": "refused"}
    assert [frame.url for frame in window.page.frames] == [foreign, "chrome-error://chromewebdata/"]


@pytest.mark.parametrize("fragment", ["", "#token=" + "x" * 43])
def test_without_the_key_of_the_link_a_window_shows_no_run(training: Any, visit: Any, fragment: str) -> None:
    window = visit()
    window.page.goto(training.link.partition("#")[0] + fragment)
    window.page.get_by_role("region", name="Playback").get_by_text("Access denied", exact=True).wait_for()
    assert "This link is invalid" in window.page.get_by_role("alert").inner_text()
    assert "learning_rate" not in window.page.content()
    assert not window.page.context.cookies(training.link)


def test_the_key_leaves_the_address_and_no_script_reads_the_cookie(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_text("connected", exact=True).wait_for()
    assert "token" not in window.page.url
    assert window.page.evaluate("document.cookie") == ""
    (cookie,) = window.page.context.cookies(training.link)
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
