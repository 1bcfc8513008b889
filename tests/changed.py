"""Run the tests that a change can touch: ``tox -e changed``, with arguments of pytest.

A change is what differs from ``origin/main``, or from the branch ``main`` where that is unknown, with files that are
not committed. Rooms are tested if they, or rooms that they require, have changed; tests that cross rooms, unless only
pages have changed. CI always runs all.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("docs/", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
ROOM = re.compile(r"plugins/(sigma-[a-z-]+)/")


def affected(changed: Iterable[str], requires: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the tests that changed files can touch, as arguments of pytest.

    ``requires`` has the rooms that each room requires, also for its tests.
    """
    paths = [*changed]
    found = {match[1] for path in paths if (match := ROOM.match(path))}
    if any(not path.startswith((*PAGES, "plugins/", "tests/")) for path in paths):
        found = {*requires}  # the kernel, or what all tests share
    while more := {room for room, needed in requires.items() if found & {*needed}} - found:
        found |= more
    rooms = [f"plugins/{room}/tests" for room in sorted(found)]
    if all(path.startswith(PAGES) for path in paths):
        return ["tests/test_docs.py"] if paths else []
    return ["tests", *rooms]


def required() -> dict[str, set[str]]:
    """Return the rooms that each room requires, also for its tests."""
    found = {}
    for path in ROOT.glob("plugins/*/pyproject.toml"):
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        lines = [*project.get("dependencies", []), *project.get("optional-dependencies", {}).get("test", [])]
        found[path.parent.name] = {re.split(r"[ \[~>=<]", line)[0] for line in lines}
    return found


def changed_files(root: Path = ROOT) -> list[str]:
    """Return the files that differ from ``origin/main`` where that is known, else from ``main``, committed or not."""
    known = _git(root, "for-each-ref", "--format=%(refname)", "refs/remotes/origin/main", "refs/heads/main")
    base = _git(root, "merge-base", "HEAD", known[-1])[0]  # refs are sorted: heads before remotes
    return [*_git(root, "diff", "--name-only", base), *_git(root, "ls-files", "--others", "--exclude-standard")]


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    chosen = [path for path in affected(changed_files(), required()) if (ROOT / path).exists()]
    print("nothing has changed" if not chosen else f"testing {' '.join(chosen)}", flush=True)
    unused = ["--ignore-glob=*/peers", "--ignore-glob=*/browser", "-m", "not installs and not browser and not long"]
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", *unused, *sys.argv[1:], *chosen]) if chosen else 0)
