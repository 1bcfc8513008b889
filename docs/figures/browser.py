"""A real browser and runs to watch in it: for the tests of the dashboard, its pictures and its figures.

The system's Chromium is driven by Playwright. Where there is none, and where that can be done, Debian's is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field, frozen
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

WIDE, PHONE = (1440, 900), (390, 844)
ENDLESS = ("--set", 'hooks.finish.when="epoch reaches 30000"')
SLOWLY = ("--set", "trainer.optimiser.learning_rate=0.00003", "--set", 'trainer.optimiser.type="adam"')
PATIENCE = 60.0  # seconds


class NoBrowserError(Exception):
    """Say that there is no browser, and what to install."""


@frozen
class Program:
    """A browser: its name, the variable that names another one, the package of Debian, its programs, and an example."""

    name: str
    variable: str
    package: str
    programs: Sequence[str]
    example: str

    def executable(self) -> str:
        """Return the path of a program; install the package if there is none.

        Raises NoBrowserError if that cannot be done.
        """
        named = os.environ.get(self.variable)
        if named and not shutil.which(named):
            raise NoBrowserError(f"{self.variable}={named}: there is no such program. Name a {self.name}, or unset it.")
        return named or self._find() or self._install()

    def _find(self) -> str | None:
        return next(filter(None, map(shutil.which, self.programs)), None)

    def _install(self) -> str:
        if os.name != "posix" or os.geteuid() != 0 or not shutil.which("apt-get"):
            raise self._missing("it cannot be installed without root and apt-get")
        quiet, said = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, ""
        for words in (["update"], ["install", "-y", "--no-install-recommends", self.package]):
            done = subprocess.run(["apt-get", "-q", *words], env=quiet, capture_output=True, text=True, check=False)
            said = " ".join(line for line in done.stderr.splitlines() if line.startswith("E:"))
        found = self._find()
        if found is None:
            raise self._missing(f"apt-get does not install it ({said or 'without a reason'})")
        return found

    def _missing(self, why: str) -> NoBrowserError:
        return NoBrowserError(
            f"There is no {self.name} on this machine, and {why}. Install it (apt-get install {self.package}; or the "
            f"package of your system), or name one: {self.variable}={self.example}."
        )


CHROMIUM = Program(
    "Chromium", "SIGMA_BROWSER", "chromium",
    ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"),
    "/path/to/chrome",
)  # fmt: skip


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a headless Chromium."""
    alone = [] if os.name != "posix" or os.geteuid() else ["--no-sandbox"]  # root has no other way
    with sync_playwright() as drives:
        found = drives.chromium.launch(executable_path=CHROMIUM.executable(), args=alone)
        yield found
        found.close()


@define(eq=False)
class Visit:
    """A window of a browser, and what it complained of and asked for."""

    page: Page
    complaints: list[str] = field(factory=list)
    requests: list[str] = field(factory=list)

    @classmethod
    def begin(cls, browser: Browser, size: tuple[int, int] = WIDE, theme: str = "light") -> Visit:
        """Open an empty window with storage of its own; ``theme`` is what the system asks for."""
        narrow = size[0] < 500
        context: BrowserContext = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            is_mobile=narrow,
            has_touch=narrow,
            locale="en-GB",
        )
        visit = cls(context.new_page())
        visit.page.on("console", lambda message: visit.hear(message))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        return visit

    def hear(self, message: object) -> None:
        """Note an error or a warning of the console."""
        if message.type in ("error", "warning"):  # type: ignore[attr-defined]
            self.complaints.append(message.text)  # type: ignore[attr-defined]

    def end(self) -> None:
        """Close the window."""
        self.page.context.close()


@define(eq=False)
class Run:
    """A run with a dashboard, as a person starts it."""

    process: subprocess.Popen[str]
    link: str
    folder: Path
    said: Path
    environment: Mapping[str, str]

    def sigma(self, *words: str) -> str:
        """Return what a command in another shell says."""
        return sigma(*words, folder=self.folder, environment=self.environment)

    @property
    def results(self) -> Path:
        """Return the run folder."""
        return next((self.folder / "runs").iterdir())

    def end(self) -> None:
        """Terminate it: Ctrl-C is ignored by processes that a shell has started in the background."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE)


def sigma(*words: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run a command in a folder and return what it says."""
    command = [sys.executable, "-m", "sigma_run", *words]
    done = subprocess.run(command, cwd=folder, env=dict(environment), text=True, capture_output=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout or done.stderr


@contextmanager
def run(folder: Path, recipe: str = "digits", *more: str, monitor: bool = True) -> Iterator[Run]:
    """Train a recipe in a folder, with a dashboard; it ends with the block."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "PYTHONUNBUFFERED": "1"}
    environment.pop("SIGMA_CONTROL", None)
    web = ["--monitor", "web", "--set", "monitors.web.open=false"] if monitor else []
    command = [sys.executable, "-m", "sigma_run", "run", recipe, *web, *more]
    said = folder / "said.txt"
    with said.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, text=True, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
    begun = Run(process, _link(process, said) if monitor else "", folder, said, environment)
    try:
        yield begun
    finally:
        begun.end()


def _link(process: subprocess.Popen[str], said: Path) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"http://\S+#token=\S+", said.read_text()):
            return found[0]
        time.sleep(0.02)
    raise RuntimeError(f"the run printed no link:\n{said.read_text()}")
