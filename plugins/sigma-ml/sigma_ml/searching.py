"""Search for settings, by the room sigma-search, which is not in the default set."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from sigma_kernel import SigmaPluginError


def search(what: Path | str, *overrides: str, **settings: Any) -> Any:
    """Train the trials of a search; return its results, as ``sigma_search.search`` does.

    ``settings`` are the keys of the table ``[search]``: ``sm.search("digits", trials=8,
    maximise="validation.accuracy", space={"trainer.optimiser.learning_rate": {"low": 1e-4, "high": 0.1, "log":
    True}})``. Raises SigmaPluginError if sigma-search is not installed.
    """
    try:
        room = import_module("sigma_search")
    except ModuleNotFoundError as error:
        if error.name != "sigma_search":
            raise
        remedy = "Install it: python -m pip install ./plugins/sigma-search"
        raise SigmaPluginError(f"search: the room sigma-search is not installed. {remedy}.") from None
    return room.search(what, *overrides, **settings)
