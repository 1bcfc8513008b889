"""Apply the rules of an optimiser: which settings a parameter has, and whether it is trained."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import evolve

from sigma_kernel.contracts import GradientOptimiser, Optimisation, Optimiser
from sigma_kernel.errors import FIRST, Mistakes, SigmaConfigError, suggest_name
from sigma_kernel.network.tracing import LiveSetting, live_settings
from sigma_kernel.registry.addresses import DEEP, levels, matches
from sigma_step.live import Live, LiveValue, check_fits
from sigma_step.model import LAYERS, ONLY, OPTIMISERS, Model

Owners = dict[str, str]  # the head of each parameter's optimiser
LISTED = 12  # parameters that an error message lists


def hits(model: Model, rules: Mapping[str, str], address: str) -> list[str]:
    """Return the rules whose pattern matches an address, most specific first; on a tie the later one wins."""
    names = [name for name, pattern in reversed([*rules.items()]) if matches(pattern, address, model.tags)]
    return sorted(names, key=lambda name: specificity(rules[name]), reverse=True)  # which is stable


def specificity(pattern: str) -> tuple[int, ...]:
    """Return a sort key that is greater for a more specific pattern."""
    parts = levels(pattern)
    partial = [level for level in parts if "*" in level.name and level.name.strip("*")]
    return (
        sum("*" not in level.name for level in parts),
        len(partial),
        sum(len(level.name.replace("*", "")) for level in partial),
        sum(len(level.tags) for level in parts),
        sum(level.name == "*" for level in parts),
        -parts.count(DEEP),
    )


def setting_rule(model: Model, address: str, setting: str) -> str | None:
    """Return the rule of an optimiser's ``settings`` that gives one setting of one parameter."""
    settings = model.optimisers[model.owners[address]].type.settings if address in model.owners else {}
    rules = {name: str(rule["match"]) for name, rule in settings.items() if setting in rule}
    return next(iter(hits(model, rules, address)), None)


def check_matches(
    trainer: str, rules: Mapping[str, str], model: Model, mistakes: Mistakes = FIRST, among: Collection[str] = ()
) -> None:
    """Refuse rules, given by name, whose pattern matches no parameter, or none ``among`` some of them."""
    among = among or [*model.shapes.parameters]
    first, more = [*among][:LISTED], ", ..." if len(among) > LISTED else ""
    for name, pattern in rules.items():
        with mistakes.locate(*name.split("."), "match"):
            if not any(matches(pattern, address, model.tags) for address in among):
                raise SigmaConfigError(
                    f"{trainer}.{name}: {pattern!r} matches no parameter. "
                    f"There are {', '.join(first) or 'none'}{more}; "
                    "'*' stands for a part of one level, '**' for any number of levels."
                )


def patterns(head: str, optimiser: Optimiser) -> Iterator[tuple[str, str]]:
    """Yield the user's name and the pattern of every optimiser rule that should match a parameter."""
    for name, rule in optimiser.settings.items():
        if isinstance(rule.get("match"), str):  # other rules are refused elsewhere
            yield f"{head}.settings.{name}", rule["match"]
    yield from ((f"{head}.{name}", change.match) for name, change in optimiser.changes.items())


# -- which optimiser updates a parameter -------------------------------------------------------------------------------
def assign_optimisers(
    trainer: str,
    model: Model,
    optimisers: Mapping[str, Optimisation],
    order: Sequence[str] = (),
    commanded: Mapping[str, bool] = MappingProxyType({}),
) -> Model:
    """Set the optimisers of a model, and freeze parameters by their rules, by commands, and where none matches.

    Raises SigmaConfigError for an invalid rule, and for one without a match.
    """
    check_optimisers(trainer, model, optimisers)
    check_order(trainer, optimisers, order)
    heads = [f"{OPTIMISERS[1]}{name}" for name in order] or [*optimisers]
    model = evolve(
        model,
        optimisers={head: optimisers[head] for head in heads},
        ordered=bool(order),
        owners=owners(trainer, model, optimisers),
    )
    rules = {address: setting_rule(model, address, "frozen") for address in model.owners}
    fixed = {a: optimisers[model.owners[a]].type.settings[rule]["frozen"] for a, rule in rules.items() if rule}
    frozen = {address for address, wanted in {**fixed, **commanded}.items() if wanted}
    unowned = model.shapes.parameters.keys() - model.owners.keys() if optimisers else ()
    rested = {address for address in model.shapes.state if _is_frozen_state(model, optimisers, address)}
    left = frozenset({*frozen, *unowned, *rested})
    return evolve(model, frozen=left, paused=frozenset(a for a in commanded if a in left))


def _is_frozen_state(model: Model, optimisers: Mapping[str, Optimisation], address: str) -> bool:
    """Return whether a rule of the optimiser that matches an entry of layer state freezes it."""
    for optimisation in optimisers.values():
        if matches(optimisation.match, address, model.tags):
            rules = {n: str(rule["match"]) for n, rule in optimisation.type.settings.items() if "frozen" in rule}
            return any(optimisation.type.settings[n]["frozen"] for n in hits(model, rules, address)[:1])
    return False


def owners(trainer: str, model: Model, optimisers: Mapping[str, Optimisation], mistakes: Mistakes = FIRST) -> Owners:
    """Return the head of the optimiser that matches each parameter; refuse a parameter that two of them match."""
    heads: dict[str, str] = {}
    for head, optimisation in optimisers.items():
        with mistakes.locate(*head.split("."), "match"):
            for address in (a for a in model.shapes.parameters if matches(optimisation.match, a, model.tags)):
                if (other := heads.setdefault(address, head)) != head:
                    raise SigmaConfigError(
                        f"{trainer}.{head}: {optimisation.match!r} matches {address}, as does {trainer}.{other}. "
                        "A parameter has one optimiser: give them patterns without a common match."
                    )
    return heads


