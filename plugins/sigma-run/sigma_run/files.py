"""Build environments from configurations."""

from __future__ import annotations

from pathlib import Path

from sigma_kernel import Environment, Recipe, SigmaPluginError, catalogue
from sigma_run.config import build, load


def from_file(what: Path | str, *overrides: str, folder: Path | str | None = None) -> Environment:
    """Return the environment that a configuration describes: a file ``*.toml``, a recipe by its name, or a text.

    ``overrides`` change keys, as ``--set`` does: ``"trainer.epochs=3"``. With a ``folder``, its runs write run folders
    there. Raises one SigmaConfigError with a line for every mistake.
    """
    source, name = _source(what)
    return build(load(source, overrides, name=name), folder=None if folder is None else Path(folder))


def _source(what: Path | str) -> tuple[Path | str, str]:
    """Return a path or a text, and the name under which errors speak of it."""
    if isinstance(what, Path) or what.endswith(".toml"):
        return Path(what), str(what)
    return (what, "text") if "\n" in what else (_recipe(what), what)


def _recipe(name: str) -> str:
    recipe = catalogue().load("recipe", name)
    if not isinstance(recipe, Recipe):
        raise SigmaPluginError(f"recipe {name!r}: expected a Recipe (got {recipe!r}). Update its plugin.")
    return recipe.text
