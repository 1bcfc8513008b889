"""What the kernel asks of a plugin: every pluggy spec, on one screen.

A plugin is a distribution with one entry point in the group ``sigma_kernel.plugins``, which names a light module::

    from sigma_kernel import Component, hookimpl

    SIGMA_API = "1.0"


    @hookimpl
    def sigma_components():
        return [Component("layer", "scale", "acme_layers.scale:Scale", "Multiply by one trained number.")]

The object behind a component is imported when a run first uses it, never before.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import Attribute, field, frozen
from pluggy import HookimplMarker, HookspecMarker

from sigma_kernel.errors import SigmaPluginError, near

API_VERSION = "1.0"  # a plugin states the one it was written for as SIGMA_API
GROUP = "sigma_kernel.plugins"
KINDS = (
    "backend", "layer", "activation", "optimiser", "schedule", "initialiser", "modifier", "source", "reader",
    "extractor", "preprocessor", "dataset", "iterator", "hook", "criterion", "metric", "operator", "merger", "monitor",
    "exporter", "recipe", "command", "op",
)  # fmt: skip

hookspec = HookspecMarker("sigma_kernel")
hookimpl = HookimplMarker("sigma_kernel")


def _known_kind(component: Component, attribute: Attribute[str], value: str) -> None:
    if value not in KINDS:
        hint = near(str(value), KINDS) or f" Kinds: {', '.join(KINDS)}."
        raise SigmaPluginError(f"Component: there is no kind {value!r}.{hint}")


def _matching(pattern: str, example: str) -> Callable[[Component, Attribute[str], str], None]:
    def check(component: Component, attribute: Attribute[str], value: str) -> None:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise SigmaPluginError(f"Component: {attribute.name} {value!r} is not of the form {example!r}.")

    return check


@frozen
class Component:
    """One thing that a plugin offers: where it is, and one line on what it is for.

    ``distribution`` is filled in when the plugin is found.  A malformed record is a SigmaPluginError.
    """

    kind: str = field(validator=_known_kind)
    name: str = field(validator=_matching(r"[a-z][a-z0-9_-]*", "leaky_relu"))
    path: str = field(validator=_matching(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*", "package.module:Object"))
    summary: str = field(validator=_matching(r".*\S.*", "What it is for, on one line."))
    distribution: str = ""

    @property
    def full_name(self) -> str:
        """Return ``distribution:name``, which means this component whatever else is installed."""
        return f"{self.distribution}:{self.name}"


@hookspec
def sigma_components() -> list[Component]:
    """Return the records of everything that this plugin offers, without importing any of it."""
    return []
