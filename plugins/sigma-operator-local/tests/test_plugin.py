"""What the room offers can be loaded."""

from __future__ import annotations

from sigma_kernel.contracts import Merger, Operator
from sigma_kernel.plugins.catalogue import load
from sigma_operator_local.plugin import SIGMA_API, sigma_components


def test_every_component_can_be_loaded() -> None:
    assert SIGMA_API == "1.0"
    for component in sigma_components():
        loaded = load(component)
        assert isinstance(loaded, type)
        assert issubclass(loaded, {"operator": Operator, "merger": Merger}[component.kind])
