"""Which backend is advised, and which backends are compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sigma_bench import installed
from sigma_bench.advice import take
from sigma_bench.command import _backend_name
from sigma_bench.contest import Result, check_first_losses
from sigma_bench.installed import installed_backends
from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_run.config import override, read


def result(name: str, seconds: Sequence[float], begins: float = 0.0) -> Result:
    return Result(name, seconds, first=seconds[0], peak_bytes=1, rows=1.0, started_s=begins)


def test_the_fastest_is_advised_with_its_ratio_to_the_next() -> None:
    advice = take([result("slow", [0.1]), result("next", [440e-6]), result("quick", [200e-6])], "slow")
    assert str(advice) == ('quick: 200 us an iteration, 2.2 times as fast as the next (next).\nSet backend = "quick".')
    assert advice.entry == {"take": "quick", "close": False, "sooner": None}


def test_the_one_that_is_configured_needs_no_change() -> None:
    advice = take([result("quick", [0.1]), result("slow", [0.3])], "quick")
    assert str(advice).endswith("It is what you have set.")


def test_a_single_backend_is_said_to_be_the_only_one() -> None:
    assert str(take([result("a", [0.1])], "a")).startswith(
        "a: 100 ms an iteration. No other installed backend trains this."
    )


def test_a_difference_within_the_spread_is_none() -> None:
    advice = take([result("a", [1.0, 1.1, 1.2, 1.3]), result("b", [1.05, 1.15, 1.25, 1.35])], "b")
    assert advice.close
    assert "a: 1.15 s an iteration, no faster than b within the spread." in str(advice)


def test_one_that_begins_sooner_is_named_with_the_iterations_that_make_up_for_it() -> None:
    advice = take([result("quick", [0.001], 9.0), result("slow", [0.003], 5.0), result("slower", [0.1], 4.0)], "")
    assert advice.sooner is not None
    assert (advice.sooner.name, advice.even) == ("slow", 2000)  # (9 - 5) / (0.003 - 0.001); of the other, 51
    told = str(advice)
    assert "For fewer than 2,000 iterations, slow is done first: it starts and compiles 4 s\nsooner." in told
    assert max(map(len, told.splitlines())) <= 80
    assert advice.entry["sooner"] == {"name": "slow", "up_to_iterations": 2000}


@pytest.mark.parametrize("seconds", [[0.1], [0.1, 0.101, 0.102]])
def test_equal_times_give_an_advice_without_a_number_of_iterations(seconds: Sequence[float]) -> None:
    advice = take([result("a", [0.1], 2.0), result("b", seconds, 1.0)], "a")
    assert (advice.best.name, advice.close) == ("a", True)
    assert str(advice).endswith("\nb starts and compiles 1 s sooner.")
    assert advice.entry["sooner"] == {"name": "b", "up_to_iterations": None}


def test_first_losses_that_no_rounding_explains_end_the_measurement() -> None:
    check_first_losses("a", "b", 2.0, 2.001)
    check_first_losses("a", "b", float("nan"), float("nan"))
    with pytest.raises(SigmaTrainingError, match="'b': its first loss is 2.1, that of 'a' is 2. .* `sigma diff`"):
        check_first_losses("a", "b", 2.0, 2.1)


def test_the_configured_backend_is_that_of_the_trainer_or_of_the_run_or_the_default(small: Path) -> None:
    document = read(small)
    assert _backend_name(document) == catalogue().default_backend().rpartition(":")[2]
    document = override(document, "run.backend={ type = 'acme-naps:naps', seconds = 3 }")
    assert _backend_name(document) == "naps"
    assert _backend_name(override(document, "trainer.backend=numpy")) == "numpy"


@pytest.mark.usefixtures("naps")
def test_backends_that_are_used_by_name_only_are_not_compared() -> None:
    found = installed_backends(lambda text: None)
    assert {"numpy", "naps"} <= {*found}
    assert "debug" not in found
    assert found.index("numpy") < found.index("naps")  # which has no preference


@pytest.mark.usefixtures("naps")
def test_a_backend_that_cannot_be_made_here_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from acme_naps.naps import Naps  # installed by the fixture

    def no_device(self: object) -> None:
        raise RuntimeError("there is no device\nsecond line")

    monkeypatch.setattr(Naps, "__attrs_post_init__", no_device, raising=False)
    monkeypatch.setattr(Naps, "__init__", lambda self: no_device(self))
    told: list[str] = []
    assert "naps" not in installed_backends(told.append)
    assert "naps: left out: there is no device" in told
    monkeypatch.setattr(installed, "unusable", lambda name: "gone")
    with pytest.raises(SigmaConfigError, match="no installed backend can be used here"):
        installed_backends(told.append)
