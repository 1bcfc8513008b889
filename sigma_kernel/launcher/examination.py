"""Every mistake of a trainer at once, each part judged by itself; what depends on a part that is wrong is left out.

:meth:`Trainer.prepare` ends at the first mistake.  Only then is this asked: it costs nothing where all is right.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from types import SimpleNamespace
from typing import Any

from attrs import evolve, frozen

from sigma_kernel.clock import COUNTED
from sigma_kernel.config.building import check_cost
from sigma_kernel.config.complaints import LOADING
from sigma_kernel.config.document import Path as Place
from sigma_kernel.config.structure import Faults
from sigma_kernel.contracts import Dataset, Hook, Optimiser
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaNetworkError, near
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.network import Network
from sigma_kernel.network.tracing import live_settings
from sigma_kernel.training import components as choices
from sigma_kernel.training.checking import check_hooks, check_memory, check_precision
from sigma_kernel.training.components import check_split
from sigma_kernel.training.data.dataset import specs
from sigma_kernel.training.data.feed import Feed
from sigma_kernel.training.data.preprocessing import Preparation
from sigma_kernel.training.hooks.order import OBSERVED, meet, ordered, reads
from sigma_kernel.training.step.live import Live, check_fits, check_matches, check_rules, live_values
from sigma_kernel.training.step.model import Model
from sigma_kernel.training.trainer import Trainer, batch_size, drawn, initialiser_rule, patterns, ready_block

ARCHITECTURE: Place = ("network", "architecture")
ELSEWHERE = ("network.", "optimiser.", "phases.", *OBSERVED)  # addresses that are known to a whole trainer only


@frozen
class Rows:
    """The rows to train on, and what is done to them."""

    dataset: Dataset
    preparation: Preparation
    sections: Mapping[str, Spec]


def examine(trainer: Trainer, missing: Container[str] = ()) -> list[tuple[Place, Exception]]:
    """Return every mistake, each with its path in the trainer's tables; parts that are ``missing`` are not looked at.

    Parts are ``run``, ``data``, ``network``, ``optimiser`` and ``hooks``.
    """
    faults = Faults()
    if "run" not in missing and not _precise(trainer, faults):
        trainer = evolve(trainer, precision="float32")  # else all else would seem to be wrong
    if trainer.optimiser is not None:
        _rules(trainer.optimiser, faults)
        _fitting(trainer.optimiser, trainer.precision, faults)
    rows = None if "data" in missing else _rows(trainer, faults)
    model = None if "network" in missing else _model(trainer, rows, faults)
    if model is not None:
        _parameters(trainer, model, faults)
    complete = model is not None and {*model.network.sections()} <= {*model.sections}
    if rows is not None and model is not None and complete and model.sections.items() <= rows.sections.items():
        with faults.at("data"):
            dataset = _encoded(trainer, model.network, rows.dataset, model.shapes.outputs)
            ready_block(model, rows.preparation, dataset.block(0))
    _hooks(trainer, faults, "data" in missing, "hooks" in missing)
    if model is not None and complete and model.network.costs:
        for name, hook in trainer.hooks.items():
            with faults.at("hooks", name):
                check_hooks("hooks", {name: hook}, model)
    return faults.found


def _precise(trainer: Trainer, faults: Faults) -> bool:
    with faults.at("run", "precision"):
        check_precision("precision", trainer.precision, trainer.resolve("backend", trainer.backend))
        return True
    return False


def _rules(optimiser: Optimiser, faults: Faults) -> None:
    """Look at each setting of each rule, and at each schedule, as if there were no other."""
    check = partial(check_rules, settings=live_settings(optimiser))
    alone: Callable[..., Any] = partial(SimpleNamespace, settings={}, schedules={})
    for name, rule in optimiser.settings.items():
        said = {key: value for key, value in rule.items() if key == "match"}
        with faults.at("optimiser", "settings", name, *said):
            check(alone(settings={name: said}))
        for key, value in ((key, value) for key, value in rule.items() if key not in said):
            with faults.at("optimiser", "settings", name, key):
                check(alone(settings={name: {"match": "**", key: value}}))
    for key, schedule in optimiser.schedules.items():
        with faults.at("optimiser", "schedules", key):
            check(alone(schedules={key: schedule}))


def _fitting(optimiser: Optimiser, precision: str, faults: Faults) -> None:
    """Look for numbers that are too large for the precision."""
    known = live_settings(optimiser)
    for name, setting in known.items():
        with faults.at("optimiser", name):
            check_fits(name, setting.value, precision)
    for name, rule in optimiser.settings.items():
        for key in rule.keys() & known.keys():
            with faults.at("optimiser", "settings", name, key):
                check_fits(key, rule[key], precision)


# -- data --------------------------------------------------------------------------------------------------------------
def _rows(trainer: Trainer, faults: Faults) -> Rows | None:
    with faults.at(*LOADING):
        data = trainer.data
        dataset: Dataset = data["training"] if isinstance(data, Mapping) else data
        with suppress(SigmaNetworkError):  # told where the network is looked at
            dataset = _encoded(trainer, Network.build(trainer.network), dataset)
        with faults.at("data", "batch_size"):
            size = batch_size(trainer, len(dataset))
            Feed(dataset, size, 0, dict, lambda values: values, keep_last=trainer.last_batch == "keep")
        preparation = _preparation(trainer, dataset, faults)
        return Rows(dataset, preparation, specs(preparation(dataset.block(0)))) if preparation else None
    return None


def _encoded(
    trainer: Trainer, network: Network, dataset: Dataset, outputs: Mapping[str, Spec] | None = None
) -> Dataset:
    return choices.encoded({"training": dataset}, network, trainer.preprocessors, outputs)["training"]


def _preparation(trainer: Trainer, dataset: Dataset, faults: Faults) -> Preparation | None:
    """Return the fitted preprocessors; the first one that fails is the one to blame."""
    done = Preparation(trainer.precision).fit(dataset)
    for count, name in enumerate(trainer.preprocessors, 1):
        fitted = len(faults.found)
        with faults.at("data", "preprocessors", name):
            done = Preparation(trainer.precision, dict(islice(trainer.preprocessors.items(), count))).fit(dataset)
            done(dataset.block(0))
        if len(faults.found) > fitted:
            return None
    return done


# -- the network -------------------------------------------------------------------------------------------------------
def _model(trainer: Trainer, rows: Rows | None, faults: Faults) -> Model | None:
    """Return the traced network: on the data, or else on inputs of the shapes that it states itself."""
    with faults.at(*ARCHITECTURE):
        network = Network.build(trainer.network)
        with faults.at(*ARCHITECTURE):
            check_cost(network)
        own = {p.layer.section: Spec(p.layer.shape, p.layer.dtype or trainer.precision) for p in network.inputs}
        if rows is None:
            return _traced(trainer, network, own)
        with faults.at(*ARCHITECTURE):
            _check_sections(network, rows.sections)
            return _traced(trainer, network, {name: rows.sections[name] for name in network.sections()})
        with suppress(SigmaError):  # has been told; parameters have the same addresses
            return _traced(trainer, network, own)
    return None


def _check_sections(network: Network, sections: Mapping[str, Spec]) -> None:
    for name in network.sections():
        if name not in sections:
            raise SigmaNetworkError(
                f"the network reads section {name!r}; the data has {', '.join(sections)}.{near(name, sections)} "
                "Name one of these in input(section=...) or a cost's targets=..."
            )


def _traced(trainer: Trainer, network: Network, sections: Mapping[str, Spec]) -> Model:
    shapes = network.declare(sections, trainer.precision, trainer.resolve)
    model = Model(network, shapes, sections, trainer.precision, trainer.resolve)
    check_memory(model)
    Live(live_values(model), trainer.precision)  # numbers that do not fit
    return model


def _parameters(trainer: Trainer, model: Model, faults: Faults) -> None:
    """Look at whatever concerns parameters: who matches none, and first values that cannot be had."""
    failed = set[str]()
    for name, pattern in patterns(_with_matches(trainer)):
        with faults.at(*name.split("."), "match"):
            failed.add(name)
            check_matches(trainer.name, {name: pattern}, model)
            failed.remove(name)
    rules = {name: rule for name, rule in trainer.initialisers.items() if f"initialisers.{name}" not in failed}
    trainer = evolve(trainer, initialisers=rules)
    for address, parameter in model.shapes.parameters.items():
        rule = initialiser_rule(trainer, model, address)
        if rule is not None and rule not in failed:
            with faults.at("initialisers", rule):
                failed.add(rule)
                drawn(trainer, model, address, parameter)
                failed.remove(rule)


def _with_matches(trainer: Trainer) -> Trainer:
    """Return a trainer without the optimiser's rules that match nobody, as they do not say whom."""
    if trainer.optimiser is None:
        return trainer
    rules = {name: rule for name, rule in trainer.optimiser.settings.items() if isinstance(rule.get("match"), str)}
    return evolve(trainer, optimiser=evolve(trainer.optimiser, settings=rules))


