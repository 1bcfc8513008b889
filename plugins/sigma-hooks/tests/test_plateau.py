from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan
from pathlib import Path

import pytest

from sigma_hooks import EarlyStop, Plateau, Stop
from sigma_kernel import Criterion, Environment, SigmaConfigError, catalogue, when
from sigma_testing import CriterionSuite

Make = Callable[..., Environment]
TEXT = "plateau(training.loss, 3, tolerance=0.5) and iteration reaches 5"


class TestPlateau(CriterionSuite):
    def make(self) -> Criterion:
        return Plateau("x", window=3, tolerance=0.1)

    def rows(self) -> list[dict[str, float]]:
        return [{"x": x} for x in (4.0, 2.0, 1.0, 1.05, 0.95, -1.0, inf, -1.0, -1.0, -1.05)]

    def expected(self) -> list[bool | None]:
        return [None, None, False, False, True, False, None, None, None, True]


def test_extremes_that_differ_by_just_the_tolerance_are_a_plateau() -> None:
    asked: list[bool] = []
    for tolerance in (0.5, 0.4999):
        criterion, memory = Plateau("x", 2, tolerance), {}
        asked += [criterion.ask({"x": x}.get, memory, None) for x in (2.0, 1.0)]  # type: ignore[arg-type, func-returns-value]
    assert asked == [False, True, False, False]


def test_a_value_that_is_not_finite_begins_the_window_anew() -> None:
    criterion, memory = Plateau("x", 2), {}
    asked = [criterion.ask({"x": x}.get, memory, None) for x in (1.0, nan, 1.0, 1.0)]  # type: ignore[arg-type]
    assert asked == [False, False, False, True]


@pytest.mark.parametrize("given", [{"window": 1}, {"window": 2.5}, {"tolerance": -0.1}])
def test_settings_out_of_range_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(SigmaConfigError, match=f"Plateau.{next(iter(given))}: must be"):
        Plateau("x", **given)  # type: ignore[arg-type]


def test_text_and_python_make_the_same_criterion() -> None:
    fluent = Plateau("training.loss", 3, 0.5) & when("iteration").reaches(5)
    assert Criterion.parse(TEXT).bound(catalogue().load) == fluent
    assert str(fluent) == "sigma-hooks:plateau(training.loss, window=3, tolerance=0.5) and iteration reaches 5"


TABLE = {"type": "plateau", "value": "training.loss", "window": 3, "tolerance": 0.5}


@pytest.mark.parametrize("chosen", [TEXT, Criterion.parse(TEXT), TABLE])
def test_a_hook_made_in_python_is_due_when_a_plugins_criterion_holds(classifier: Make, chosen: object) -> None:
    with classifier(hooks={"end": {"type": "stop", "when": chosen, "every": "1 iteration"}}) as sigma:
        sigma.trainer("trainer").fit(epochs=9)
        assert sigma.get("trainer.iteration") == (3 if isinstance(chosen, dict) else 5)
        assert str(sigma.get("trainer.hooks.end.when")).startswith("sigma-hooks:plateau(training.loss")


def test_stop_evaluates_a_plugins_criterion_as_often_as_its_values_change(classifier: Make) -> None:
    with classifier(hooks={"end": Stop(when=TEXT)}) as sigma:
        sigma.trainer("trainer").fit(epochs=9)
        assert sigma.get("trainer.iteration") == 5


def test_a_plugins_criterion_is_set_live_and_an_unknown_one_is_refused(classifier: Make) -> None:
    with classifier(hooks={"end": Stop(when="epoch reaches 9")}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=2)
        with pytest.raises(
            SigmaConfigError, match=r"criterion 'plato': no plugin offers it\. Did you mean 'plateau'\?"
        ):
            sigma.set("trainer.hooks.end.when", "plato(training.loss)")
        sigma.set("trainer.hooks.end.every", "1 iteration")
        sigma.set("trainer.hooks.end.when", "plateau(training.loss, 2, tolerance=0.9)")
        trainer.fit(epochs=9)
        assert sigma.get("trainer.iteration") == 4


def test_a_run_with_a_plugins_criterion_is_replayed_to_the_bit(classifier: Make, tmp_path: Path) -> None:
    def run(folder: Path) -> Environment:
        sigma = classifier(hooks={"end": Stop(when="plateau(training.loss, 6, tolerance=0.9)")})
        sigma.folder = folder
        return sigma

    with run(tmp_path / "first") as first:
        first.trainer("trainer").fit(epochs=9)
        assert first.get("trainer.iteration") == 6
        memory = first.trainer("trainer").session.state.memory["end"]["criterion"]
        assert len(json.loads(json.dumps(memory))[""]["seen"]) == 6
        assert first.run_folder is not None
    with run(tmp_path / "again") as again:
        assert again.replay(first.run_folder)[1] == {}


def test_other_hooks_take_it_as_well(classifier: Make) -> None:
    hooks = {"end": EarlyStop("training.loss", patience=1, when="plateau(training.loss, 2, tolerance=0.9)")}
    with classifier(hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
