"""``sigma diff``: find the first op at which backends differ from the meanings of the ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
from attrs import asdict

from sigma_bench.differ.lockstep import Compared, Deviation, Lockstep
from sigma_bench.installed import installed_backends, named_backends
from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaTrainingError, printable
from sigma_run.config import load_configuration
from sigma_run.launcher import document, json_option, open_document, recipe_or_file, say

KEPT = ("backend", "step", "op", "layer", "share", "absolute", "relative")
HEAD = ("backend", "op", "layer", "step", "absolute", "relative", "of allowed")
LONGEST = (10, 15, 19)  # characters of the names in a row, so that it fits 80 columns


@click.command()
@recipe_or_file
@click.option("--backends", metavar="A,B", default="", help="Backends to compare. [default: all that are installed]")
@click.option("--steps", type=click.IntRange(min=1), default=10, show_default=True, help="Steps of training.")
@click.option(
    "--tolerance", type=click.FloatRange(min=0, min_open=True), default=32.0, show_default=True,
    help="Allowed deviation, as a multiple of what rounding explains.",
)  # fmt: skip
@click.option("--worst", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of the table of ops.")
@json_option
def diff(
    what: str, overrides: tuple[str, ...], backends: str, steps: int, tolerance: float, worst: int, as_json: bool
) -> None:
    """Train a recipe or a configuration file on several backends in lock-step, and compare all that they compute.

    The reference interprets the graph of each step op by op with NumPy. From its state and its batch, each backend
    computes every op alone, of the reference's operands, and the step as a whole. What rounding explains is measured:
    the reference runs again with every result moved by one unit in its last place. The command names the first op,
    layer and step that are further off than allowed, and ends with exit code 1. No hooks are run.
    """
    configuration = load_configuration(open_document(what, overrides), catalogue())
    chosen = named_backends(backends) or installed_backends(say)
    results: list[Compared] = []
    for result in Lockstep(configuration, {name: name for name in chosen}, tolerance).steps(steps):
        if not as_json and not results:
            click.echo(_line("step", ["rounding", *result.apart]))
        results.append(result)
        if not as_json:
            click.echo(_line(str(result.step), [f"{x:.2g}" for x in (result.rounding, *result.apart.values())]))
        if result.first_deviation is not None:
            break
    first = results[-1].first_deviation
    if as_json:
        document(to_document(what, tolerance, results))
    else:
        click.echo(printable("\n".join(["", *table(results, worst)])))
    if first is not None:
        raise SigmaTrainingError(sentence(first))
    say(f"{', '.join(chosen)}: every op, and every step as a whole, agrees with the reference in {len(results)} steps")


def sentence(first: Deviation) -> str:
    """Return the differences and their places."""
    return f"step {first.step}, {first.layer}: {first.backend} differs from the reference at {first.op}: {first.text}."


def to_document(what: str, tolerance: float, found: Sequence[Compared]) -> dict[str, Any]:
    """Return the JSON document: the greatest deviation of each op and result in each step, and of the state."""
    first = found[-1].first_deviation
    every = [deviation for step in found for deviation in (*step.ops, *step.results)]
    return {
        "recipe": what,
        "tolerance": tolerance,
        "agrees": first is None,
        "first": None if first is None else {**_to_plain(first), "text": first.text},
        "states": [{"step": result.step, "rounding": result.rounding, **result.apart} for result in found],
        "ops": [_to_plain(deviation) for deviation in greatest(every, each_step=True)],
    }


def _to_plain(one: Deviation) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name in KEPT}


def greatest(every: Sequence[Deviation], each_step: bool = False) -> list[Deviation]:
    """Return the greatest deviation of each op on each backend, the worst first; or of each op in each step, in order.

    All results of the whole step count as one op.
    """
    worst: dict[tuple[Any, ...], Deviation] = {}
    for deviation in every:
        key = (deviation.step if each_step else 0, deviation.backend, deviation.op)
        if key not in worst or deviation.share > worst[key].share:
            worst[key] = deviation
    return list(worst.values()) if each_step else sorted(worst.values(), key=lambda deviation: -deviation.share)


def table(found: Sequence[Compared], most: int) -> Iterator[str]:
    """Yield the lines of the table of the worst ops of all steps."""
    every = greatest([deviation for step in found for deviation in (*step.ops, *step.results)])
    rows = [HEAD, *(_row(deviation) for deviation in every[:most])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(n) if i < 3 else cell.rjust(n) for i, (cell, n) in enumerate(zip(row, widths, strict=True))]
        yield " ".join(cells).rstrip()


def _row(one: Deviation) -> tuple[str, ...]:
    layer = one.layer.replace("gradient of ", "grad. of ").removeprefix("network.layers.")
    named = (_cut(text, most) for text, most in zip((one.backend, one.op, layer), LONGEST, strict=True))
    return (*named, str(one.step), f"{one.absolute:.2g}", f"{one.relative:.2g}", f"{one.share:.2g}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2 - 1]}…{text[most // 2 - most :]}"


def _line(head: str, cells: Sequence[str]) -> str:
    return f"{head:>4}" + "".join(f" {cell:>10}" for cell in cells)
