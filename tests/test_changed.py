"""Which tests a change can touch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.changed import affected, changed_files, required

REQUIRES = {"sigma-data": set(), "sigma-layers": {"sigma-plot"}, "sigma-plot": set(), "sigma-bench": {"sigma-layers"}}


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ([], []),
        (["docs/concepts.md", "README.md"], ["tests/test_docs.py"]),
        (["plugins/sigma-bench/sigma_bench/series.py"], ["tests", "plugins/sigma-bench/tests"]),
        (
            ["docs/concepts.md", "plugins/sigma-plot/README.md"],
            ["tests", *(f"plugins/sigma-{name}/tests" for name in ("bench", "layers", "plot"))],
        ),
        (["tests/test_docs.py"], ["tests"]),
        (["sigma_kernel/clock.py"], ["tests", *(f"plugins/{name}/tests" for name in sorted(REQUIRES))]),
        (["tox.ini"], ["tests", *(f"plugins/{name}/tests" for name in sorted(REQUIRES))]),
    ],
)
def test_a_change_touches_the_tests_of_its_rooms_and_of_those_that_require_them(changed, tests):
    assert affected(changed, REQUIRES) == tests


def test_rooms_require_what_their_projects_declare():
    assert {"sigma-recipes", "sigma-testing"} <= required()["sigma-bench"]


def test_a_change_is_what_differs_from_main_of_the_remote_where_that_is_known(tmp_path: Path):
    def git(*arguments: str) -> None:
        name = ["-c", "user.name=Acme", "-c", "user.email=acme@acme.invalid", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def commit(name: str) -> None:
        (tmp_path / name).write_text("")
        git("add", name)
        git("commit", "-m", name)

    git("init", "-b", "main")
    commit("released.py")
    git("update-ref", "refs/heads/before", "HEAD")
    commit("local.py")
    git("checkout", "-b", "mine")
    commit("mine.py")
    (tmp_path / "new.py").write_text("")
    assert changed_files(tmp_path) == ["mine.py", "new.py"]
    git("update-ref", "refs/remotes/origin/main", "before")
    assert changed_files(tmp_path) == ["local.py", "mine.py", "new.py"]
