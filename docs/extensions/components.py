"""The reference of components: each with its docstring and its settings, from the records of the installed rooms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sigma_kernel import catalogue
from sigma_run import describe

ROOMS = Path(__file__).parents[2] / "plugins"
CODE = re.compile(r"::\n\n((?: {4}.*+\n|\n)++)")  # a block of code in a docstring
SHARED = 3  # settings that so many components of a kind have in common are listed once


def text(kind: str) -> str:
    """Return a section for each component of a kind that the rooms offer, as MyST."""
    found = [describe(kind, f"{one.distribution}:{one.name}") for one in offered(kind)]
    common = shared([one["settings"] for one in found])
    parts = [f"Every {kind} also has these settings:\n\n{_list(common)}\n"] if common else []
    for one in found:
        own = [setting for setting in one["settings"] if setting not in common]
        name = one["path"].rpartition(":")[2]
        source = f"In Python: `from {one['path'].partition('.')[0]} import {name}`.\n" if kind != "recipe" else ""
        parts.append(f"### `{one['name']}`\n\n{markdown(one['doc'])}\n\n{_list(own)}\n\n{source}")
    return "\n".join(parts)


def offered(kind: str) -> list[Any]:
    """Return the records of the components of a kind that this project's rooms offer, by name."""
    every = (one for one in catalogue().components(kind) if (ROOMS / one.distribution).is_dir())
    return sorted(every, key=lambda one: one.name)


def shared(settings: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the settings that all of several components have, with the same default."""
    first = settings[0] if len(settings) >= SHARED else []
    return [one for one in first if all(one in others for others in settings)]


def markdown(doc: str) -> str:
    """Return a docstring as MyST: roles become code, and blocks after ``::`` fences."""
    doc = re.sub(r":\w++:`~?([^`]++)`", r"`\1`", doc)
    return CODE.sub(lambda found: f":\n\n```text\n{_dedented(found[1])}\n```\n", doc + "\n").strip()


def _dedented(block: str) -> str:
    return re.sub(r"^ {4}", "", block.rstrip(), flags=re.MULTILINE)


def _list(settings: list[dict[str, Any]], indent: str = "") -> str:
    """Return a list of settings; those of a table are below it."""
    return "\n".join(line for one in settings for line in _item(one, indent))


def _item(setting: dict[str, Any], indent: str) -> Iterator[str]:
    default = "required" if setting["required"] else f"default {_code(setting['default'])}"
    about = ", ".join([setting["type"], *([] if default == "default " else [default])])
    notes = " ".join(filter(None, [markdown(setting["doc"]).replace("\n", " "), *_notes(setting)]))
    yield f"{indent}- `{setting['name']}` ({about}){': ' + notes if notes else ''}"
    yield from filter(None, [_list(setting["settings"], indent + "  ")])


def _notes(setting: dict[str, Any]) -> Iterator[str]:
    """Yield what the documentation of a setting does not say: choices, range, and whether it is live."""
    if setting["choices"]:
        choices = ", ".join(map(_code, setting["choices"]))
        yield f"{'One of' if setting['closed'] else 'Such as'} {choices}."
    elif setting["must"]:
        yield f"Must be {setting['must']}."
    if setting["live"]:
        yield "Can be changed during a run."


def _code(value: Any) -> str:
    """Return a value as code; nothing for None and for what is empty."""
    if value is None or value == {} or value == []:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
