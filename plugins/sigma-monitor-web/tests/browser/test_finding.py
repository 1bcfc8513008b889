"""The browser of these tests is found, or installed, or it is said loudly why neither can be done."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

APT = """#!/bin/sh
echo "$@" >> {log}
{then}
"""


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty directory as the only one in which programs are found."""
    for name in ("SIGMA_BROWSER", "SIGMA_FIREFOX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["chromium", "google-chrome"])
def test_the_browser_of_the_system_is_found(browsers: Any, alone: Path, name: str) -> None:
    path = program(alone / name)
    assert browsers.CHROMIUM.executable() == str(path)


def test_a_browser_that_is_named_is_taken(browsers: Any, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(alone / "chromium")
    monkeypatch.setenv("SIGMA_BROWSER", str(program(alone / "mine")))
    assert browsers.CHROMIUM.executable() == str(alone / "mine")
    monkeypatch.setenv("SIGMA_BROWSER", "/nothing")
    with pytest.raises(browsers.NoBrowserError, match="SIGMA_BROWSER=/nothing: there is no such program"):
        browsers.CHROMIUM.executable()


@pytest.mark.parametrize("user", [0, 1000])
def test_what_is_missing_is_said_where_nothing_can_be_installed(
    browsers: Any, alone: Path, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if user:
        program(alone / "apt-get")
    with pytest.raises(browsers.NoBrowserError, match="cannot be installed without root and apt-get. Install it"):
        browsers.CHROMIUM.executable()


def test_debian_s_browser_is_installed_by_root(browsers: Any, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = alone / "chromium"
    then = f'[ "$2" = update ] || {{ echo "#!/bin/sh" > {made}; /bin/chmod 755 {made}; }}'
    program(alone / "apt-get", APT.format(log=alone / "log", then=then))
    assert browsers.CHROMIUM.executable() == str(made)
    asked = (alone / "log").read_text().splitlines()
    assert asked == ["-q update", "-q install -y --no-install-recommends chromium"]


def test_the_reason_for_which_it_is_not_installed_is_said(
    browsers: Any, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(alone / "apt-get", APT.format(log=alone / "log", then='echo "E: no network" >&2; exit 100'))
    with pytest.raises(browsers.NoBrowserError, match=r"apt-get does not install it \(E: no network\)"):
        browsers.CHROMIUM.executable()


def test_firefox_is_found_named_or_installed_in_the_same_way(
    browsers: Any, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    firefox = import_module("figures.firefox")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(browsers.NoBrowserError, match="There is no Firefox on this machine"):
        firefox.FIREFOX.executable()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = alone / "firefox-esr"
    program(alone / "apt-get", APT.format(log=alone / "log", then=f"echo > {made}; /bin/chmod 755 {made}"))
    assert firefox.FIREFOX.executable() == str(made)
    assert (alone / "log").read_text().splitlines()[-1] == "-q install -y --no-install-recommends firefox-esr"
    monkeypatch.setenv("SIGMA_FIREFOX", "/nothing")
    with pytest.raises(browsers.NoBrowserError, match="SIGMA_FIREFOX=/nothing: there is no such program"):
        firefox.FIREFOX.executable()
