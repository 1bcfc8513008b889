"""``sigma check`` and ``sigma explain``: validate and describe a configuration without training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from sigma_kernel.contracts import Finding
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_kernel.network.drawing import is_chain
from sigma_kernel.network.outline import HEAD, Outline
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.settings import MIXED
from sigma_run.config import Configuration, build, prepare
from sigma_run.config.building import in_file
from sigma_run.config.complaints import complaint
from sigma_run.config.examination import examine
from sigma_run.config.reading import OF_COMMANDS
from sigma_run.launcher.configured import open_document, recipe_or_file, understood
from sigma_run.launcher.explanation import explain_trainer
from sigma_run.launcher.findings import SERIOUS, describe_findings, examine_trainer, list_trainers, show_findings
from sigma_run.launcher.output import document, json_option, say, table
from sigma_run.launcher.partial import OFFLINE, offline
from sigma_training.session.state import TIMED
from sigma_training.trainer import expect_trainer


@click.command()
@recipe_or_file
@json_option
def check(what: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Check a recipe or a configuration file (keys, components, shapes, data) without training or downloading."""
    try:
        complete, precision, sizes, findings, notes = _check_configuration(what, overrides)
    except SigmaError as error:
        if as_json:
            document({"ok": False, "errors": str(error).split("\n")})
        raise
    if as_json:
        result = {"ok": True, "data": complete, "findings": describe_findings(findings)}
        document(result | ({"sizes": sizes} if sizes else {}) | ({"notes": notes} if notes else {}))
    else:
        show_findings(finding for finding in findings if finding.severity in SERIOUS)
        said = "ok" if precision == "float32" else f"ok, in {precision}"
        say(said if complete else f"{said}, except for the data, which must be downloaded first")
        for layer, size in sizes.items():
            say(f"{layer} takes {_sides(size)} from the data")
        for note in notes:
            say(f"note: {note}", "yellow")


def _check_configuration(
    what: str, overrides: tuple[str, ...]
) -> tuple[bool, str, dict[str, list[int]], list[Finding], list[str]]:
    """Return whether all could be checked (not before data are downloaded), precision, sizes, findings and notes."""
    configuration = understood(open_document(what, overrides))
    with build(configuration, catalogue()) as environment, offline():
        try:
            prepare(configuration, environment, begins=True)
        except SigmaError as error:
            if OFFLINE not in str(error):
                raise
            _check_the_rest(configuration, environment)
            _check_tables(configuration, what, overrides)
            return False, configuration.run.precision, {}, [], []
        findings = [*chain(*(examine_trainer(trainer, quick=True) for trainer in list_trainers(environment)))]
        _check_tables(configuration, what, overrides)
        setups = [trainer.session.setup for trainer in list_trainers(environment)]
        notes = [] if all(setup.is_reproducible for setup in setups) else [TIMED]
        return True, configuration.run.precision, _sizes_from_data(environment), findings, notes


def _sizes_from_data(environment: Environment) -> dict[str, list[int]]:
    """Return the sizes that layers took from the data, by name; of several trainers, below the name of each."""
    trainers = {name: expect_trainer(trainer) for name, trainer in environment.trainers.items()}
    networks = {name: trainer.session.setup.model.network for name, trainer in trainers.items()}
    return {
        f"{name}.{layer}" if len(networks) > 1 else layer: [*size]
        for name, network in networks.items()
        for layer, size in (network.sizes or {}).items()
    }


def _check_the_rest(configuration: Configuration, environment: Environment) -> None:
    """Check everything but the data, using the input shapes that the networks declare."""
    document, trainers = configuration.document, environment.trainers
    parts = [in_file(document, name, examine(expect_trainer(trainer), {"data"})) for name, trainer in trainers.items()]
    if wrong := list(chain(*parts)):
        raise complaint(document, wrong)


