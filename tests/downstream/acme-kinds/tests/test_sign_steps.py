import numpy as np

from sigma_kernel import GradientOptimiser
from sigma_testing import GradientOptimiserSuite
from acme_kinds.sign_steps import SignSteps


class TestSignSteps(GradientOptimiserSuite):
    def make(self) -> GradientOptimiser:
        return SignSteps(learning_rate=0.01)

    def expected(self, start: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        return np.asarray(start - 0.01 * np.cumsum(np.sign(gradients), axis=0))