# -- hooks -------------------------------------------------------------------------------------------------------------
def _hooks(trainer: Trainer, faults: Faults, no_data: bool, some_missing: bool) -> None:
    hooks = trainer.hooks
    if not no_data:
        splits = list(trainer.data) if isinstance(trainer.data, Mapping) else ["training"]
        for name, hook in hooks.items():
            with faults.at("hooks", name):
                for split in hook.splits:
                    check_split(name, split, splits)
    if some_missing:  # what they would publish is not known
        return
    with faults.at("hooks"):
        ordered(hooks)
    known = {*(scale.value for scale in COUNTED), "goal", "training.loss"}
    known |= {address for hook in hooks.values() for address in (*hook.writes, *hook.settable)}
    for name, hook in hooks.items():
        for key, address in _read(hook):
            with faults.at("hooks", name, *key):
                _check_read(address, known)


def _check_read(address: str, known: set[str]) -> None:
    if not address.startswith(ELSEWHERE) and not any(meet(address, a) for a in known):
        raise SigmaConfigError(
            f"reads {address!r}, which nothing here publishes. Add the hook that does, or correct the address."
            f"{near(address, known)}"
        )


def _read(hook: Hook) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every address that a hook reads, and the key that says so, if it is its criterion."""
    for address in dict.fromkeys(reads(hook)):
        yield (() if address in hook.reads else ("when",)), address
