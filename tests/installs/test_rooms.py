"""Each room passes its tests with only its declared dependencies."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
APART = {"browser", "peers"}  # these need what no room declares
PARTS = {"sigma-backend-numba": 3}  # of a room whose tests take longest: each in an environment of its own
ROOMS = sorted({path.parent.parent for path in ROOT.glob("plugins/*/tests/test_*.py")})  # others are heavy


SHARES = [(room, part) for room in ROOMS for part in range(PARTS.get(room.name, 1))]


@pytest.mark.installs
@pytest.mark.parametrize(("room", "part"), SHARES, ids=lambda one: getattr(one, "name", one))
def test_a_room_passes_its_tests_with_only_its_declared_dependencies(room, part, place):
    here = place()
    here.install(room.name, "pytest", "hypothesis", extra="[test]")
    tests = [
        str(path) for path in sorted((room / "tests").rglob("test_*.py")) if not APART & {*path.relative_to(room).parts}
    ]
    print(here.run("pytest", "-q", "-p", "no:cacheprovider", *tests[part :: PARTS.get(room.name, 1)], folder=ROOT))
