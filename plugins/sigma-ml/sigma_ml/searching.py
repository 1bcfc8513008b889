"""Search for settings, by the room sigma-search, which is not in the default set.

``sm.search("digits", trials=8, maximise="validation.accuracy", space={"trainer.optimiser.learning_rate": {"low": 1e-4,
"high": 0.1, "log": True}})`` takes the keys of the table ``[search]``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from sigma_kernel import SigmaPluginError

ROOM = "sigma_search"


def search(what: Path | str, *overrides: str, **settings: Any) -> Any:
    """Train the trials of a search, as ``sigma_search.search`` does; raise SigmaPluginError without that room."""
    return _import_room().search(what, *overrides, **settings)


def _import_room() -> Any:
    try:
        return import_module(ROOM)
    except ModuleNotFoundError as error:
        if error.name != ROOM:
            raise
    remedy = "Install it: python -m pip install ./plugins/sigma-search"
    raise SigmaPluginError(f"search: the room sigma-search is not installed. {remedy}.")
