"""Every live command can be given on the page, also one that no part of the page knows, such as a plugin's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel import catalogue


@pytest.fixture
def training(browsers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a run with the command of ``sigma plugins new --kind command``, as if it were installed."""
    made = [sys.executable, "-m", "sigma_run", "plugins", "new", "acme-latest", "--kind", "command"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    plugin = tmp_path / "acme-latest"
    about = plugin / "acme_latest-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: acme-latest\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[sigma_kernel.plugins]\nlatest = acme_latest.plugin\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(plugin), os.environ.get("PYTHONPATH")])))
    (tmp_path / "run").mkdir()
    with browsers.run(tmp_path / "run", "digits", *browsers.ENDLESS, *browsers.SLOWLY) as run:
        yield run


def test_every_command_is_listed_and_a_plugins_command_is_applied(training: Any, visit: Any) -> None:
    window = visit()
    page = window.page
    page.goto(training.link)
    page.get_by_role("navigation").get_by_role("link", name="Journal").click()
    page.get_by_role("button", name="Command", exact=True).click()
    which = page.get_by_role("group", name="Give any command").get_by_label("Which")
    which.get_by_role("option", name="undo", exact=True).wait_for(state="attached")  # once the run has described them
    listed = which.get_by_role("option").all_inner_texts()[1:]
    assert {component.name for component in catalogue().components("command")} < {*listed}
    (own,) = (name for name in listed if ":" in name)
    assert own == "acme-latest:latest"
    which.select_option(own)
    page.get_by_label("pattern", exact=True).fill("learning_rate")
    page.get_by_role("button", name="Send", exact=True).click()
    row = page.get_by_role("row").filter(has=page.get_by_role("cell", name=own, exact=True))
    row.filter(has_text="learning_rate").get_by_text("applied").wait_for()
    page.get_by_role("button", name="Command", exact=True).click()
    resets = page.get_by_role("cell", name="reset", exact=True)
    before = resets.count()  # of other tests of the same run
    which.select_option("reset")
    page.get_by_role("button", name="Send", exact=True).click()
    resets.nth(before).wait_for()
    assert window.complaints == []