def _check_tables(configuration: Configuration, what: str, overrides: tuple[str, ...]) -> None:
    """Let commands of plugins check their tables of the file, by their option ``--check``, as far as data are here."""
    for name in [name for name in OF_COMMANDS if name in configuration.document.values]:
        if not catalogue().offers("verb", name):
            say(
                f"warning: the table [{name}] is not checked, as the plugin of `sigma {name}` is not installed",
                "yellow",
            )
            continue
        command: click.Command = catalogue().load("verb", name)  # type: ignore[assignment]
        try:
            click.get_current_context().invoke(command, what=what, overrides=overrides, check=True, quiet=True)
        except SigmaError as error:
            if OFFLINE not in str(error):
                raise


@click.command()
@recipe_or_file
@click.option("--save", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Draw the layers: .svg.")
@json_option
def explain(what: str, overrides: tuple[str, ...], save: Path | None, as_json: bool) -> None:
    """Explain a recipe or a configuration file: layers, parameters and rules, hook order, memory, work, bursts."""
    configuration = understood(open_document(what, overrides))
    with build(configuration, catalogue()) as environment:
        prepare(configuration, environment)
        trainers = {name: explain_trainer(expect_trainer(trainer)) for name, trainer in environment.trainers.items()}
        outlines = {name: trainer.summary() for name, trainer in environment.trainers.items()}
    run = configuration.run
    if save is not None:
        _draw(save, outlines)
    if as_json:
        document({"run": run.name, "seed": run.seed, "trainers": trainers})
        return
    for name, report in trainers.items():
        click.echo(f"{run.name}, {name}: {report['precision']} on {report['backend']}, seed {run.seed}")
        _show(report, outlines[name])


def _draw(path: Path, outlines: dict[str, Outline]) -> None:
    """Write the layers of each trainer as SVG: to this file, or with several trainers to one file for each."""
    if path.suffix != ".svg":
        raise SigmaConfigError(f"--save: layers are drawn as SVG (got {path.name!r}). End the name in .svg.")
    for name, outline in outlines.items():
        to = path if len(outlines) == 1 else path.with_stem(f"{path.stem}-{name}")
        to.write_text(f"{outline.drawing()}\n", encoding="utf-8")
        say(f"{name}: {to}")


def _show(found: dict[str, Any], layers: Outline) -> None:
    _table(HEAD, *layers.cells(not is_chain(layers.sources)))
    rows = [[x["address"], _sides(x["shape"]), _describe_initialiser(x), _settings(x)] for x in found["parameters"]]
    _table(["PARAMETER", "SHAPE", "INITIALISER", "SETTINGS"], *rows)
    if len(found["optimisers"]) > 1:
        rows = [[x["name"], x["type"], x["match"], ", ".join(x["minimises"])] for x in found["optimisers"]]
        _table([f"OPTIMISER{' (IN ORDER)' if found['ordered'] else ''}", "TYPE", "UPDATES", "MINIMISES"], *rows)
    rows = [[x["name"], x["type"], x["every"], x["when"] or "", _course(x)] for x in found["hooks"]]
    _table(["HOOK (IN ORDER)", "TYPE", "DUE", "WHEN", "EXECUTION"], *rows)
    for reason in found["reasons"]:
        click.echo(reason)
    _table(*_facts(found))


def _describe_blocks(count: int, rows: int, together: int, lanes: int) -> str:
    """Return how a data set of several blocks is read, and what helps where training waits for it."""
    order = f"rows of {together} are drawn together" if together > 1 else "each is shuffled by itself"
    order += f", in {lanes} lanes, one for each shard" if lanes > 1 else ""
    waits = "phases.data has the seconds of waiting, which more `memory` or a faster disk shortens"
    return f"{count:,} blocks of {rows:,} rows, read ahead; {order}; {waits}"


def _describe_workers(name: str, workers: int, shards: int, every: int, staleness: int) -> str:
    """Return who computes the shards of batches, or trains their replicas, and when that pays."""
    rule = "the number of workers changes no bits. On one machine, threads in a backend that has them are faster"
    if every:
        means = f"replicas, one for each shard of a batch, which are averaged every {every} iterations"
        return f"{workers} by {name} train {shards} {means}: hooks, commands and goals act then; {rule}"
    what = f"{workers} by {name} compute the {shards} shards of each batch"
    return f"{what}, from parameters that lack {staleness} updates at most; {TIMED}" if staleness else f"{what}; {rule}"


def _facts(found: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the properties of the whole step, by name."""
    if found["precision"] in MIXED:
        low = MIXED[found["precision"]]
        scaled = ", and losses are scaled" if low == "float16" else ""
        yield ["precision:", f"products read {low} and add in float32; all else is float32{scaled}"]
    if found["augmentations"]:
        steps = ", ".join(f"{name} ({kind})" for name, kind in found["augmentations"].items())
        yield ["data:", f"each epoch is augmented by {steps}, two blocks ahead; phases.data has the seconds of waiting"]
    if found["rewritings"]:
        steps = ", then ".join(f"{name} ({kind})" for name, kind in found["rewritings"].items())
        yield ["network:", f"its graph is rewritten by {steps}, before gradients are taken"]
    if found["operator"]["shards"] > 1:
        yield ["workers:", _describe_workers(**found["operator"])]
    if len(found["tiers"]) > 1:
        tiers = ", then ".join(f"{name} from iteration {int(start):,} on" for start, name in found["tiers"].items())
        yield ["backend:", tiers]
    if found["blocks"]["count"] > 1:
        yield ["data:", _describe_blocks(**found["blocks"])]
    memory, bursts, work = found["memory"], found["bursts"], found["work"]
    ends = f"where {' or '.join(bursts['ended_by'])} is due" if bursts["ended_by"] else "with the epoch"
    peak = f", {_bytes(memory['peak_bytes'])} at the peak of a step" if memory["peak_bytes"] else ""  # 0: not known
    yield ["memory:", f"{_bytes(memory['state_bytes'])} for the state{peak}"]
    if (layers := memory["recomputed"]) and memory["peak_bytes_without"]:
        names = ", ".join(layers[:4]) + (f" and {len(layers) - 4} more" if len(layers) > 4 else "")
        yield ["", f"{_bytes(memory['peak_bytes_without'])} without recompute = true, which {names} set"]
    each = f"a step of {work['batch']} rows, which reads and writes {_bytes(work['bytes'])} at least"
    yield ["work:", f"{_flops(work['flops'])} {each}"]
    first = f"{bursts['iterations_per_epoch']} iterations per epoch; the first has at most {bursts['first']}"
    yield ["bursts:", f"{first}, later ones end {ends}"]
    yield from ([f"{name}:", value] for name, value in found["about"].items())


def _course(hook: dict[str, Any]) -> str:
    then = {"mute": "muted", "background": "moved to the background"}[hook["over_budget"]]
    budget = [] if hook["budget"] is None else [f"{then} above {hook['budget']:g} s"]
    return ", ".join([*(["in the background"] if hook["background"] else []), *budget])


def _table(*rows: Sequence[str]) -> None:
    click.echo()
    table(rows)


def _sides(shape: list[int]) -> str:
    return " x ".join(map(str, shape)) or "()"


def _describe_initialiser(parameter: dict[str, Any]) -> str:
    by = f"rule {parameter['rule']}" if parameter["rule"] else "layer default"
    return f"{parameter['initialiser']} ({by})"


def _settings(parameter: dict[str, Any]) -> str:
    if parameter["frozen"]:
        return "frozen" if parameter["optimiser"] else "frozen: no optimiser matches it"
    return ", ".join(
        f"{name}={setting['value']:g}" + (f" (rule {setting['rule']})" if setting["rule"] else "")
        for name, setting in parameter["settings"].items()
    )


def _flops(count: int) -> str:
    power = min((len(str(count)) - 1) // 3, 5)
    return f"{count / 1000**power:.3g} {['', 'k', 'M', 'G', 'T', 'P'][power]}FLOP"


def _bytes(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
