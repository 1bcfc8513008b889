"""Each room passes its tests with only its declared dependencies, of one environment that has those of all rooms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.installs.release import run
from tests.installs.views import View, find_site, list_distributions, list_top_level

ROOT = Path(__file__).parents[2]
APART = {"browser", "peers"}  # these need what no room declares
PARTS = {"sigma-backend-numba": 3, "sigma-run": 2, "sigma-training": 3}  # of the rooms whose tests take longest
ROOMS = sorted({path.parent.parent for path in ROOT.glob("plugins/*/tests/test_*.py")})  # others are heavy
SHARES = [(room, part) for room in ROOMS for part in range(PARTS.get(room.name, 1))]
IMPORTS = """
import sys
from importlib import import_module

def is_refused(name):
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        return error.name == name
    return False

print([name for name in sys.argv[1:] if not is_refused(name)])
"""
CHILD = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"
pytestmark = pytest.mark.installs


def create_view(room: Path, whole: Path, tmp_path: Path) -> View:
    """Return an environment with what a room and its tests declare."""
    return View.create(tmp_path / "venv", whole, [f"{room.name}[test]", "hypothesis", "pytest"])


@pytest.mark.parametrize(("room", "part"), SHARES, ids=lambda one: getattr(one, "name", one))
def test_a_room_passes_its_tests_with_only_its_declared_dependencies(room, part, whole, tmp_path):
    view = create_view(room, whole, tmp_path)
    tests = [
        str(path) for path in sorted((room / "tests").rglob("test_*.py")) if not APART & {*path.relative_to(room).parts}
    ]
    some = tests[part :: PARTS.get(room.name, 1)]
    print(run(view.python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *some, folder=ROOT))


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_cannot_import_what_it_does_not_declare_nor_can_its_processes(room, whole, tmp_path):
    view, installed = create_view(room, whole, tmp_path), list_distributions(whole)
    undeclared = set().union(*(list_top_level(installed[name]) for name in installed.keys() - view.names))
    names = sorted({name.partition(".")[0] for name in undeclared if not name.endswith((".dist-info", ".pth"))})
    assert names
    assert run(view.python, "-P", "-c", IMPORTS, *names, folder=tmp_path).strip() == "[]"
    assert run(view.python, "-c", CHILD, "-P", "-c", IMPORTS, *names, folder=tmp_path).strip() == "[]"
    assert list_distributions(find_site(view.folder)).keys() == view.names
