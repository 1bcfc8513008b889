"""Training with mergers of gradients, as files and Python choose them."""

from __future__ import annotations

import numpy as np
import pytest

import sigma_ml as sm
from sigma_kernel import SigmaConfigError
from sigma_operator_local import LocalOperator, Sum


def train(merger: str) -> str | None:
    operator = f"trainer.operator={{type='local', shards=3, merger={merger}}}"
    return sm.from_file("iris", "trainer.epochs=2", operator).run(progress=False).parameters_sha256


def test_a_file_chooses_a_merger_and_one_for_each_parameter() -> None:
    assert train("'mean'") != train("'max'")
    one, two = train("{type='several', rules={'**'='max'}}"), train("'max'")
    assert one == two
    assert train("{type='several', rules={'**.weights'='max'}}") not in (two, train("'sum'"))


def test_the_sum_is_the_default() -> None:
    assert train("'sum'") == train("{type='several', rules={'no.such'='max'}}")
    assert LocalOperator().merger == Sum()


def test_rows_with_weights_have_no_other_merger_than_the_sum() -> None:
    x, y = np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)

    def fit(merger: object) -> None:
        trainer = sm.Environment("e").create_trainer(
            data={"training": {"inputs": x, "targets": y, "weights": np.arange(1.0, 9.0, dtype=np.float32)}},
            network='input(2) + output(1) + squared_difference(weights="weights")',
            optimiser="adam",
            operator={"type": "local", "shards": 2, "merger": merger},
        )
        trainer.fit(epochs=1, progress=False)

    fit("sum")
    with pytest.raises(SigmaConfigError, match="^merger: the rows of these data have weights"):
        fit("mean")
