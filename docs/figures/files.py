"""Files that recipes need besides what they ship with."""

from __future__ import annotations

import atexit
import runpy
import tempfile
from functools import cache
from pathlib import Path

from figures import FOLDER

VOICES = FOLDER.parents[1] / "plugins" / "sigma-recipes" / "tests" / "voices.py"


@cache
def voices() -> Path:
    """Return a table as that of ``parkinsons``, made up as for the recipe's tests; it lives as long as the process."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "parkinsons.data"
    path.write_text(runpy.run_path(str(VOICES))["table"](), encoding="utf-8")
    return path


def settings(recipe: str, mnist: str | None) -> list[str]:
    """Return the setting by which a recipe finds its file; ``mnist`` is the folder of MNIST's four, if there is one."""
    if recipe == "parkinsons":
        return [f"data.path={voices()}"]
    return [f"data.folder={Path(mnist).resolve()}"] if recipe == "mnist" and mnist else []
