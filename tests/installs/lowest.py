"""Print the lowest version of every library that the project's distributions declare, as constraints of pip.

``python tests/installs/lowest.py FILE`` writes them to a file; ``tox -e lowest`` installs by it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
DECLARING = (">=", "~=", "==")  # operators whose version is the lowest that a requirement accepts
ELSEWHERE = ("docs", "peers")  # extras of other environments


def constraints(root: Path) -> dict[str, Version]:
    """Return the lowest version by library; if several distributions declare one, the highest of theirs."""
    lowest: dict[str, Version] = {}
    for one in requirements(root):
        versions = [Version(part.version.removesuffix(".*")) for part in one.specifier if part.operator in DECLARING]
        if versions and not one.name.startswith("sigma-"):
            lowest[one.name] = max([*versions, lowest.get(one.name, versions[0])])
    return lowest


def requirements(root: Path) -> Iterator[Requirement]:
    """Yield what the kernel and the rooms require, and their extras for users and for tests."""
    for file in (root / "pyproject.toml", *sorted(root.glob("plugins/*/pyproject.toml"))):
        project = tomllib.loads(file.read_text())["project"]
        extras = project.get("optional-dependencies", {}).items()
        for group in (project.get("dependencies", []), *(found for name, found in extras if name not in ELSEWHERE)):
            yield from map(Requirement, group)


def main(file: str) -> None:
    """Write the constraints to a file."""
    lines = [f"{name}=={version}\n" for name, version in sorted(constraints(ROOT).items())]
    Path(file).write_text("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
