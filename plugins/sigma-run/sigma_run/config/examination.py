"""Collect every mistake of a trainer: run each stage of its preparation and keep what it raises.

Preparing a trainer stops at the first mistake. Only then is this called, so it costs nothing if all is right.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter

from sigma_kernel.clock import COUNTED
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.network.network import Network
from sigma_kernel.settings.mistakes import Faults
from sigma_run.config.document import Path as Place
from sigma_step.rules import check_optimisers, check_order
from sigma_training import components as choices
from sigma_training.data.dataset import read
from sigma_training.hooks.order import order_hooks
from sigma_training.hooks.outlook import check_hooks, check_reads
from sigma_training.preparation import ARCHITECTURE, Missing, Stages, check_shards, ready_block


def examine(trainer: choices.Settings, left_out: Iterable[str] = ()) -> list[tuple[Place, Exception]]:
    """Return every mistake, each with its path in the trainer's tables, except in stages that are ``left_out``.

    The stages are ``backend``, ``data``, ``network``, ``hooks``, and ``ending``, which checks that training ends.
    """
    faults = Faults()
    stages = Stages(trainer, faults, {*left_out})
    chosen = (attrgetter("backend"), _costs, attrgetter("feed"), _optimisers, _block, _parameters, _reads, _hooks)
    for look in (*chosen, attrgetter("ending")):
        with suppress(Missing):
            look(stages)
    return faults.found


def check_cost(network: Network) -> None:
    """Raise SigmaNetworkError if the network has no cost layer."""
    if not network.costs:
        raise SigmaNetworkError("there is no cost to minimise. End it with one, such as + softmax_cross_entropy().")


def _costs(stages: Stages) -> None:
    with stages.mistakes.locate(*ARCHITECTURE):
        check_cost(stages.network)


def _optimisers(stages: Stages) -> None:
    chosen, name = stages.resolved_settings, stages.settings.name
    if optimisers := chosen.optimisers_by_head:
        check_order(name, optimisers, chosen.order, stages.mistakes)
        check_shards(stages)
        check_optimisers(name, stages.model, optimisers, stages.mistakes)


def _block(stages: Stages) -> None:
    """Check the first block of data as training would."""
    model, (preparation, _) = stages.fitting, stages.rows
    with stages.mistakes.locate("data"):
        splits = choices.encode_splits(
            stages.encoded_splits, model.network, stages.resolved_settings, model.shapes.judged_specs
        )
        ready_block(model, preparation, read(splits["training"], 0))


def _parameters(stages: Stages) -> None:
    """Draw initial values by each rule, stopping at its first failure."""
    initial, failed = stages.initial, set[str]()
    for address, parameter in initial.parameters_and_state.items():
        rule = initial.rule(address)
        if rule is not None and rule not in failed:
            failed.add(rule)
            with stages.mistakes.locate("initialisers", rule):
                initial.check_values(address, parameter)
                failed.remove(rule)


def _reads(stages: Stages) -> None:
    hooks = stages.hooks
    with stages.mistakes.locate("hooks"):
        order_hooks(hooks)
    there = {*(scale.value for scale in COUNTED), "goal", "training.loss"}
    there |= {address for hook in hooks.values() for address in hook.settable}
    check_reads(stages.settings.name, hooks, None, there, stages.mistakes, stages.settings.others)


def _hooks(stages: Stages) -> None:
    if stages.network.costs and {*stages.network.sections()} <= {*stages.model.sections}:
        check_hooks(f"{stages.settings.name}.hooks", stages.hooks, stages.model, stages.mistakes)
