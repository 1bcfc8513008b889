"""What the room offers can be loaded, and is what its record says."""

from __future__ import annotations

import pytest

import sigma_hooks
from sigma_hooks.plugin import SIGMA_API, sigma_components
from sigma_kernel.contracts import Hook, Metric
from sigma_kernel.plugins.catalogue import load
from sigma_kernel.plugins.specs import Component


@pytest.mark.parametrize("component", sigma_components(), ids=lambda component: str(component.name))
def test_every_component_can_be_loaded(component: Component) -> None:
    loaded = load(component)
    assert isinstance(loaded, type)
    assert issubclass(loaded, {"hook": Hook, "metric": Metric}[component.kind])
    assert getattr(sigma_hooks, loaded.__name__) is loaded


def test_the_api_version_is_stated() -> None:
    assert SIGMA_API == "1.0"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Acuracy"):
        sigma_hooks.Acuracy  # noqa: B018
