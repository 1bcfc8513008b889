"""Refuse names of new plugins that would shadow others: distributions, modules, and objects of a component's module."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import PathFinder

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.rooms import offers

PARTS = ("sigma", "sigma-http", "sigma-kernel", "sigma-ml", "sigma-step", "sigma-testing")  # these offer no component
FILES = ("plugin", "tests")  # of every new distribution
UNREADABLE = ("I", "O", "l")  # too much like digits


def check_distribution(name: str) -> None:
    """Raise SigmaConfigError for the name of a distribution that is malformed, or taken here or in Python."""
    if not re.fullmatch(r"[a-z][a-z0-9]*+(-[a-z0-9]++)*+", name):
        raise SigmaConfigError(f"{name!r}: not a name for a distribution. Use lower-case words and hyphens: acme-gate.")
    package = name.replace("-", "_")
    taken = ""
    if name in PARTS or name in offers():
        taken = "a distribution of Sigma has this name"
    elif package in sys.stdlib_module_names or keyword.iskeyword(package) or package in FILES:
        taken = f"its package would hide Python's `{package}`"
    elif any(metadata.distributions(name=name)):
        taken = "a distribution of this name is installed"
    elif PathFinder.find_spec(package):
        taken = f"its package would hide the installed module `{package}`"
    if taken:
        raise SigmaConfigError(f"{name!r}: {taken}. Choose another name, such as acme-{name.removeprefix('sigma-')}.")


def check_component(component: str) -> None:
    """Raise SigmaConfigError for a component's name that is malformed, or that a file of every plugin has."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*+", component) or keyword.iskeyword(component):
        raise SigmaConfigError(f"{component!r}: not a name for a component. Pass --component, such as leaky_gate.")
    if component in FILES or component.startswith("test"):
        why = (
            "pytest would take it for tests" if component.startswith("test") else "every plugin has a module plugin.py"
        )
        raise SigmaConfigError(f"{component!r}: {why}. Pass --component with another name.")


def check_objects(component: str, name: str, package: str, *sources: str) -> None:
    """Raise SigmaConfigError if the object of a component has a name of Python, or one that its modules import."""
    if name in UNREADABLE or keyword.iskeyword(name):
        raise SigmaConfigError(f"{component!r}: not a name for a component. Pass --component, such as leaky_gate.")
    needed = {other for source in sources for other in _imported_names(source, package)}
    if name in dir(builtins) or name in needed:
        owner = "that its module needs" if name in needed else "of Python"
        raise SigmaConfigError(
            f"{component!r}: it would hide the `{name}` {owner}. Pass --component with another name."
        )


def _imported_names(source: str, package: str) -> Iterator[str]:
    """Yield the names that a module imports from elsewhere than its own package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) or (
            isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] != package
        ):
            yield from (alias.asname or alias.name for alias in node.names)
