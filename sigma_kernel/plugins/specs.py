"""The interface between the kernel and plugins: the pluggy spec, and the records of components.

A plugin is a distribution with one entry point in the group ``sigma_kernel.plugins``, which names a light module::

    from sigma_kernel import Component, hookimpl

    SIGMA_API = "1.0"


    @hookimpl
    def sigma_components():
        return [Component("layer", "scale", "acme_layers.scale:Scale", "Multiply by one trained number.")]

The object of a component is imported on first use. Commands of ``sigma``, the kind ``verb``, are also entry points of
the group ``sigma_kernel.verbs``, so that ``sigma`` knows their names without importing the plugin.

The other hookspecs are called for the plugins that a run names, ``[run] plugins = ["acme-layers"]``; options of
``sigma run`` are those of all plugins.  An implementation takes the arguments that it needs, and imports inside.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pluggy import HookimplMarker, HookspecMarker

from sigma_kernel.errors import SigmaPluginError, suggest_name

API_VERSION = "1.0"  # a plugin states the one it was written for as SIGMA_API
GROUP = "sigma_kernel.plugins"
VERBS = "sigma_kernel.verbs"  # entry points of commands, by name: ``greet = "acme_layers.greet:greet"``
KINDS = {  # with the contracts of which a component fulfils one; without one, it is a callable
    "backend": "Backend", "layer": "Layer", "activation": "", "optimiser": "Optimiser", "schedule": "Schedule",
    "initialiser": "Initialiser", "rewriting": "Rewriting", "modifier": "Transform Modifier",
    "source": "Source", "reader": "Reader", "extractor": "Extractor", "encoder": "Encoder",
    "preprocessor": "Preprocessor", "augmentation": "Augmentation",
    "dataset": "Dataset", "iterator": "Iterator", "inspector": "Inspector", "hook": "Hook",
    "criterion": "Criterion", "metric": "Metric", "operator": "Operator", "merger": "Merger", "monitor": "Monitor",
    "panel": "Panel", "chart": "Chart", "exporter": "Exporter", "recipe": "Recipe", "verb": "",
    "configuration": "ConfigurationFormat", "op": "", "lowering": "", "generator": "TextGenerator",
    "store": "Store", "command": "Command", "trainer": "Trainer",
}  # fmt: skip

hookspec = HookspecMarker("sigma_kernel")
hookimpl = HookimplMarker("sigma_kernel")


FORMS = {
    "name": (r"[a-z][a-z0-9_-]*+", "leaky_relu"),
    "path": (r"[A-Za-z_]\w*+(\.\w++)*+:[A-Za-z_]\w*+", "package.module:Object"),
    "summary": (r"[^\S\n]*+\S.*+", "What it is for, on one line."),
    "also_known_as": (r"(\w++(=\w++)?+ ?+)*+", "sgd lr=learning_rate"),
    "default_for": (r"([a-z][a-z-]*+)?+", "first-recipe"),
    "formerly": (r"([a-z0-9-]++:[a-z][a-z0-9_-]*+)?+", "acme-layers:leaky_relu"),
}
_LOWERINGS = {"name": (r"[a-z][a-z0-9_-]*+\.[a-z][a-z0-9_-]*+", "softsign.backend")}


class Component(NamedTuple):
    """The record of a component: its kind and name, the path of its object, and a one-line summary.

    A kind that is not the kernel's is ``distribution:kind``, of the plugin that uses such components.
    A ``lowering``, the kernel of one of the plugin's ops for one backend, is named ``op.backend``. Among backends, the
    one with the highest ``preference`` above 0 that can be imported is the default; one with a preference below 0 is
    not compared with others. Errors suggest a component for the names in ``also_known_as``, those of other libraries:
    ``sgd``, or ``lr=learning_rate`` for a setting. If the kernel needs a component and none is named, it uses the one
    ``default_for`` that role among its kind. Run folders with the full name that a component had ``formerly``, in
    another distribution, still find it. Discovery checks the record and sets ``distribution``.
    """

    kind: str
    name: str
    path: str
    summary: str
    distribution: str = ""
    preference: int = 0
    also_known_as: str = ""
    default_for: str = ""
    formerly: str = ""

    @property
    def full_name(self) -> str:
        """Return ``distribution:name``, which is never ambiguous."""
        return f"{self.distribution}:{self.name}"


class RunOption(NamedTuple):
    """An option of ``sigma run``: its name, its help, and what it assigns in the configuration.

    Each of the ``assignments`` is ``key=value``, as for ``--set``, with the value of the option in place of
    ``{value}``. Without any ``{value}``, the option is a flag.
    """

    name: str
    help: str
    assignments: tuple[str, ...]

    @property
    def is_flag(self) -> bool:
        """Return whether it takes no value."""
        return not any("{value}" in assignment for assignment in self.assignments)

    def assign(self, value: str = "") -> list[str]:
        """Return its assignments for a value."""
        return [assignment.replace("{value}", value) for assignment in self.assignments]


def is_kind(kind: str) -> bool:
    """Return whether this is a kind of the kernel, or the form of one of a plugin: ``distribution:kind``."""
    return kind in KINDS or re.fullmatch(r"[a-z0-9]++(-[a-z0-9]++)*+:[a-z][a-z0-9_-]*+", kind) is not None


def place_of(kind: str) -> tuple[int, str]:
    """Return the place of a kind in lists: those of the kernel in their order, then those of plugins."""
    return ([*KINDS].index(kind) if kind in KINDS else len(KINDS)), kind


def check_component(record: object) -> None:
    """Raise SigmaPluginError unless this is a well-formed component of a known kind."""
    if not isinstance(record, Component):
        raise SigmaPluginError(f"sigma_components() returned {record!r}, which is not a Component.")
    if not is_kind(record.kind):
        raise SigmaPluginError(
            f"Component: there is no kind {record.kind!r}.{suggest_name(str(record.kind), KINDS, 'Kinds:')}"
        )
    for name, (pattern, example) in (FORMS | _LOWERINGS if record.kind == "lowering" else FORMS).items():
        value = getattr(record, name)
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise SigmaPluginError(f"Component: {name} {value!r} is not of the form {example!r}.")
    if not isinstance(record.preference, int):
        raise SigmaPluginError(f"Component: preference {record.preference!r} is not a whole number.")


@hookspec
def sigma_components() -> list[Component]:
    """Return the records of all components that this plugin offers, without importing them."""
    return []


@hookspec
def sigma_run_options() -> list[RunOption]:
    """Return the options that this plugin adds to ``sigma run``."""
    return []


@hookspec
def sigma_run_begins(environment: Any, trainers: list[str]) -> None:
    """Act when a call of ``run`` or ``fit`` begins: trainers are prepared, files open, and no iteration has run.

    ``trainers`` are the names of those that train. An error ends the call before it trains.
    """


@hookspec
def sigma_run_ends(environment: Any, trainers: list[str], summary: Any) -> None:
    """Act when a call of ``run`` or ``fit`` has ended, also after an interruption: all is saved, files are still open.

    ``summary`` is what ``run`` returns. An error is logged.
    """


@hookspec
def sigma_run_fails(environment: Any, trainers: list[str], error: BaseException) -> None:
    """Act when a call of ``run`` or ``fit`` has failed, in place of :func:`sigma_run_ends`; an error is logged."""
