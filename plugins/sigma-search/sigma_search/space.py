"""Checks of a search before its first trial: every setting exists, takes its values, and the goal is published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sigma_kernel import catalogue, matches
from sigma_kernel.errors import SigmaConfigError, SigmaError, suggest_name
from sigma_run.config import Configuration, Document, load_configuration, override, parse_key
from sigma_run.study import Member
from sigma_search.results import inline, read_values
from sigma_search.settings import Dimension, SearchSettings

HOOK = "trial"  # the name of the hook that a search adds
FIXED = (("run", "name"), ("run", "folder"), ("search",))  # a study has one of each


def check_addresses(document: Document, settings: SearchSettings) -> None:
    """Raise SigmaConfigError, with its line, for an address that is no key, that is fixed, or that meets another."""
    addresses: dict[tuple[str, ...], str] = {}
    for address in settings.space:
        where = _locate(document, "space", address)
        path = _parse_address(address, where)
        if any(_overlap(path, fixed) for fixed in FIXED):
            raise SigmaConfigError(f"{where}: cannot be searched: all trials share it. Take another setting.")
        for other, text in addresses.items():
            if _overlap(path, other):
                raise SigmaConfigError(f"{where}: {text!r} sets it as well. Search one of them.")
        addresses[path] = address


def _parse_address(address: str, where: str) -> tuple[str, ...]:
    wrong = f"{where}: is no key (got {address!r}). Write one as in the file, such as trainer.epochs."
    if "=" in address:
        raise SigmaConfigError(wrong)
    try:
        return parse_key(address)
    except SigmaConfigError:
        raise SigmaConfigError(wrong) from None


def _overlap(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two settings are the same, or one is in the other."""
    return all(name == own for name, own in zip(path, other, strict=False))


def check_space(document: Document, base: Document, settings: SearchSettings) -> None:
    """Validate the configuration ``base`` of the trials with the ends of each range, and with each choice.

    Raises SigmaConfigError, with the line of the setting in ``[search.space]``.
    """
    for address, dimension in settings.space.items():
        where = _locate(document, "space", address)
        for value in dimension.ends:
            changed = override(base, f"{address}={inline(value)}", where)
            load_configuration(changed, catalogue())


def check_trials(document: Document, settings: SearchSettings, members: Sequence[Member]) -> None:
    """Raise SigmaConfigError if trials of a search have values that its space, which was edited, has not."""
    for member in members:
        addresses = tuple(assignment.partition("=")[0] for assignment in member.overrides[:-1])  # the last is the hook
        values = read_values(member, addresses)
        if values.keys() != settings.space.keys() or not all(
            _holds(settings.space[address], value) for address, value in values.items()
        ):
            where = _locate(document, "space")
            raise SigmaConfigError(
                f"{where}: the space has changed since trial {member.folder}: begin another search, or restore the "
                "values that it had."
            )


def _holds(dimension: Dimension, value: Any) -> bool:
    """Return whether a value is one of the choices, or in the range and at one of its steps."""
    if dimension.low is None or dimension.high is None:
        return inline(value) in map(inline, dimension.choices or ())
    if isinstance(value, bool) or not isinstance(value, int if dimension.is_whole else int | float):
        return False
    steps = 0.0 if dimension.step is None else (value - dimension.low) / dimension.step
    return dimension.low <= value <= dimension.high and abs(steps - round(steps)) < 1e-8


def place_hook(document: Document, configuration: Configuration, settings: SearchSettings) -> tuple[str, str]:
    """Return the key of the hook of trials, and the address of the value as that hook reads it.

    Raises SigmaConfigError if the file has such a hook, or no trainer that the address begins with.
    """
    if "trainers" not in document.values:
        key, address = f"hooks.{HOOK}", settings.value
        hooks = document.values.get("hooks", {})
    else:
        trainer, _, address = settings.value.partition(".")
        if trainer not in configuration.trainers:
            hint = suggest_name(trainer, configuration.trainers, "There is")
            where = _locate_goal(document, settings)
            raise SigmaConfigError(f"{where}: begins with no trainer (got {settings.value!r}).{hint}")
        key, hooks = f"trainers.{trainer}.hooks.{HOOK}", document.values["trainers"][trainer].get("hooks", {})
    if HOOK in hooks:
        raise SigmaConfigError(f"{document.name}: {key}: is the name of the hook that a search adds. Rename yours.")
    return key, address


def check_goal(document: Document, settings: SearchSettings, published: Iterable[str]) -> None:
    """Raise SigmaConfigError if no summary has the value, as it can only be read during training."""
    if not any(matches(pattern, settings.value) for pattern in published):
        raise SigmaConfigError(
            f"{_locate_goal(document, settings)}: is no metric of a trial (got {settings.value!r}). Take a value of "
            "training, such as 'training.loss', or one that a hook publishes, such as 'validation.loss'."
        )


def explain_check(document: Document, settings: SearchSettings, key: str, check: Callable[[], object]) -> None:
    """Call ``check``; what it says of the hook of trials is said of the goal in the file."""
    try:
        check()
    except SigmaError as error:
        text = str(error).replace(f"--set {key}: ", f"{_locate_goal(document, settings)}: ")
        raise type(error)(text.replace(f"{key}.value: ", "")) from None


def _locate_goal(document: Document, settings: SearchSettings) -> str:
    return _locate(document, "maximise" if settings.maximise is not None else "minimise")


def _locate(document: Document, *path: str) -> str:
    """Return ``file:line: search.path``; without the line if an option set it."""
    return document.describe(("search", *path), "")[1].rstrip(": ")
