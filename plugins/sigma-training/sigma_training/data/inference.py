"""Infer a data set from a path, a frame or a table: what ``sigma init`` writes for data, as settings of a trainer."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from sigma_kernel.contracts import Dataset, Inspection, Inspector
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.plugins.catalogue import Catalogue, catalogue, load
from sigma_kernel.settings import is_table

HELD = "a table in memory"  # stands for it in the text of a draft
INTERFACES = ("columns", "__arrow_c_stream__", "__arrow_c_array__")  # of frames, and of what Arrow reads
KEPT = ("batch_size", "preprocessors", "augmentations")  # what a draft says of the data besides the data set


@frozen(eq=False)
class InferredData:
    """Data at a path, or a table in memory, whose data set is inferred by an inspector when it is read."""

    place: Any = field(repr=lambda place: repr(str(place)) if isinstance(place, Path) else type(place).__name__)
    inspector: Inspector = field(repr=False)
    target: str | None = None

    def profile(self) -> Inspection:
        """Return what the data hold, as ``sigma data show`` prints it; raises SigmaDataError for damaged data."""
        return self.inspector.inspect(self.place)

    def settings(self) -> dict[str, Any]:
        """Return the settings of a trainer on the data: the table of its data set, and how its rows are prepared.

        Raises SigmaDataError for data that cannot be read, and SigmaConfigError without a target where it is needed.
        """
        written = self.place.absolute().as_posix() if isinstance(self.place, Path) else HELD
        wishes = {} if self.target is None else {"target": self.target}
        data = tomllib.loads(self.inspector.draft(self.place, written, wishes).text)["data"]
        about = {name: data.pop(name) for name in KEPT if name in data}
        chosen = data.pop("dataset")
        table = {**data, **(chosen if isinstance(chosen, Mapping) else {"type": chosen})}
        return {**about, "data": {name: self.place if value == HELD else value for name, value in table.items()}}


def infer_data(given: Any, target: str | None, resolve: Resolve) -> Any:
    """Return inferred data for a path, a frame, a table of Arrow, or columns with a target; any other data as given.

    A text is the name of a data set if a plugin offers that, and a path if it looks like one. Raises SigmaConfigError
    if there is nothing at a path, or nothing that an installed inspector takes.
    """
    if isinstance(given, InferredData):
        return evolve(given, target=target)
    plugins = getattr(resolve, "catalogue", None) or catalogue()
    if isinstance(given, os.PathLike) or (isinstance(given, str) and _is_path(given, plugins)):
        return InferredData(Path(given), find_inspector(Path(given), plugins), target)
    if not _is_tabular(given, target):
        return given
    for inspector in list_inspectors(plugins):
        if (held := inspector.hold(given)) is not None:
            return InferredData(held, inspector, target)
    return given


def check_target(where: str, target: str | None, data: Any) -> None:
    """Raise SigmaConfigError for a target of data that are not inferred, or that is not a name."""
    if target is not None and not isinstance(target, str):
        raise SigmaConfigError(f"{where}.target: must be the name of a column (got {target!r}).")
    if target is not None and not isinstance(data, InferredData):
        raise SigmaConfigError(
            f"{where}.target: names a column of a file, a frame or a table, and the data are {type(data).__name__}. "
            "Leave it out, or give these."
        )


def _is_path(given: str, plugins: Catalogue) -> bool:
    if plugins.offers("dataset", given):
        return False
    return os.sep in given or "/" in given or bool(Path(given).suffix) or Path(given).exists()


def _is_tabular(given: Any, target: str | None) -> bool:
    """Return whether data are a frame, a table of Arrow, or columns by name of which one is the target."""
    if isinstance(given, Dataset) or is_table(given):
        return False
    if isinstance(given, Mapping):
        return type(given) is dict and target in given
    return any(hasattr(type(given), name) for name in INTERFACES)


def find_inspector(place: Path, plugins: Catalogue, wishes: Collection[str] = ()) -> Inspector:
    """Return the first inspector that takes a file or a folder, if possible one that heeds all wishes.

    Raises SigmaConfigError if there is nothing at the place, or no inspector takes it.
    """
    if not place.exists():
        raise SigmaConfigError(f"{place}: there is no such file or folder. Check the path.")
    inspectors = sorted(list_inspectors(plugins), key=lambda inspector: len({*wishes} - {*inspector.wishes}))
    for inspector in inspectors:  # one that cannot heed all refuses
        if inspector.takes(place):
            return inspector
    raise SigmaConfigError(
        f"{place}: no installed plugin knows such data by its name. `sigma components inspector` lists what they take; "
        "data sets for other files are listed by `sigma components dataset`."
    )


def list_inspectors(plugins: Catalogue) -> Iterator[Inspector]:
    """Yield the installed inspectors."""
    for component in plugins.components("inspector"):
        yield load(component)()
