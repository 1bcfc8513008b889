"""``sigma ps``, ``get`` and ``watch``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import click

from sigma_kernel.errors import SigmaError
from sigma_monitor_control.commands.options import columns, run_option, show, trainer_option
from sigma_monitor_control.discovery import NONE, Found, connect, running
from sigma_monitor_control.protocol.documents import sendable
from sigma_run.launcher import document, json_option, say

patterns_argument = click.argument("patterns", metavar="PATTERN...", nargs=-1, required=True)


@click.command("ps")
@json_option
def list_runs(as_json: bool) -> None:
    """List the runs of this user that can be steered.

    Each has its folder or its name, its state, how far it is, and its process. Of a run that trains by a group of
    workers, a table has a row for each: rows a second, shards of a batch, the generation that it has joined, and the
    seconds since it was heard.
    """
    runs = [describe_run(run) for run in running()]
    if as_json:
        document({"runs": runs})
    elif not runs:
        say(f"No run can be steered. {NONE}")
    else:
        columns([("RUN", "STATE", "EPOCH", "ITERATION", "PROCESS"), *map(_row, runs)])
        if rows := [row for run in runs for row in _worker_rows(run)]:
            click.echo()
            columns([("RUN", "WORKER", "ROWS/S", "SHARDS", "GENERATION", "SEEN"), *rows])


def describe_run(found: Found) -> dict[str, Any]:
    """Return the description of a run, and close the connection to it."""
    about: dict[str, Any] = {"title": found.title, "state": "no answer", "trainers": {}, "process": None}
    if found.client is None:
        return about
    with found.client as client:
        identity = {key: client.about[key] for key in ("name", "folder", "process", "state")}
        try:
            status = client.status()
        except SigmaError:  # it has just ended
            return {**about, **identity, "state": "ended"}
        return {**about, **identity, "state": status["status"], "trainers": status["trainers"]}


def _row(about: Mapping[str, Any]) -> tuple[str, ...]:
    trainers = about["trainers"].values()
    epochs = [f"{trainer['epoch']}/{show(trainer['epochs'])}".rstrip("/").removesuffix("/inf") for trainer in trainers]
    iterations = [str(trainer["iteration"]) for trainer in trainers]
    process = "" if about["process"] is None else str(about["process"])
    return about["title"], about["state"], " ".join(epochs), " ".join(iterations), process


def _worker_rows(about: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, trainer in about["trainers"].items():
        title = about["title"] if len(about["trainers"]) == 1 else f"{about['title']} {name}"
        for number, worker in trainer.get("workers", {}).items():
            seen, counts = f"{worker['seen']:.1f} s ago", [str(worker[key]) for key in ("shards", "generation")]
            yield title, number, f"{worker['rate']:.0f}", *counts, seen


@click.command("get")
@patterns_argument
@run_option
@trainer_option
@json_option
def get_values(patterns: tuple[str, ...], run: str | None, trainer: str | None, as_json: bool) -> None:
    """Print the values that each PATTERN means.

    PATTERN is an address, its last levels where these are unique (learning_rate), or a pattern, in which `*` stands for
    any part and `**` for any number of levels: 'trainer*.optimiser.*'. Arrays are summarised. What training measures
    says whether it is of the last iteration, or the mean of the epoch.
    """
    with connect(run) as client:
        values = {address: value for glob in patterns for address, value in _read_values(client, glob, trainer).items()}
        words = (
            {} if as_json else {a: what for glob in patterns for a, what in _read_words(client, glob, trainer).items()}
        )
    if as_json:
        document(values)
    else:
        columns((address, show(value), words.get(address, "")) for address, value in values.items())


def _read_values(client: Any, pattern: str, trainer: str | None) -> dict[str, Any]:
    """Return values as JSON holds them: numbers that are not finite are strings."""
    return dict(client.request("get", pattern=pattern, trainer=trainer))


def _read_words(client: Any, pattern: str, trainer: str | None) -> dict[str, str]:
    """Return by address which of the values of training each is, in words."""
    measured = (entry for entry in client.entries(pattern, trainer) if ".training." in entry["address"])
    return {entry["address"]: entry["doc"].rstrip(".").lower() for entry in measured if not entry["settable"]}


@click.command("watch")
@patterns_argument
@click.option(
    "--every", metavar="SECONDS", type=float, default=1.0, show_default=True, help="Seconds between two updates."
)
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="End after N updates with new values.")
@run_option
@trainer_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document on each line.")
def watch_values(
    patterns: tuple[str, ...], every: float, count: int | None, run: str | None, trainer: str | None, as_json: bool
) -> None:
    """Print the values that each PATTERN means, whenever they change, until the run ends.

    Each line has the seconds of training, an address and its value. Ctrl-C ends the watching, not the run.
    """
    with connect(run) as client:
        for second, values in islice(client.watch(*patterns, every=every, trainer=trainer), count):
            if as_json:
                click.echo(json.dumps(sendable({"second": second, "values": values})))
            else:
                columns((f"{second:.1f}", address, show(value)) for address, value in values.items())
