from sigma_kernel import Layer, Spec
from sigma_testing import LayerSuite
from acme_kinds.stretch import Stretch


class TestStretch(LayerSuite):
    inputs = (Spec((4,)),)

    def make(self) -> Layer:
        return Stretch()
