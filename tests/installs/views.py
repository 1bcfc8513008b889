"""Views of an environment: virtual environments that hold links to what some requirements need, and nothing else.

All distributions are installed once. A view of some of them takes a moment, imports nothing that its requirements do
not declare, also in other processes, and shares the compiled modules of the environment.
"""

from __future__ import annotations

import os
import venv
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from attrs import field, frozen
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OUTSIDE = {"..", "__pycache__"}  # what list_outside lists, and modules that Python compiles itself


def list_distributions(site: Path) -> dict[str, Distribution]:
    """Return the distributions in a folder of packages, by their canonical names."""
    return {canonicalize_name(one.metadata["Name"]): one for one in distributions(path=[str(site)])}


def find_site(environment: Path) -> Path:
    """Return the folder of packages of a virtual environment."""
    (site,) = environment.glob("lib/python*/site-packages")
    return site


def list_top_level(distribution: Distribution) -> set[str]:
    """Return the files and folders that a distribution adds to the folder of packages."""
    return {file.parts[0] for file in distribution.files or ()} - OUTSIDE


def list_outside(site: Path, distribution: Distribution) -> list[Path]:
    """Return what a distribution adds elsewhere, such as programs and libraries, relative to the environment.

    Scripts are left out: the line that they begin with leads to the interpreter of the environment.
    """
    paths = [Path(os.path.normpath(site / file)) for file in distribution.files or () if file.parts[0] == ".."]
    return [path.relative_to(site.parents[2]) for path in paths if path.read_bytes()[:2] != b"#!"]


def list_required(installed: Mapping[str, Distribution], requirements: Iterable[str]) -> set[str]:
    """Return the names of the distributions that requirements need, directly or not.

    Raises KeyError for a requirement that is not installed.
    """
    pending, seen = [Requirement(one) for one in requirements], set[tuple[str, str]]()
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                lines = map(Requirement, installed[name].requires or ())
                pending += [one for one in lines if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


@frozen
class View:
    """A virtual environment with what requirements need of an environment, whose folder of packages is given."""

    folder: Path
    whole: Path
    names: set[str] = field(factory=set)

    @classmethod
    def create(cls, folder: Path, whole: Path, requirements: Iterable[str]) -> View:
        """Link what the requirements need into a new virtual environment."""
        installed = list_distributions(whole)
        view = cls(folder, whole, list_required(installed, requirements))
        venv.create(folder, symlinks=True)
        for name in set().union(*(list_top_level(installed[one]) for one in view.names)):
            (find_site(folder) / name).symlink_to(whole / name)
        for path in set().union(*(list_outside(whole, installed[one]) for one in view.names)):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).symlink_to(whole.parents[2] / path)
        return view

    @property
    def python(self) -> Path:
        """Return the path of its interpreter."""
        return self.folder / "bin" / "python"
