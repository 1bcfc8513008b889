import os
from pathlib import Path

import numpy as np
from acme_sigma import plugin
from acme_sigma.diary import Diary
from acme_sigma.gate import Gate
from acme_sigma.greet import greet
from acme_sigma.plain import Plain
from acme_sigma.sign_descent import SignDescent
from acme_sigma.softsign import softsign
from sigma_backend_numba import NumbaBackend
from sigma_backend_numpy import NumpyBackend
from sigma_testing import (
    ActivationSuite,
    BackendSuite,
    VerbSuite,
    GradientOptimiserSuite,
    HookSuite,
    LayerSuite,
    LoweringSuite,
    OpSuite,
    PluginSuite,
    Sample,
)


class TestPlugin(PluginSuite):
    def make(self):
        return plugin


class TestSoftsign(OpSuite):
    def make(self):
        return softsign

    def samples(self):
        return [Sample(softsign.name, (np.linspace(-3.0, 3.1, 15).reshape(3, 5),))]


class TestActivation(ActivationSuite):
    def make(self):
        return softsign

    def expected(self, x):
        return x / (1 + np.abs(x))


class TestGate(LayerSuite):
    def make(self):
        return Gate(strength=2.0)


class TestGreet(VerbSuite):
    def make(self):
        return greet

    def arguments(self):
        return ["you"]


class TestPlain(BackendSuite):
    def make(self):
        return Plain()


class TestSignDescent(GradientOptimiserSuite):
    def make(self):
        return SignDescent(learning_rate=0.01)

    def expected(self, start, gradients):
        return start - 0.01 * np.cumsum(np.sign(gradients), axis=0)


class TestDiary(HookSuite):
    def make(self):
        return Diary(file=Path(os.devnull))


class TestSoftsignOnNumpy(LoweringSuite):
    name = "numpy"

    def make(self):
        return NumpyBackend()

    def samples(self):
        return [Sample(softsign.name, (np.linspace(-3.0, 3.1, 999).reshape(9, 111),))]


class TestSoftsignOnNumba(TestSoftsignOnNumpy):
    name = "numba"

    def make(self):
        return NumbaBackend()
