"""Rules for parameters: their patterns are checked before training."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Arrays
from sigma_initialisers import Constant
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_layers import Input, Output, SoftmaxCrossEntropy
from sigma_optimisers import L2, Adam


@pytest.mark.parametrize("where", ["initialisers.x", "optimiser.settings.x", "optimiser.transforms.x"])
def test_a_rule_that_matches_nothing_is_refused_with_the_existing_addresses(where: str) -> None:
    with Environment() as sigma:
        trainer = sigma.create_trainer(batch_size=2, data=Arrays(inputs=np.ones((4, 2)), targets=np.zeros(4, int)))
        trainer.network = Input(2) + Output(2) + SoftmaxCrossEntropy()
        trainer.optimiser = Adam(
            transforms={"x": L2(match="9-*")} if "transforms" in where else {},
            settings={"x": {"match": "9-*"}} if "settings" in where else {},
        )
        trainer.initialisers = {} if "optimiser" in where else {"x": ("9-*", Constant(1.0))}
        with pytest.raises(
            SigmaConfigError, match=f"trainer.{where}: '9-[*]' matches no parameter. There are 1-output.weights"
        ):
            trainer.fit(epochs=1)
