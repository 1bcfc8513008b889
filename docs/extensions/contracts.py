"""The contract of a kind of component, and the template of its plugins, from the code."""

from __future__ import annotations

import inspect
from string import Template
from typing import Any

from extensions.components import markdown
from sigma_kernel import contracts
from sigma_kernel.plugins.specs import KINDS
from sigma_run.launcher.scaffold import Owner, texts

PLUGINS = "../plugins.md#"
SECTIONS = {  # of the page about plugins, by the kinds that have no page of their own
    "activation": "an-activation",
    "augmentation": "an-augmentation",
    "backend": "a-backend",
    "chart": "a-chart",
    "command": "commands",
    "configuration": "a-format-of-configurations",
    "criterion": "a-criterion",
    "encoder": "an-encoder",
    "exporter": "an-exporter",
    "extractor": "an-extractor",
    "generator": "a-generator",
    "hook": "a-hook",
    "inspector": "an-inspector",
    "layer": "a-layer",
    "lowering": "kernels-of-an-op",
    "metric": "a-metric",
    "op": "an-op",
    "optimiser": "an-optimiser",
    "recipe": "a-recipe",
    "store": "a-store",
    "trainer": "a-trainer",
    "verb": "a-command-of-sigma",
}
SHARED = {"modifier": "transform"}  # kinds on the page of another


def text(name: str) -> str:
    """Return the base class of a contract as MyST: what it is, and the methods to write and to override."""
    cls = getattr(contracts, name)
    about = markdown(inspect.getdoc(cls) or "")
    members = [(member, value) for member, value in vars(cls).items() if not member.startswith("_")]
    rows = [describe_member(cls, member, value) for member, value in members if is_method(value)]
    return "\n\n".join([f"`sigma_kernel.{name}`: {about}", "\n".join(rows)])


def is_method(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, property)


def describe_member(cls: type, member: str, value: Any) -> str:
    """Return the line of a method: its call, whether it must be written, and what it returns."""
    function = value.fget if isinstance(value, property) else value
    names = [*inspect.signature(function).parameters][1:]
    call = member if isinstance(value, property) else f"{member}({', '.join(names)})"
    needed = "to write" if member in getattr(cls, "__abstractmethods__", ()) else "may be overridden"
    return f"- `{call}` ({needed}): {' '.join(markdown(inspect.getdoc(function) or '').split())}"


def template(name: str) -> str:
    """Return the component and the test that ``sigma plugins new`` writes for a kind, as MyST."""
    files = texts("acme-mine", name, "mine", Owner())
    shown = [path for path in files if path.endswith(("/mine.py", "/test_mine.py", f"/mine_{name}.py"))]
    block = Template("```{code-block} python\n:caption: $path\n\n$code```")
    return "\n\n".join(block.substitute(path=path, code=files[path]) for path in shown)


def table(_: str = "") -> str:
    """Return a table of all kinds: where they are described, their contracts, and the command that begins a plugin."""
    named = {kind: ", ".join(f"`{name}`" for name in classes.split()) for kind, classes in sorted(KINDS.items())}
    command = "sigma plugins new NAME --kind"
    rows = [f"| [`{kind}`]({link(kind)}) | {row or 'a callable'} | `{command} {kind}` |" for kind, row in named.items()]
    return "\n".join(["| kind | contract | a new plugin |", "|---|---|---|", *rows])


def link(kind: str) -> str:
    """Return where a kind is described, from the folder of the pages about kinds."""
    return f"{PLUGINS}{SECTIONS[kind]}" if kind in SECTIONS else f"{SHARED.get(kind, kind)}.md"
