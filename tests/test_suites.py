"""The suites are where authors look for them."""

from __future__ import annotations

import ast
from pathlib import Path

from sigma_kernel import testing


def test_every_suite_can_be_imported_from_one_place() -> None:
    for name in dir(testing):
        assert isinstance(getattr(testing, name), type), name


def test_every_suite_of_the_folder_is_exported() -> None:
    folder = Path(str(testing.__file__)).parent
    classes = {
        n.name for path in folder.glob("*.py") for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)
    }
    assert {name for name in classes if name.endswith("Suite") and not name.startswith("_")} <= set(dir(testing))
