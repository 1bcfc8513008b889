"""Sigma as a contestant: its own backend or another, and its hooks but for those that end training."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigma_bench.contestants.sigma import Sigma
from sigma_kernel import Trainer
from sigma_kernel.config import load

COUNT = "hooks.count={ type = 'running_time', every = '1 epoch' }"


def test_it_trains_for_as_long_as_it_is_told_and_with_its_hooks(small: Path) -> None:
    sigma = Sigma(load(small, [COUNT]))
    sigma.run(30)  # the file would end it after two epochs of five
    assert len(sigma.losses) == 30
    assert list(sigma.trainer.hooks) == ["count"]
    assert len(sigma.trainer.history["running_time"]) == 6


def test_a_hook_that_stops_it_early_and_for_good_is_left_out(small: Path) -> None:
    stop = "{ type = 'early_stop', value = 'training.loss', every = '1 iteration', patience = 1 }"
    sigma = Sigma(load(small, [f"hooks.early={stop}", COUNT]))
    sigma.run(30)
    assert len(sigma.losses) == 30
    assert list(sigma.trainer.hooks) == ["count"]


def test_who_stops_it_on_the_way_ends_no_round(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma, fit = Sigma(load(small)), Trainer.fit
    monkeypatch.setattr(Trainer, "fit", lambda trainer, iterations: fit(trainer, iterations=min(iterations, 7)))
    sigma.run(30)
    assert len(sigma.losses) == 30


@pytest.mark.usefixtures("naps")
def test_its_own_backend_keeps_its_settings_under_any_of_its_names(small: Path) -> None:
    configuration = load(small, ["run.backend={ type = 'naps', seconds = 3 }"])
    for name in ("", "naps", "acme-naps:naps"):
        sigma = Sigma(configuration, name)
        assert sigma.trainer.backend == {"type": "acme-naps:naps", "seconds": 3}
        assert sigma.name == (name or "naps")


@pytest.mark.usefixtures("naps")
def test_another_backend_takes_its_place(small: Path) -> None:
    sigma = Sigma(load(small), "naps")
    sigma.run(3)
    assert type(sigma.trainer.session.setup.programs.backend).__name__ == "Naps"
    assert sigma.name == "naps"


def test_it_says_how_many_rows_and_iterations_an_epoch_has(small: Path) -> None:
    assert Sigma(load(small)).epoch == (42, 5)
    assert Sigma(load(small, ["data.last_batch=drop"])).epoch == (40, 4)


def test_nothing_is_dropped_where_that_is_wanted(small: Path) -> None:
    plain = [
        "network.architecture=input(3, 3) + flatten() + dense(7, activation='relu', name='a') + dense(5,"
        " activation='relu', name='b') + output(3, name='c') + softmax_cross_entropy()",
        "initialisers.weights={ match = '**', type = 'constant', value = 0.1 }",
    ]
    with_dropout = [plain[0].replace("flatten()", "flatten() + dropout(0.2)"), plain[1]]
    losses = []
    for overrides, drops in ((plain, True), (with_dropout, False), (with_dropout, True)):
        sigma = Sigma(load(small, overrides), drops=drops)
        sigma.run(7)
        losses.append(list(sigma.losses))
    assert losses[0] == losses[1] != losses[2]