def check_optimisers(
    trainer: str, model: Model, optimisers: Mapping[str, Optimisation], mistakes: Mistakes = FIRST
) -> None:
    """Refuse invalid rules of optimisers, those without a match, and costs that the network does not have."""
    mine = owners(trainer, model, optimisers, mistakes)
    for head, optimisation in optimisers.items():
        check_rules(optimisation.type, model.precision, mistakes, head)
        with mistakes.locate(*head.split(".")):
            _check_scaled(head, optimisation.type, model)
        if head != ONLY:
            check_matches(trainer, {head: optimisation.match}, model, mistakes)
            check_costs(f"{trainer}.{head}.minimises", head, optimisation.minimises, model, mistakes)
        among = [address for address, owner in mine.items() if owner == head]
        rules = dict(patterns(head, optimisation.type))
        freeze = {f"{head}.settings.{n}" for n, rule in optimisation.type.settings.items() if "frozen" in rule}
        check_matches(trainer, {n: x for n, x in rules.items() if n not in freeze}, model, mistakes, among)
        own = [a for a in model.shapes.state if among and matches(optimisation.match, a, model.tags)]
        check_matches(trainer, {n: x for n, x in rules.items() if n in freeze}, model, mistakes, [*among, *own])


def _check_scaled(head: str, optimiser: Optimiser, model: Model) -> None:
    if model.scales_losses and not isinstance(optimiser, GradientOptimiser):
        raise SigmaConfigError(
            f"{head}: mixed_float16 scales the loss and skips updates whose gradients overflow, which "
            f"{type(optimiser).__name__} does not support: it evaluates the loss at several points. Choose "
            "precision = 'mixed_bfloat16' or 'float32'."
        )


def check_costs(where: str, head: str, names: Any, model: Model, mistakes: Mistakes = FIRST) -> None:
    """Refuse costs to minimise, by name, that the network does not have."""
    costs = [cost.name for cost in model.network.costs]
    with mistakes.locate(*head.split("."), "minimises"):
        if names is not None and not (isinstance(names, list | tuple) and names):
            raise SigmaConfigError(f"{where}: must be a list of cost layers (got {names!r}). Write ['...'].")
        for name in names or ():
            if name not in costs:
                raise SigmaConfigError(
                    f"{where}: there is no cost {name!r}.{suggest_name(str(name), costs, 'There are:')}"
                )


def check_order(trainer: str, optimisers: Mapping[str, Optimisation], order: Any, mistakes: Mistakes = FIRST) -> None:
    """Refuse an order of updates that is not one of the names of all optimisers."""
    names = [head.removeprefix(OPTIMISERS[1]) for head in optimisers]
    with mistakes.locate("order"):
        if not isinstance(order, list | tuple) or (order and sorted(map(str, order)) != sorted(names)):
            raise SigmaConfigError(
                f"{trainer}.order: must be a list of the names of all optimisers, each once (got {order!r}). "
                f"There are: {', '.join(names) or 'none'}."
            )


# -- settings ----------------------------------------------------------------------------------------------------------
def live_values(model: Model) -> Live:
    """Return the live values of a model as configured.

    Raises SigmaConfigError for one that the precision cannot hold.
    """
    values = {LAYERS + address: LiveValue(s, s.value) for address, s in model.shapes.live.items()}
    for head, optimisation in model.optimisers.items():
        values |= _optimiser_values(model, head, optimisation.type)
    return Live(values, model.precision)


def _optimiser_values(model: Model, head: str, optimiser: Optimiser) -> dict[str, LiveValue]:
    values, settings = dict[str, LiveValue](), live_settings(optimiser)
    for address in model.tuned_parameters(head):
        for name, setting in settings.items():
            rule = setting_rule(model, address, name)
            base = float(optimiser.settings[rule][name]) if rule else setting.value
            values[f"{head}.{address}.{name}"] = LiveValue(setting, base, optimiser.schedules.get(name))
    for owner, change in optimiser.changes.items():
        own = live_settings(change).items()
        values |= {f"{head}.{owner}.{name}": LiveValue(setting, setting.value) for name, setting in own}
    return values


def check_rules(optimiser: Optimiser, precision: str, mistakes: Mistakes = FIRST, head: str = ONLY) -> None:
    """Refuse numbers that the precision cannot hold, and rules and schedules for unknown settings."""
    live = live_settings(optimiser)
    for name, setting in live.items():
        with mistakes.locate(*head.split("."), name):
            check_fits(f"{head}.{name}", setting.value, precision)
    for name, rule in optimiser.settings.items():
        where = *head.split("."), "settings", name
        with mistakes.locate(*where, *({"match"} & rule.keys())):
            if not isinstance(rule.get("match"), str):
                raise SigmaConfigError(f"{'.'.join(where)}: has no pattern. Add match = '**'.")
        for key in rule:
            with mistakes.locate(*where, key):
                _check_setting(f"{'.'.join(where)}.{key}", key, rule[key], live, precision)
    for key in optimiser.schedules:
        with mistakes.locate(*head.split("."), "schedules", key):
            if key not in live:
                raise SigmaConfigError(f"{head}.schedules.{key}: no such setting.{suggest_name(key, live)}")


def _check_setting(where: str, key: str, value: Any, known: Mapping[str, LiveSetting], precision: str) -> None:
    if key in known:
        known[key].check(where, value)
        check_fits(where, value, precision)
    elif key not in ("match", "frozen"):
        raise SigmaConfigError(f"{where}: no such setting.{suggest_name(key, [*known, 'match', 'frozen'])}")
    elif key == "frozen" and not isinstance(value, bool):
        raise SigmaConfigError(f"{where}: must be true or false (got {value!r}).")
