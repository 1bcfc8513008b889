"""The table of performance.md with the compile times of the recipes."""

from __future__ import annotations

import pytest

from figures import compiling, files
from sigma_kernel import catalogue

PAGE = (
    f"before\n{compiling.BEGIN}\n| recipe | cold |\n| --- | --- |\n| `b` | 2 |\n| `a` | 1 |\n\n{compiling.END}after\n"
)


def test_a_row_takes_the_place_of_that_of_its_recipe_and_others_stay():
    page = compiling.insert(PAGE, [["`b`", "3"], ["`aa`", "4"]])
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == ["| `a` | 1 |", "| `aa` | 4 |", "| `b` | 3 |"]
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert compiling.insert(page, []) == page


@pytest.mark.rooms
def test_the_page_has_a_row_for_each_recipe_that_is_not_a_benchmark():
    page = compiling.PAGE.read_text("utf-8")
    table = page.partition(compiling.BEGIN)[2].partition(compiling.END)[0]
    recipes = [one.name for one in catalogue().components("recipe") if "bench" not in one.name]
    missing = [name for name in recipes if f"| `{name}` |" not in table]
    assert recipes
    assert not missing, "Run python -m figures.compiling in docs/"


@pytest.mark.long
@pytest.mark.rooms
def test_a_process_of_its_own_reports_seconds_and_memory(tmp_path):
    found = compiling.measured(
        str(tmp_path), "sigma", "parkinsons", str(tmp_path / "rows"), *files.settings("parkinsons", None)
    )
    assert all(0 < seconds < 600 for seconds in found["seconds"])
    assert found["memory"] > 10
    assert (tmp_path / "rows.npz").exists()
