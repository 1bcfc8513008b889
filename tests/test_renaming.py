"""Former names of methods and arguments: they work until the next major version, and warn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pytest
from attrs import define

from sigma_kernel import renaming
from sigma_kernel.renaming import keep_former_names
from tests import signatures


@pytest.fixture(autouse=True)
def _tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renaming, "USES", {})


def contract() -> Any:
    """Return a contract whose method `run` is `forward`, with an argument `count` that is `rows`, since 1.1."""

    @keep_former_names("1.1", {"run": "forward", "value(count)": "rows"})
    @define(eq=False)
    class Work(ABC):
        @abstractmethod
        def forward(self, x: float) -> float:
            """Return a number."""

        def value(self, total: float, rows: int) -> float:
            return total / rows

    return Work


def test_a_class_that_defines_a_former_method_fulfils_the_present_contract() -> None:
    work = contract()
    with pytest.warns(
        DeprecationWarning, match="`Work.run` is `Work.forward` since API 1.1. Use the new name."
    ) as seen:

        @define(eq=False)
        class Old(work):  # type: ignore[misc]
            def run(self, x: float) -> float:
                return 2 * x

    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert Old().forward(3) == 6
    with pytest.warns(DeprecationWarning, match="`Work.run` is"):
        assert Old().run(3) == 6
    [(place, [use])] = renaming.USES.items()
    assert place.endswith("<locals>.Old")
    assert str(use) == "`Work.run` is `Work.forward` since API 1.1"


def test_a_new_class_is_called_by_a_former_name_and_warns_who_calls() -> None:
    work = contract()

    class New(work):  # type: ignore[misc]
        def forward(self, x: float) -> float:
            return 3 * x

    with pytest.warns(DeprecationWarning, match="Work.run") as seen:
        assert New().run(2) == 6
    assert seen[0].filename == __file__
    assert not renaming.USES


def test_a_class_that_defines_neither_is_abstract() -> None:
    with pytest.raises(TypeError, match="forward"):
        type("Nothing", (contract(),), {})()


def test_a_former_argument_is_taken_by_methods_of_the_contract_and_of_plugins() -> None:
    work = contract()

    class New(work):  # type: ignore[misc]
        def forward(self, x: float) -> float:
            return x

    with pytest.warns(DeprecationWarning, match=r"`Work.value\(count\)` is `Work.value\(rows\)` since API 1.1"):
        assert New().value(6.0, count=3) == 2.0
    assert New().value(6.0, rows=3) == New().value(6.0, 3) == 2.0
    with pytest.warns(DeprecationWarning, match="Old: `Work.value"):

        class Old(New):
            def value(self, total: float, count: int) -> float:
                return total * count

    assert Old().value(6.0, rows=3) == Old().value(6.0, count=3) == Old().value(6.0, 3) == 18.0

    class Newer(New):
        def value(self, total: float, rows: int) -> float:
            return total - rows

    with pytest.warns(DeprecationWarning, match="Work.value"):
        assert Newer().value(6.0, count=3) == 3.0


def test_own_rules_for_subclasses_go_on() -> None:
    seen = []

    class Noting:
        def __init_subclass__(cls, **settings: Any) -> None:
            seen.append((cls.__name__, settings))

    keep_former_names("1.1", {"run": "forward"})(Noting)

    class Loud(Noting, volume=3):
        pass

    class Louder(Loud, volume=4):
        pass

    assert seen == [("Loud", {"volume": 3}), ("Louder", {"volume": 4})]


def test_an_argument_of_a_function_has_its_former_name() -> None:
    @keep_former_names("1.1", {"dim": "axis"})
    def total(x: list[int], axis: int = 0) -> int:
        return sum(x) + axis

    with pytest.warns(DeprecationWarning, match=r"total\(dim\)` is `.*total\(axis\)` since API 1.1"):
        assert total([1, 2], dim=3) == 6
    assert total([1, 2], axis=3) == total([1, 2], 3) == 6
    assert signatures.describe("total", total) == "function (x, axis=...) formerly dim=axis"
