"""Verbs of live commands, such as ``sigma pause``, derived from their classes.

``live.json`` describes the commands of the project's rooms, so that no session is imported to send one of them:
``python -m sigma_monitor_control.commands.live`` writes it. Of other plugins, the class is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click

from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.commands.options import print_moments, steering
from sigma_monitor_control.discovery import connect_to_steer
from sigma_run.launcher import literal

PATH = Path(__file__).with_name("live.json")
DESCRIBE = "sigma_monitor_control.protocol.reading:describe_command"  # imports numpy
VALUES = "A value is a TOML literal; texts need no quotes. FIELD=VALUE gives a field by its name."
OPTION = "field_"  # before the names of fields that are options
TAKEN = ("run", "trainer", "json")  # options of every verb

Setting = Mapping[str, Any]  # a field of a command, as the protocol describes it


# -- which commands there are ------------------------------------------------------------------------------------------
@cache
def read_described() -> dict[str, dict[str, Any]]:
    """Return the commands of the project's rooms by name, as the protocol describes them."""
    return {about["name"]: about for about in json.loads(PATH.read_text("utf-8"))}


def describe_own() -> str:
    """Return the text of ``live.json``."""
    every = filter(None, map(resolve_name(DESCRIBE), catalogue().components("command")))
    own = [about for about in every if ":" not in about["name"]]  # third parties name theirs in full
    return json.dumps(sorted(own, key=itemgetter("name")), indent=1) + "\n"


def find_command(name: str) -> dict[str, Any]:
    """Return the description of a command; raise a SigmaError if no plugin offers it, or it cannot be loaded."""
    if name not in read_described():
        catalogue().load("command", name)
        return dict(resolve_name(DESCRIBE)(catalogue().resolve("command", name)))
    return read_described()[name]


class LiveCommands(click.Group):
    """A group whose commands are all live commands of the installed plugins."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return their names, those of third parties in full."""
        return [*_summaries()]

    def get_command(self, context: click.Context, name: str) -> click.Command:
        """Return the verb of a command."""
        verb = make_verb(find_command(name))
        verb.params += [option for option in self.params if isinstance(option, click.Option)]
        return verb

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([*_summaries().items()])


def _summaries() -> dict[str, str]:
    every = sorted(catalogue().components("command"), key=attrgetter("name"))
    return {each.name if each.name in read_described() else each.full_name: each.summary for each in every}


# -- what one takes ----------------------------------------------------------------------------------------------------
def make_verb(about: Mapping[str, Any]) -> click.Command:
    """Return the verb that sends a command, given its description."""
    name, settings = about["name"], about["settings"]

    def send(texts: tuple[str, ...], run: str | None, trainer: str | None, as_json: bool, **options: Any) -> None:
        named = [f"{field.removeprefix(OPTION)}={text}" for field, text in options.items() if text is not None]
        arguments = bind_texts(name, settings, [*texts, *named])
        with connect_to_steer(run) as client:
            print_moments(name, client.title, client.send(name, trainer, **arguments), as_json)

    for setting in reversed(settings):
        if not setting["required"] and setting["name"] not in TAKEN:
            text = setting["doc"] or f"The field {setting['name']}."
            click.option(f"--{setting['name']}", f"{OPTION}{setting['name']}", metavar="VALUE", help=text)(send)
    fields = click.argument("texts", metavar=_usage(settings), nargs=-1)
    return click.command(name, help=_help(about))(fields(steering(send)))


def _usage(settings: Sequence[Setting]) -> str:
    listed = any(map(_is_list, settings))
    words = [f"{setting['name'].upper()}{'...' if _is_list(setting) else ''}" for setting in settings]
    pairs = [(word, setting["required"]) for word, setting in zip(words, settings, strict=True)]
    return " ".join(word if required else f"[{word}]" for word, required in pairs if required or not listed)


def _help(about: Mapping[str, Any]) -> str:
    fields = [f"{setting['name'].upper()}: {setting['doc']}" for setting in about["settings"] if setting["required"]]
    return "\n\n".join([about["summary"], *fields, *([VALUES] if about["settings"] else [])])


def _is_list(setting: Setting) -> bool:
    return bool(setting["type"] == "a list")


def bind_texts(name: str, settings: Sequence[Setting], texts: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a command by name, given as ``field=value``, or in their order.

    A list takes all that the required fields beside it leave; the others are then given by name. Raises
    SigmaConfigError for too many values; what is missing is for the run to say.
    """
    by_name = {setting["name"]: setting for setting in settings}
    pairs = [(text.partition("="), text) for text in texts]
    named = {key: value for (key, equals, value), _ in pairs if equals and key in by_name}
    rest = [text for (key, equals, _), text in pairs if not (equals and key in by_name)]
    free = [setting for setting in settings if setting["name"] not in named]
    if any(map(_is_list, free)):
        free = [setting for setting in free if setting["required"]]
    taken = dict[str, list[str]]()
    for index, setting in enumerate(free):
        count = max(0, len(rest) - len(free[index + 1 :])) if _is_list(setting) else 1
        taken[setting["name"]], rest = rest[:count], rest[count:]
    if rest:
        expected = _usage(settings) or "no values"
        raise SigmaConfigError(f"{name}: takes {expected}. Leave out what is more than that: {' '.join(rest)!r:.100}.")
    given = {field: words for field, words in taken.items() if words} | {key: [text] for key, text in named.items()}
    return {field: _to_value(by_name[field], words) for field, words in given.items()}


def _to_value(setting: Setting, texts: Sequence[str]) -> Any:
    """Return the value of a field: of a list several, of which some may be ranges; of choices one, also its plural."""
    if _is_list(setting):
        return [number for text in texts for number in _to_elements(text)]
    (text,) = texts
    singular = text.removesuffix("s")
    if singular in setting["choices"]:
        return singular
    return text if setting["type"] == "a string" else literal(text)


def _to_elements(text: str) -> Sequence[Any]:
    """Return the elements that a text adds to a list: those of a range such as ``3-7``, both ends included, or one."""
    first, _, last = text.partition("-")
    if first.isdecimal() and last.isdecimal():
        return range(int(first), int(last) + 1)
    value = literal(text)
    return value if isinstance(value, list) else [value]


@click.group("send", cls=LiveCommands)
def send_command() -> None:
    """Send any command to a run, also one of a plugin whose name is that of a verb: `sigma send rewind 3 epoch`."""


if __name__ == "__main__":
    PATH.write_text(describe_own(), "utf-8")
