"""``sigma bench``: measure the time per iteration of backends and peers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from sigma_bench.advice import take
from sigma_bench.chart import FORMATS, draw
from sigma_bench.contestants import PEERS, require_library, select_peers
from sigma_bench.entry import Entry
from sigma_bench.installed import installed_backends, named_backends, names
from sigma_bench.remote import Process
from sigma_bench.report import best, document as described, growth, lines, machine, summary, to_document
from sigma_bench.series import AXES, axes, draw_networks, grown, works
from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_run.config import Document, override
from sigma_run.launcher import document, json_option, open_document, say

FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command()
@click.argument("what", metavar="[RECIPE|FILE]", required=False)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key (repeatable).")
@click.option("--backends", metavar="A,B", default="", help="Backends to measure. [default: all]")
@click.option("--peers", metavar="A,B", default="", help=f"Peers to measure as well: {', '.join(PEERS)}.")
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True, help="Rounds of measurements.")
@click.option("--random", "count", type=click.IntRange(min=1), metavar="N", help="Measure N random dense nets instead.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of --random.")
@click.option("--grow", metavar="A,B", default="", help=f"Measure a network that grows along: {', '.join(AXES)}.")
@click.option("--roofline", is_flag=True, help="Also measure the machine's peak rates.")
@click.option("--save", type=FILE, help="Write all results to this JSON file.")
@click.option("--chart", type=FILE, help="Draw a chart to this file, .svg or .png.")
@json_option
def bench(
    what: str | None, overrides: tuple[str, ...], backends: str, peers: str, rounds: int, count: int | None, seed: int,
    grow: str, roofline: bool, save: Path | None, chart: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Benchmark the training iterations of a recipe or a configuration file.

    Each contestant runs in its own process, and they are measured in interleaved rounds, so that disturbances of the
    machine affect all of them. Results are reported only if the first losses of all peers equal Sigma's. A round takes
    at least 0.3 seconds, and whole epochs if they are short. Hooks run as in training, except those that would stop it.

    Without --backends and --peers, all installed backends that can train the network are measured, and one is
    recommended. With peers, and for --random and --grow, the default is the configuration's.
    """
    _check_file("--save", save)
    _check_chart(chart)
    growing = axes(names(grow))
    nets = _nets(what, overrides, count, seed, growing)
    advised = what is not None and not backends and not peers
    measured = installed_backends(say) if advised else named_backends(backends) or [""]
    entry = Entry(measured, names(",".join(select_peers(names(peers), say))), rounds, chosen=not advised)
    on = machine() | ({"roofline": _roofline()} if roofline else {})
    every = []
    for name, wanted in nets:
        say(name)
        every.append(entry.run_contestants(name, wanted, say))
        for line in lines(every[-1]):
            say(line)
    for line in summary(every) if len(every) > 1 else ():
        say(line)
    for line in growth(every, works(growing)) if growing else ():
        say(line)
    advice = take(every[0].backends, _backend_name(nets[0][1])) if advised else None
    if advice:
        say(str(advice))
    if roofline:
        say(best(on["roofline"]))
    _keep(to_document(every, on), save, chart)
    if as_json:
        document(described(every, what is not None, on) | ({"advice": advice.entry} if advice else {}))


def _keep(everything: dict[str, Any], save: Path | None, chart: Path | None) -> None:
    """Write the results and the chart, if they are wanted."""
    if save:
        with _report_unwritten("--save", save):
            save.write_text(json.dumps(everything, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if chart:
        with _report_unwritten("--chart", chart):
            draw(everything["results"], chart)


def _nets(
    what: str | None, overrides: tuple[str, ...], count: int | None, seed: int, growing: list[str]
) -> list[tuple[str, Document]]:
    """Return the configurations to measure, by name."""
    if sum(map(bool, (what, count, growing))) != 1:
        raise SigmaConfigError(
            "bench: nothing to measure, or too much. Pass a recipe, a file, --random or --grow, and only one of them."
        )
    if what:
        return [(what, open_document(what, overrides))]
    nets = list(draw_networks(count, seed) if count else grown(growing))
    for assignment in overrides:
        nets = [(name, override(wanted, assignment)) for name, wanted in nets]
    return nets


def _backend_name(wanted: Document) -> str:
    """Return the name of the backend that a configuration has, or that is used if it has none."""
    tables = [wanted.values.get(name, {}) for name in ("trainer", "run")]
    backend = next((table["backend"] for table in tables if "backend" in table), None) or catalogue().default_backend()
    return str(backend["type"] if isinstance(backend, dict) else backend).rpartition(":")[2]


def _check_file(option: str, path: Path | None) -> None:
    """Raise SigmaConfigError, before measuring, for a file that cannot be written."""
    if path is not None and not path.parent.is_dir():
        raise SigmaConfigError(f"{option} {path}: there is no directory {path.parent}. Create it, or choose another.")
    if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SigmaConfigError(f"{option} {path}: permission denied. Choose a file in another directory.")


@contextmanager
def _report_unwritten(option: str, path: Path) -> Iterator[None]:
    """Report a file that could not be written in the end."""
    try:
        yield
    except OSError as error:
        raise SigmaError(
            f"{option} {path}: cannot be written: {error.strerror}. The output above is complete."
        ) from error


def _check_chart(path: Path | None) -> None:
    _check_file("--chart", path)
    if path is None:
        return
    if path.suffix not in FORMATS:
        raise SigmaConfigError(f"--chart {path}: is neither {' nor '.join(FORMATS)}. End the name with one of them.")
    require_library(f"--chart {path}", "matplotlib")


def _roofline() -> Any:
    with closing(Process("roofline", "sigma_bench.roofline:Roofline")) as process:
        return process.ask("rates")
