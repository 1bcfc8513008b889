"""A panel of a plugin stands on its view, with what it asks of the run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def training(browsers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a run with the panel of ``sigma plugins new --kind panel``, as if it were installed."""
    made = [sys.executable, "-m", "sigma_kernel", "plugins", "new", "acme-latest", "--kind", "panel"]
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


def test_the_panel_of_a_new_plugin_is_drawn_with_the_loss(training: Any, visit: Any) -> None:
    window = visit()
    window.page.goto(training.link)
    window.page.get_by_role("region", name="Latest").get_by_text(re.compile(r"^\d+(\.\d+)?(e-\d+)?$")).wait_for()
    assert window.complaints == []
