"""Warn of faults in the pages that were built; `tox -e docs` then fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.util import logging

from extensions.links import faults

LOG = logging.getLogger(__name__)


def _check(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for fault in faults(Path(app.outdir)):
            LOG.warning(fault)


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True}
