"""Rows that are drawn from several open blocks: edited, resumed in the middle of an epoch, rewound and replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.environment import Environment
from sigma_testing.steering import (
    Sweep,
    crash,
    decisive,
    small_environment,
    steered_environment,
    train_until_crash,
)
from sigma_training.data.dataset import Rows

SCRIPT: Mapping[int, Callable[[Environment], Any]] = {
    2: lambda sigma: [sigma.exclude([1, 2, 3]), sigma.relabel(4, [0.5])],
    7: lambda sigma: sigma.set("trainer.batch_size", 4),
    12: lambda sigma: sigma.include(2),
}


class OpenRows(Rows):
    """Rows in blocks of four, drawn from two at once."""

    def __init__(self, sections: Mapping[str, np.ndarray]) -> None:
        count = len(next(iter(sections.values())))
        super().__init__(*({n: x[first : first + 4] for n, x in sections.items()} for first in range(0, count, 4)))

    @property
    def open_blocks(self) -> int:
        return 2


@pytest.fixture(autouse=True)
def several_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rows of environments for tests, 23, be in three lots."""
    monkeypatch.setattr("sigma_testing.steering.Rows", OpenRows)


@pytest.mark.parametrize(("at", "saved"), [(3, None), (3, 2), (6, 4), (11, 9), (14, 13), (18, 2)])
def test_a_run_that_ends_in_the_middle_of_an_epoch_is_resumed_to_the_bit(
    tmp_path: Path, at: int, saved: int | None
) -> None:
    save = {} if saved is None else {saved: lambda sigma: [SCRIPT.get(saved, id)(sigma), sigma.send("save")]}
    with steered_environment({**SCRIPT}, last=24) as plain:
        plain.run()
        wanted = decisive(plain.trainer("trainer"))[0]
    before = {n: act for n, act in {**SCRIPT, **save}.items() if n < at}
    with steered_environment({**before, at: crash}, last=24) as sigma:
        run = train_until_crash(sigma, tmp_path)
    with steered_environment({n: act for n, act in SCRIPT.items() if n >= at}, last=24) as again:
        again.resume(run)
        again.run()
        assert decisive(again.trainer("trainer"))[0] == wanted
    with small_environment(Sweep()) as replayed:
        assert replayed.replay(run)[1] == {}


def test_epochs_after_a_rewind_are_repeated_to_the_bit() -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=3)
        wanted = decisive(trainer)[0]
        sigma.rewind(1, "epoch")
        trainer.fit(epochs=2)
        assert decisive(trainer)[0] == wanted


def test_rows_that_are_left_out_change_the_lots_of_the_next_epoch() -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        sigma.exclude([*range(4), 9])
        trainer.fit(epochs=2)
        assert trainer.session.setup.feed.iterations_per_epoch == 4  # 18 rows in batches of 5
        assert trainer.view.edits()["training"]["excluded"] == [0, 1, 2, 3, 9]
