"""``sigma components KIND NAME``: the summary and the settings of one component."""

from __future__ import annotations

import re
from inspect import getdoc
from types import FunctionType
from typing import Any

from sigma_kernel.config.choice import REQUIRED, Setting, plain, settings
from sigma_kernel.config.kinds import check_contract
from sigma_kernel.config.structure import words
from sigma_kernel.plugins.catalogue import load
from sigma_kernel.plugins.specs import Component


def details(component: Component) -> dict[str, Any]:
    """Import a component and return its summary and its settings as JSON values."""
    thing = load(component)
    check_contract(component, thing)
    about = getdoc(thing) if isinstance(thing, type | FunctionType) else None  # other objects have that of their class
    known = settings(thing).values() if isinstance(thing, type) else ()
    return {"about": _sentence(about or component.summary), "settings": list(map(_document, known))}


def _sentence(text: str) -> str:
    found = re.search(r"[.!?](?=\s|$)", text)
    return " ".join((text[: found.end()] if found else text.partition("\n\n")[0]).split())


def _document(setting: Setting) -> dict[str, Any]:
    required = setting.default is REQUIRED
    try:
        default = None if required else plain(setting.default)
    except TypeError:  # an object that TOML cannot express
        default = None
    return {"name": setting.name, "type": words(setting.type), "required": required, "default": default}
