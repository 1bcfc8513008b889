"""Options that plugins add to ``sigma run``: each assigns values in the configuration, as ``--set`` does."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

import click

from sigma_kernel.errors import SigmaPluginError, warn
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.specs import RunOption

GIVEN = "sigma.plugin-options"  # among the meta data of click's context: the assignments, each with its option


class CommandWithOptions(click.Command):
    """A command with the options of all plugins that are installed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command, then those of plugins; with one name twice, the first."""
        own = super().get_params(ctx)
        taken = {name for parameter in own for name in parameter.opts}
        return [*own, *(_make_option(option) for option in list_options(taken))]


def list_options(taken: Collection[str]) -> Iterator[RunOption]:
    """Yield the options of plugins; warn of plugins that fail to tell theirs, and of names that are taken."""
    names = {*taken}
    for plugin in catalogue().plugins:
        for option in _read_options(plugin.name) if plugin.state == "ready" else ():
            if option.name in names:
                warn(f"plugin {plugin.name}: `sigma run` has an option {option.name} already. This one is left out.")
            else:
                names.add(option.name)
                yield option


def _read_options(plugin: str) -> list[RunOption]:
    try:
        options = [option for several in catalogue().call(plugin, "sigma_run_options") for option in several]
        for option in options:
            check_option(option)
    except SigmaPluginError as error:
        warn(f"{error} Its options of `sigma run` are left out.")
        return []
    return options


def check_option(option: object) -> None:
    """Raise SigmaPluginError unless this is a well-formed option of ``sigma run``."""
    if not isinstance(option, RunOption):
        raise SigmaPluginError(f"sigma_run_options() returned {option!r}, which is not a RunOption.")
    if not re.fullmatch(r"--[a-z][a-z0-9-]*+", str(option.name)):
        raise SigmaPluginError(f"RunOption: name {option.name!r} is not of the form '--notify'.")
    texts = option.assignments if isinstance(option.assignments, tuple | list) else [None]
    if not texts or not all(isinstance(text, str) and "=" in text for text in texts):
        form, given = "('hooks.tell.to={value}',)", option.assignments
        raise SigmaPluginError(f"RunOption {option.name}: assignments {given!r} is not of the form {form}.")


def _make_option(option: RunOption) -> click.Option:
    return click.Option(
        [option.name], help=option.help, is_flag=option.is_flag, expose_value=False, callback=partial(_note, option)
    )


def _note(option: RunOption, context: click.Context, _: click.Parameter, value: Any) -> None:
    """Note the assignments of an option that was given."""
    if value not in (None, False):
        noted = context.meta.setdefault(GIVEN, [])
        noted.extend((assignment, option.name) for assignment in option.assign("" if value is True else str(value)))
