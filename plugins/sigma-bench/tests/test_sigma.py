"""Sigma as a contestant: its own backend or another, and its hooks except those that stop training."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigma_bench.contestants.sigma import Sigma
from sigma_run.config import load
from sigma_training import NetworkTrainer

COUNT = "hooks.count={ type = 'running_time', every = '1 epoch' }"


def test_sigma_trains_for_the_given_iterations_with_its_hooks(small: Path) -> None:
    sigma = Sigma(load(small, [COUNT]))
    sigma.run(30)  # the configuration would end it after two epochs of five iterations
    assert len(sigma.losses) == 30
    assert list(sigma.trainer.hooks) == ["count"]
    assert len(sigma.trainer.history["running_time"]) == 6


def test_a_hook_that_ends_training_for_good_is_left_out(small: Path) -> None:
    stop = "{ type = 'early_stop', value = 'training.loss', every = '1 iteration', patience = 1 }"
    sigma = Sigma(load(small, [f"hooks.early={stop}", COUNT]))
    sigma.run(30)
    assert len(sigma.losses) == 30
    assert list(sigma.trainer.hooks) == ["count"]


def test_a_hook_that_stops_training_does_not_end_a_round(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma, fit = Sigma(load(small)), NetworkTrainer.fit
    monkeypatch.setattr(NetworkTrainer, "fit", lambda trainer, iterations: fit(trainer, iterations=min(iterations, 7)))
    sigma.run(30)
    assert len(sigma.losses) == 30


@pytest.mark.usefixtures("naps")
def test_the_configured_backend_keeps_its_settings_under_any_of_its_names(small: Path) -> None:
    configuration = load(small, ["run.backend={ type = 'naps', seconds = 3 }"])
    for name in ("", "naps", "acme-naps:naps"):
        sigma = Sigma(configuration, name)
        assert sigma.trainer.backend.seconds == 3
        assert sigma.name == (name or "naps")


@pytest.mark.usefixtures("naps")
def test_a_backend_can_be_replaced_by_another(small: Path) -> None:
    sigma = Sigma(load(small), "naps")
    sigma.run(3)
    assert type(sigma.trainer.session.setup.programs.backend).__name__ == "Naps"
    assert sigma.name == "naps"


def test_the_feed_reports_rows_and_iterations_per_epoch(small: Path) -> None:
    assert Sigma(load(small)).epoch == (42, 5)
    assert Sigma(load(small, ["data.last_batch=drop"])).epoch == (40, 4)


def test_dropout_can_be_switched_off(small: Path) -> None:
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
