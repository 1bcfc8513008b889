"""Arguments and helpers of the commands that take a recipe or a configuration file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from sigma_kernel.contracts import Recipe
from sigma_kernel.contracts.storing import Checkpoints
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config import Configuration, Document, load_configuration, override, parse, read
from sigma_run.launcher.later import lazy_function
from sigma_run.launcher.output import toml

mistakes_in_parts = lazy_function("sigma_run.launcher.partial:mistakes_in_parts")  # only if the file has mistakes

_debug = "The same as --backend debug: compute op by op, and name the op from which NaN or infinity comes."
debug_option = click.option("--debug-ops", "backend", flag_value="default:debugging", help=_debug)

_parallel = "Train so many runs of a study at once, each in a process."
parallel_option = click.option("--parallel", type=click.IntRange(min=1), default=1, metavar="N", help=_parallel)


def refuse_parallel(parallel: int) -> None:
    """Raise SigmaConfigError for a single run that was to be trained several at once."""
    if parallel != 1:
        raise SigmaConfigError(f"--parallel {parallel}: is for studies. Add --seeds or --folds, or leave it out.")


def recipe_or_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument RECIPE|FILE and the option ``--set`` to a command."""
    help_text = "Override one key, such as --set trainer.optimiser.learning_rate=0.1 (repeatable)."
    command = click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help=help_text)(command)
    return click.argument("what", metavar="RECIPE|FILE")(command)


def open_document(what: str, overrides: Iterable[str] = ()) -> Document:
    """Read a recipe by name, or a file by path, and apply overrides."""
    document = read(Path(what)) if _is_file(what) else parse(recipe(what).text, f"{what}.toml")
    for assignment in overrides:
        document = override(document, assignment)
    return document


def with_operator(document: Document, name: str | None, workers: int | None) -> Document:
    """Return a document whose trainers are driven by another operator, or by one with so many workers."""
    tables = [("run", document.values.get("run")), ("trainer", document.values.get("trainer"))]
    trainers = document.values.get("trainers")
    tables += [(f"trainers.{toml(str(n))}", x) for n, x in trainers.items()] if isinstance(trainers, dict) else []
    keys = [f"{key}.operator" for key, table in tables if isinstance(table, dict) and "operator" in table]
    if not keys and workers is not None:
        name = name or "default:operator"
    for key in keys or ["run.operator"]:
        if name is not None:
            document = override(document, f"{key}.type={toml(name)}", "--operator")
        if workers is not None:
            document = override(document, f"{key}.workers={workers}", "--workers")
    return document


def totals(document: Document, epochs: str | None) -> list[str]:
    """Return the assignments that give each trainer of a document a total number of epochs."""
    trainers = document.values.get("trainers")
    names = [f"trainers.{toml(str(name))}" for name in trainers] if isinstance(trainers, dict) else ["trainer"]
    return [] if epochs is None else [f"{name}.epochs={epochs}" for name in names]


def understood(document: Document) -> Configuration:
    """Return the configuration of a document; raises one error that lists every mistake found."""
    return load_configuration(document, catalogue(), mistakes_in_parts)


def recipe(name: str) -> Recipe:
    """Load a recipe by name; raises SigmaPluginError if the plugin's object is not a Recipe."""
    result = catalogue().load("recipe", name)
    if not isinstance(result, Recipe):
        raise SigmaPluginError(f"recipe {name!r}: expected a Recipe (got {result!r}). Update its plugin.")
    return result


def parse_checkpoint(value: str) -> int | str:
    """Return the selected checkpoint: its iteration, its name, ``best`` or ``newest``."""
    if value.isascii() and value.isdigit():
        return int(value)
    if not value[:1].isalpha():
        raise click.BadParameter(f"{value!r} is not an iteration, a name, 'best' or 'newest'.")
    return value


CHECKPOINT = click.option(
    "--checkpoint", metavar="N|NAME|best|newest", type=parse_checkpoint,
    help="Use the checkpoint of iteration N, of a name, the best or the newest. [default: the best if a hook keeps it]",
)  # fmt: skip


DATA = click.option(
    "--data", metavar="PATH", type=click.Path(path_type=Path),
    help="Where the data of the run are now; they may have changed.",
)  # fmt: skip


WEIGHTS = click.option(
    "--weights", metavar="MODIFIER", default="",
    help="Use the weights that this modifier keeps, such as average, in place of the parameters.",
)  # fmt: skip


def standing(checkpoints: Checkpoints, path: Path, score: float | None) -> str:
    """Return a checkpoint's place in words: its path, and whether it is the newest."""
    newest = checkpoints.numbers()[-1]
    scored = "" if score is None else f", score {score:.4g}"
    if path == checkpoints.place(str(newest)):
        return f"{path} (the newest{scored})"
    return f"{path} (not the newest, {newest}{scored})"


def _is_file(what: str) -> bool:
    looks = what.endswith(".toml") or os.sep in what or "/" in what
    return looks or (Path(what).is_file() and not catalogue().offers("recipe", what))
