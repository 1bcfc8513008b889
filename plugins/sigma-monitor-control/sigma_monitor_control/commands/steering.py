"""Commands that steer a run: each returns when the run has applied it, or says why it was refused."""

from __future__ import annotations

from typing import Any

import click

from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.client import Client
from sigma_monitor_control.commands.options import literal, numbers, print_moments, scale_argument, show, steering
from sigma_monitor_control.discovery import connect

rows_argument = click.argument("rows", metavar="ROW...", nargs=-1, required=True)
split_option = click.option("--split", default="training", show_default=True, help="The split that has the rows.")


def _send_command(command: str, run: str | None, trainer: str | None, as_json: bool, **arguments: Any) -> None:
    with connect(run) as client:
        print_moments(command, client.send(command, trainer, **arguments), as_json)


@click.command("set")
@click.argument("pattern", metavar="PATTERN")
@click.argument("value", metavar="VALUE")
@steering
def set_values(pattern: str, value: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Set the values that PATTERN means to VALUE, at the next boundary.

    PATTERN is an address, its last levels where these are unique (learning_rate), or a pattern, in which `*` stands for
    any part: '**.frozen'. If it could be several, they are listed and nothing is done. VALUE is a TOML literal: 0.01,
    true, "2 epochs"; where the value is a text, the quotes can be left out.
    """
    with connect(run) as client:
        typed = _parse_typed(client, pattern, trainer, value)
        moments = client.set(pattern, typed, trainer)
    print_moments(f"{pattern} = {show(typed)}", moments, as_json)


def _parse_typed(client: Client, pattern: str, trainer: str | None, text: str) -> Any:
    """Return a value of the type that an address has: a text needs no quotes."""
    value = literal(text)
    types = {entry["type"] for entry in client.entries(pattern, trainer)}
    return text if types == {"text"} and not isinstance(value, str) else value


@click.command("send")
@click.argument("command", metavar="COMMAND")
@click.argument("fields", metavar="[FIELD=VALUE]...", nargs=-1)
@steering
def send_command(command: str, fields: tuple[str, ...], run: str | None, trainer: str | None, as_json: bool) -> None:
    """Send any COMMAND, also one of a plugin, with its fields: `sigma send rewind to=3 scale=epoch`.

    `sigma components command` lists them, and shows the fields of one. A VALUE is a TOML literal; texts need no quotes.
    """
    given = {}
    for text in fields:
        name, equals, value = text.partition("=")
        if not equals:
            raise SigmaConfigError(f"{text}: must be a field and its value. Write FIELD=VALUE.")
        given[name] = literal(value)
    _send_command(command, run, trainer, as_json, **given)


@click.command("pause")
@steering
def pause_run(run: str | None, trainer: str | None, as_json: bool) -> None:
    """Pause training after the current burst; `sigma go` continues."""
    _send_command("pause", run, trainer, as_json)


@click.command("go")
@steering
def continue_run(run: str | None, trainer: str | None, as_json: bool) -> None:
    """Continue training after a pause."""
    _send_command("go", run, trainer, as_json)


@click.command("step")
@click.argument("count", default=1, type=click.IntRange(min=1), metavar="[COUNT]")
@scale_argument
@steering
def step_run(count: int, scale: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Train on for COUNT iterations (1), or epochs (`sigma step 2 epochs`), then pause again.

    Training has to be paused.
    """
    _send_command("step", run, trainer, as_json, count=count, scale=scale.removesuffix("s"))


@click.command("save")
@steering
def save_run(run: str | None, trainer: str | None, as_json: bool) -> None:
    """Write a checkpoint, which is kept whatever hooks delete."""
    _send_command("save", run, trainer, as_json)


@click.command("rewind")
@click.argument("to", type=click.IntRange(min=0), metavar="N")
@scale_argument
@steering
def rewind_run(to: int, scale: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Rewind to the newest state at or before iteration N, or epoch N (`sigma rewind 3 epoch`).

    Training continues from there on a new branch.
    """
    _send_command("rewind", run, trainer, as_json, to=to, scale=scale.removesuffix("s"))


@click.command("undo")
@steering
def undo_command(run: str | None, trainer: str | None, as_json: bool) -> None:
    """Undo the last command that set, attached, detached or swapped something, or edited rows."""
    _send_command("undo", run, trainer, as_json)


@click.command("attach")
@click.argument("name", metavar="NAME")
@click.argument("hook", metavar="HOOK")
@steering
def attach_hook(name: str, hook: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Add a hook under a NAME.

    HOOK is the name of a component, or a table with its settings: '{type = "loss", every = "1 epoch"}'.
    """
    _send_command("attach", run, trainer, as_json, name=name, hook=literal(hook))


@click.command("detach")
@click.argument("name", metavar="NAME")
@steering
def detach_hook(name: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Remove the hook called NAME, and its memory."""
    _send_command("detach", run, trainer, as_json, name=name)


@click.command("swap")
@click.argument("slot", metavar="SLOT")
@click.argument("component", metavar="COMPONENT")
@steering
def swap_component(slot: str, component: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Replace the component in SLOT: optimiser, backend or iterator.

    COMPONENT is a name, or a table with its settings: '{type = "adam", learning_rate = 0.01}'.
    """
    _send_command("swap", run, trainer, as_json, slot=slot, component=literal(component))


@click.command("exclude")
@rows_argument
@split_option
@steering
def exclude_rows(rows: tuple[str, ...], split: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Leave rows of a split out from the next epoch on: numbers, or ranges such as 3-7.

    Rows are numbered in their split before shuffling, from 0.
    """
    _send_command("exclude", run, trainer, as_json, rows=numbers(rows), split=split)


@click.command("include")
@rows_argument
@split_option
@steering
def include_rows(rows: tuple[str, ...], split: str, run: str | None, trainer: str | None, as_json: bool) -> None:
    """Take rows that were excluded in again, from the next epoch on."""
    _send_command("include", run, trainer, as_json, rows=numbers(rows), split=split)


@click.command("relabel")
@rows_argument
@click.argument("label", metavar="LABEL")
@split_option
@steering
def relabel_rows(
    rows: tuple[str, ...], label: str, split: str, run: str | None, trainer: str | None, as_json: bool
) -> None:
    """Give rows of a split another LABEL, as it stands in the data, from the next epoch on."""
    _send_command("relabel", run, trainer, as_json, rows=numbers(rows), label=literal(label), split=split)


@click.command("stop")
@steering
def stop_run(run: str | None, trainer: str | None, as_json: bool) -> None:
    """End training; the run is saved as after its last epoch."""
    _send_command("stop", run, trainer, as_json)
