"""The backends to compare: those that a list names, or all that are installed and can compute here."""

from __future__ import annotations

from collections.abc import Callable

from sigma_kernel import catalogue
from sigma_kernel.errors import SigmaConfigError


def names(listed: str) -> list[str]:
    """Return the names in a comma-separated list, without duplicates."""
    return list(dict.fromkeys(filter(None, map(str.strip, listed.split(",")))))


def named_backends(listed: str) -> list[str]:
    """Return the names in a comma-separated list; raises a SigmaError for a backend that cannot be used here."""
    backends = names(listed)
    for name in backends:
        catalogue().resolve("backend", name)  # raises for an unknown one
        if reason := unusable(name):
            said = reason.removeprefix(f"backend {name!r}: ")
            raise SigmaConfigError(f"--backends: {name} cannot be used here: {said}")
    return backends


def installed_backends(tell: Callable[[str], None]) -> list[str]:
    """Return the names of the installed backends that can be made, the preferred ones first.

    Those with a negative preference are used by name only, and tiers are measured one by one.  A backend that cannot
    be made here is logged with the reason. Raises SigmaConfigError if none is left.
    """
    registry = catalogue()
    offered = [record.name for record in registry.components("backend")]
    backends = []
    for record in sorted(registry.components("backend"), key=lambda record: (-record.preference, record.full_name)):
        if record.preference < 0 or record.default_for == "tiers":
            continue
        name = record.name if offered.count(record.name) == 1 else record.full_name
        if reason := unusable(name):
            tell(f"{name}: left out: {reason}")
        else:
            backends.append(name)
    if not backends:
        raise SigmaConfigError("no installed backend can be used here. Install one: `sigma plugins` lists the rooms.")
    return backends


def unusable(name: str) -> str:
    """Return the reason why a backend cannot be made with its default settings; empty if it can."""
    try:
        catalogue().load("backend", name)()  # type: ignore[operator]  # a class
    except Exception as error:  # any error of a library on a machine without its device
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ""
