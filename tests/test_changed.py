"""Which tests a change can touch."""

from __future__ import annotations

import pytest

from tests.changed import affected, required

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
