"""Read the configuration that a run folder holds."""

from __future__ import annotations

import os
from pathlib import Path

from sigma_kernel.config.building import build
from sigma_kernel.config.document import Document, read
from sigma_kernel.config.reading import structured
from sigma_kernel.config.schema import Configuration
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.training.runs import files


def opened(run: Path) -> tuple[Configuration, Environment]:
    """Return the configuration of a run folder, and an environment for it that nobody watches; nothing is read yet."""
    configuration = structured(described_in(run), catalogue())
    configuration.monitors = {}
    return configuration, build(configuration, catalogue())


def described_in(run: Path) -> Document:
    """Return the configuration of a run folder as a document."""
    path = run / "config.toml"
    if not os.path.lexists(path):
        what = "holds no config.toml" if os.path.isdir(run) else "there is no such folder"
        raise SigmaConfigError(f"{run}: is no run folder: {what}. Those of `sigma run` lie below runs/.")
    files.get_bytes(path, files.LARGEST)  # so that nothing is followed or waited for
    described = read(path)
    if not described.values:
        raise SigmaConfigError(
            f"{run}: was trained from Python, and no file says how. Make its trainers again in Python; then "
            "Environment.resume(RUN) puts them where they stood, and run() goes on."
        )
    return described
