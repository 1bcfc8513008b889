"""Arguments of other libraries are refused with where they belong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_testing import Sweep, small_environment

X, Y = np.zeros((4, 3)), np.zeros(4)


@pytest.mark.parametrize(
    ("method", "args", "named", "said"),
    [
        ("fit", (X, Y), {}, "fit: takes no data (got ndarray). Set trainer.data = (x, y) before training."),
        ("fit", (X, Y), {"epochs": 2}, "fit: takes no data (got ndarray). Set trainer.data = (x, y) before training."),
        ("fit", ([[1.0]],), {}, "fit: takes no data (got list). Set trainer.data = (x, y) before training."),
        ("fit", (), {"x": X, "y": Y}, "fit: has no setting 'x'. Set trainer.data = (x, y) before training."),
        ("fit", (), {"batch_size": 8}, "fit: has no setting 'batch_size'. Set trainer.batch_size before training."),
        ("fit", (), {"verbose": 0}, "fit: has no setting 'verbose'. Write progress=True or progress=False"),
        ("fit", (), {"epoch": 3}, "fit: has no setting 'epoch'. Did you mean 'epochs'?"),
        ("evaluate", (X, Y), {}, "evaluate: metrics are a table by name. For other data, write evaluate((x, y))."),
        ("evaluate", (), {"y": Y}, "evaluate: has no setting 'y'. Write evaluate((x, y))."),
    ],
)  # fmt: skip
def test_arguments_of_other_libraries_are_refused_with_where_they_belong(
    method: str, args: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(SigmaConfigError, match=f"^{re.escape(said)}") as error:
            getattr(trainer, method)(*args, **named)
        assert "\n" not in str(error.value)
        assert len(trainer.fit(epochs=1)["training.loss"]) == 5
