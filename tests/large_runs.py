"""Runs on data in blocks, and their parameters as bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sigma_run import load
from sigma_run.launcher.group import main


def train_file(text: str, folder: Path, name: str, **settings: Any) -> Path:
    """Run a configuration with these settings; return the folder of the run."""
    (folder / f"{name}.toml").write_text(text)
    changes = [f"--set={key}={value}" for key, value in settings.items()]
    assert main(["run", f"{name}.toml", "--quiet", f"--set=run.name={name}", *changes]) == 0
    return next((folder / "runs").glob(f"{name}-*"))


def read_bytes(run: Path) -> dict[str, bytes]:
    """Return the parameters of a run, as bytes by address."""
    return {name: np.asarray(values).tobytes() for name, values in load(run).parameters().items()}
