"""Debian's Firefox, driven by WebDriver BiDi: a second engine for the tests of the dashboard.

Playwright drives a Firefox of its own build alone. BiDi is a WebSocket that any Firefox opens, with a message for each
command and each event: https://www.w3.org/TR/webdriver-bidi/
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field
from websockets.sync.client import ClientConnection, connect

from figures.browser import Program

FIREFOX = Program("Firefox", "SIGMA_FIREFOX", "firefox-esr", ("firefox-esr", "firefox"), "/path/to/firefox")
SETTINGS = {  # of a profile: no first pages, and nothing is asked of other hosts
    "app.normandy.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "intl.accept_languages": "en-GB",
    "services.settings.server": "data:,",
    "ui.prefersReducedMotion": 1,
}
PATIENCE = 60.0  # seconds


@define(eq=False)
class Window:
    """A window of Firefox, and the errors and warnings of its console."""

    line: ClientConnection
    context: str = field(default="", init=False)
    complaints: list[str] = field(factory=list, init=False)
    _number: int = field(default=0, init=False)

    def ask(self, method: str, **given: Any) -> Any:
        """Send a command, and return its result; raise RuntimeError if it is refused."""
        self._number += 1
        self.line.send(json.dumps({"id": self._number, "method": method, "params": given}))
        while True:
            message = json.loads(self.line.recv(PATIENCE))
            if message.get("type") == "event":
                self._hear(message)
            elif message.get("id") == self._number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['error']}: {message['message']}")
                return message["result"]

    def _hear(self, event: dict[str, Any]) -> None:
        about = event["params"]
        if event["method"] == "log.entryAdded" and about["level"] in ("error", "warn"):
            self.complaints.append(about["text"])

    def begin(self, width: int = 1440, height: int = 900) -> None:
        """Open the window."""
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self.context = self.ask("browsingContext.create", type="tab")["context"]
        size = {"width": width, "height": height}
        self.ask("browsingContext.setViewport", context=self.context, viewport=size)

    def go_to(self, link: str) -> None:
        """Load a page."""
        self.ask("browsingContext.navigate", context=self.context, url=link, wait="complete")

    def evaluate(self, body: str) -> Any:
        """Return the result of the body of an async function, as JSON; raise RuntimeError for what it throws."""
        text = f"(async () => JSON.stringify((await (async () => {{ {body} }})()) ?? null))()"
        target = {"context": self.context}
        found = self.ask("script.evaluate", expression=text, target=target, awaitPromise=True)
        if found["type"] != "success":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])

    def wait_for(self, body: str) -> Any:
        """Return the first result that is true; raise TimeoutError after a minute."""
        end = time.monotonic() + PATIENCE
        while not (found := self.evaluate(body)):
            if time.monotonic() > end:
                raise TimeoutError(f"was never true: {body}")
            time.sleep(0.05)
        return found

    def press(self, *keys: str) -> None:
        """Press keys one after the other, each by its character; ``\\ue007`` is Enter."""
        strokes = [{"type": way, "value": key} for key in keys for way in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": strokes}]
        self.ask("input.performActions", context=self.context, actions=actions)


@contextmanager
def firefox(profile: Path) -> Iterator[Window]:
    """Run a headless Firefox with an empty profile in a folder, and open a window."""
    text = "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in SETTINGS.items())
    (profile / "user.js").write_text(text)
    said = profile / "said.txt"
    command = [
        FIREFOX.executable(),
        "--headless",
        "--no-remote",
        "--profile",
        str(profile),
        "--remote-debugging-port",
        "0",
    ]
    with said.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        with connect(f"{_wait_for_address(process, said)}/session", max_size=None, open_timeout=PATIENCE) as line:
            window = Window(line)
            window.begin()
            yield window
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_for_address(process: subprocess.Popen[bytes], said: Path) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"BiDi listening on (ws://\S+)", said.read_text()):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"Firefox said no address:\n{said.read_text()}")
