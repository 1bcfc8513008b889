"""The commands pass the suite of commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from sigma_http.passwords import hash_password
from sigma_monitor_web.accounts import Account, write_accounts
from sigma_monitor_web.password import password
from sigma_monitor_web.serving import WebServer
from sigma_monitor_web.ui import ui
from sigma_testing import VerbSuite


class TestUi(VerbSuite):
    heavy = ("matplotlib",)  # what run folders hold are arrays

    @pytest.fixture(autouse=True)
    def _ends(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = tmp_path
        serve = WebServer.run
        monkeypatch.setattr(WebServer, "run", lambda server, over: serve(server, lambda seconds: True))

    def make(self) -> click.Command:
        return ui

    def arguments(self) -> Sequence[str]:
        return [str(self.folder), "--no-open"]

    def mistakes(self) -> Sequence[Sequence[str]]:
        return [["--port", "70000"], ["--host", "0.0.0.0"], ["--token", "short"]]


class TestPassword(VerbSuite):
    @pytest.fixture(autouse=True)
    def _written(self, tmp_path: Path) -> None:
        self.file = tmp_path / "accounts"
        write_accounts(self.file, {"anna": Account("anna", "steer", hash_password("long enough, and more"))})

    def make(self) -> click.Command:
        return password

    def arguments(self) -> Sequence[str]:
        return [str(self.file), "anna", "--remove"]

    def mistakes(self) -> Sequence[Sequence[str]]:
        return [[str(self.file)], [str(self.file), "nobody", "--remove"]]
