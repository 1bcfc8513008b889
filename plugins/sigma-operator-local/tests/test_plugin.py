"""What the room offers can be loaded."""

from __future__ import annotations

import sigma_operator_local
from sigma_kernel.plugins import load
from sigma_operator_local.plugin import SIGMA_API, sigma_components


def test_every_component_can_be_loaded() -> None:
    assert SIGMA_API == "1.0"
    loaded = [load(component) for component in sigma_components()]
    assert loaded == [sigma_operator_local.LocalOperator]
