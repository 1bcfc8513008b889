"""Apply the rules of an optimiser: which settings a parameter has, and whether it is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from sigma_kernel.contracts import Optimiser
from sigma_kernel.errors import FIRST, Mistakes, SigmaConfigError, near
from sigma_kernel.network.tracing import LiveSetting, live_settings
from sigma_kernel.registry.addresses import matches, specificity
from sigma_kernel.training.step.live import Live, LiveValue, check_fits
from sigma_kernel.training.step.model import LAYERS, Model

LISTED = 12  # parameters that an error message lists


def hits(model: Model, rules: Mapping[str, str], address: str) -> list[str]:
    """Return the rules whose pattern matches an address, most specific first; on a tie the later one wins."""
    found = [
        (specificity(pattern), i, name)
        for i, (name, pattern) in enumerate(rules.items())
        if matches(pattern, address, model.tags)
    ]
    return [name for *_, name in sorted(found, reverse=True)]


def setting_rule(model: Model, address: str, setting: str) -> str | None:
    """Return the rule of the optimiser's ``settings`` that gives one setting of one parameter."""
    settings = model.optimiser.settings if model.optimiser else {}
    rules = {name: str(rule["match"]) for name, rule in settings.items() if setting in rule}
    return next(iter(hits(model, rules, address)), None)


def check_matches(trainer: str, rules: Mapping[str, str], model: Model, mistakes: Mistakes = FIRST) -> None:
    """Refuse rules, given by name, whose pattern matches no parameter."""
    first, more = [*model.shapes.parameters][:LISTED], ", ..." if len(model.shapes.parameters) > LISTED else ""
    for name, pattern in rules.items():
        with mistakes.at(*name.split("."), "match"):
            if not any(matches(pattern, address, model.tags) for address in model.shapes.parameters):
                raise SigmaConfigError(
                    f"{trainer}.{name}: {pattern!r} matches no parameter. "
                    f"There are {', '.join(first) or 'none'}{more}; "
                    "'*' stands for a part of one level, '**' for any number of levels."
                )


def patterns(optimiser: Optimiser) -> Iterator[tuple[str, str]]:
    """Yield the user's name and the pattern of every optimiser rule that should match a parameter."""
    for name, rule in optimiser.settings.items():
        if isinstance(rule.get("match"), str):  # other rules are refused elsewhere
            yield f"optimiser.settings.{name}", rule["match"]
    for kind in ("transforms", "modifiers"):
        yield from ((f"optimiser.{kind}.{name}", t.match) for name, t in getattr(optimiser, kind, {}).items())


def optimised(trainer: str, model: Model, optimiser: Optimiser | None) -> Model:
    """Set the optimiser of a model, and freeze parameters by its rules.

    Raises SigmaConfigError for an invalid rule, and for one without a match.
    """
    model = evolve(model, optimiser=optimiser, frozen=frozenset())
    if optimiser is None:
        return model
    check_rules(optimiser, model.precision)
    check_matches(trainer, dict(patterns(optimiser)), model)
    found = {address: setting_rule(model, address, "frozen") for address in model.shapes.parameters}
    frozen = frozenset(address for address, rule in found.items() if rule and optimiser.settings[rule]["frozen"])
    return evolve(model, frozen=frozen)


def live_values(model: Model) -> Live:
    """Return the live values of a model as configured.

    Raises SigmaConfigError for one that the precision cannot hold.
    """
    values = {LAYERS + address: LiveValue(s, s.value) for address, s in model.shapes.live.items()}
    return Live({**values, **(_optimiser_values(model, model.optimiser) if model.optimiser else {})}, model.precision)


def _optimiser_values(model: Model, optimiser: Optimiser) -> dict[str, LiveValue]:
    values, settings = dict[str, LiveValue](), live_settings(optimiser)
    for address in model.trainable():
        for name, setting in settings.items():
            rule = setting_rule(model, address, name)
            base = float(optimiser.settings[rule][name]) if rule else setting.value
            values[f"optimiser.{address}.{name}"] = LiveValue(setting, base, optimiser.schedules.get(name))
    for group in ("transforms", "modifiers"):
        for owner, change in getattr(optimiser, group, {}).items():
            for name, setting in live_settings(change).items():
                values[f"optimiser.{group}.{owner}.{name}"] = LiveValue(setting, setting.value)
    return values


def check_rules(optimiser: Optimiser, precision: str, mistakes: Mistakes = FIRST) -> None:
    """Refuse numbers that the precision cannot hold, and rules and schedules for unknown settings."""
    known = live_settings(optimiser)
    for name, setting in known.items():
        with mistakes.at("optimiser", name):
            check_fits(f"optimiser.{name}", setting.value, precision)
    for name, rule in optimiser.settings.items():
        where = "optimiser", "settings", name
        with mistakes.at(*where, *({"match"} & rule.keys())):
            if not isinstance(rule.get("match"), str):
                raise SigmaConfigError(f"{'.'.join(where)}: has no pattern. Add match = '**'.")
        for key in rule:
            with mistakes.at(*where, key):
                _check_setting(f"{'.'.join(where)}.{key}", key, rule[key], known, precision)
    for key in optimiser.schedules:
        with mistakes.at("optimiser", "schedules", key):
            if key not in known:
                raise SigmaConfigError(f"optimiser.schedules.{key}: no such setting.{near(key, known)}")


def _check_setting(where: str, key: str, value: Any, known: Mapping[str, LiveSetting], precision: str) -> None:
    if key in known:
        known[key].check(where, value)
        check_fits(where, value, precision)
    elif key not in ("match", "frozen"):
        raise SigmaConfigError(f"{where}: no such setting.{near(key, [*known, 'match', 'frozen'])}")
    elif key == "frozen" and not isinstance(value, bool):
        raise SigmaConfigError(f"{where}: must be true or false (got {value!r}).")
