"""Write the files that follow from what packages export and plugins offer.

Run this in the root of a project whose packages are installed from there (``pip install -e``)::

    python -m sigma_kernel.testing.generate

Every package that exports lazily gets an ``__init__.pyi``, which shows its names to type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from sigma_kernel.lazy import Exports
from sigma_kernel.plugins.catalogue import catalogue

COMMAND = "python -m sigma_kernel.testing.generate"
HEADER = f"# Generated: {COMMAND}\n# ruff: noqa\n"


def packages() -> Iterator[str]:
    """Yield the names of the kernel and of the package of every plugin that is ready."""
    yield "sigma_kernel"
    for plugin in catalogue().plugins:
        yield from {one.path.partition(".")[0]: None for one in plugin.components}


def within(package: str) -> Iterator[str]:
    """Yield the names of a package and of the packages inside it."""
    yield package
    inside = walk_packages(import_module(package).__path__, f"{package}.")
    yield from (found.name for found in inside if found.ispkg)


def stubs(package: str) -> dict[Path, str]:
    """Return the text of each stub that a package and those inside it should have, by path."""
    names = [vars(import_module(name)) for name in within(package)]
    return {
        Path(one["__file__"]).with_suffix(".pyi"): stub(one["__getattr__"], "__version__" in one)
        for one in names
        if isinstance(one.get("__getattr__"), Exports)
    }


def stub(exports: Exports, versioned: bool = False) -> str:
    """Return a package's exports as the imports that a type checker reads."""
    rows = sorted((module, name) for name, module in exports.places.items())
    version = "\n__version__: str\n" if versioned else ""
    return HEADER + "".join(f"from {module} import {name} as {name}\n" for module, name in rows) + version


def generated(root: Path) -> dict[Path, str]:
    """Return the text of every generated file of the packages below a folder, by path."""
    found = {path: text for package in packages() for path, text in stubs(package).items()}
    return {path: text for path, text in found.items() if path.is_relative_to(root)}


if __name__ == "__main__":
    for file, text in generated(Path.cwd()).items():
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
            print(file)
