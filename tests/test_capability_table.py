"""The table of backends.md: complete, as kept, and as the suite finds it; the page's backend passes the suite."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from figures import capabilities
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite, samples

FOLDER = "Run python -m figures.capabilities in docs/"


def test_the_page_has_the_columns_that_were_kept():
    page = capabilities.PAGE.read_text("utf-8")
    assert capabilities.insert(page, capabilities.read()) == page, FOLDER


def test_every_op_belongs_to_one_family():
    listed = Counter(op for ops in capabilities.FAMILIES.values() for op in ops.split())
    assert listed == Counter(samples().keys())


def test_every_test_of_the_suite_belongs_to_one_feature():
    shared = {"it_can_be_made_and_used", "its_settings_are_fields_of_its_class", "its_settings_can_be_saved_and_loaded"}
    shared |= {"a_process_with_another_seed_of_hashes_computes_the_same"}
    tests = {name.removeprefix("test_") for name in dir(BackendSuite) if name.startswith("test_")}
    listed = Counter(test for tests in capabilities.FEATURES.values() for test in tests.split())
    assert listed == Counter(tests - shared)


@pytest.mark.rooms
@pytest.mark.parametrize("name", ["numpy", "numba"])
def test_the_column_of_a_backend_is_what_it_can_do_now(name):
    kept, found = capabilities.read()[name], capabilities.examined(name, quick=True)
    assert {row: said for row, said in kept.items() if row in found} == with_float64(kept, found), FOLDER


def with_float64(kept: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    """Return what a quick examination found, with the float64 that is kept where it found float32."""
    return {row: kept[row] if said == "float32" == kept[row].split(",")[0] else said for row, said in found.items()}


def test_a_wrong_op_and_a_failing_test_are_a_no():
    (plain,) = re.findall(r"```python\n(from collections.*?)```", capabilities.PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, type[Backend]] = {}
    exec(plain, names)

    class Wrong(names["Plain"]):  # type: ignore[misc, name-defined]
        def to_host(self, array):
            return super().to_host(array) * 2

    assert capabilities._agreeing(names["Plain"](), ["tanh"], capabilities.PRECISIONS) == "float32, float64"
    assert capabilities._agreeing(Wrong(), ["tanh"], capabilities.PRECISIONS) == "no"
    suite = type("Suite", (BackendSuite,), {"make": lambda self: Wrong()})()
    assert capabilities._passes(suite, ["denormals_are_kept_or_flushed_to_zero"]) == "no"


def test_a_column_that_lacks_a_row_says_so_and_both_precisions_are_a_yes():
    told = capabilities.table({"a": {"products": "float32, float64", "bursts": "no"}, "b": {"products": "float32"}})
    assert (
        told == "|  | `a` | `b` |\n| --- | --- | --- |\n| products | yes | float32 |\n| bursts | no | not measured |\n"
    )
