"""Hooks that act on the world outside: their settings say where secrets of a machine are, so no archive has any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from sigma_kernel import catalogue
from sigma_kernel.contracts import StoredRun


def acts_outside(hook: Any) -> bool:
    """Return whether a hook, a name or a table, acts on the world outside; raise a SigmaError for an unknown one.

    Own code does not count: it is imported only of packages that are trusted.
    """
    name = hook.get("type") if isinstance(hook, Mapping) else hook
    return isinstance(name, str) and bool(getattr(catalogue().load("hook", name), "outward", False))


def list_outward(values: Mapping[str, Any]) -> list[str]:
    """Return the places of such hooks in a configuration."""
    tables = {"": values, **{f"trainers.{name}.": table for name, table in _items(values.get("trainers"))}}
    hooks = {f"{place}hooks": table.get("hooks") for place, table in tables.items() if isinstance(table, Mapping)}
    return [f"{place}.{name}" for place, own in hooks.items() for name, hook in _items(own) if acts_outside(hook)]


def list_attached(stored: StoredRun, log: Callable[[str], object]) -> list[str]:
    """Return the names of such hooks that commands have attached: the journal and the checkpoints hold their tables."""
    rows = (row for row in stored.journal_rows() if row.get("command") == "attach")
    pairs = [*((row.get("name"), row.get("hook")) for row in rows), *_list_saved(stored, log)]
    return [*dict.fromkeys(str(name) for name, hook in pairs if acts_outside(hook))]


def list_steered(stored: StoredRun, names: Collection[str]) -> list[str]:
    """Return which of some hooks commands have detached or set: without these, the journal cannot be replayed."""
    rows = [row for row in stored.journal_rows() if "command" in row]
    detached = {row.get("name") for row in rows if row["command"] == "detach"}
    patterns = [f".{row['pattern']}." for row in rows if "pattern" in row]
    return [name for name in names if name in detached or any(f".hooks.{name}." in pattern for pattern in patterns)]


def _list_saved(stored: StoredRun, log: Callable[[str], object]) -> Iterator[tuple[Any, Any]]:
    """Yield the attached hooks in the checkpoints, those to undo included: names and tables."""
    for trainer in stored.trainers():
        checkpoints = stored.checkpoints(trainer)
        for number in checkpoints.numbers():
            for label in (str(number), *checkpoints.list_abandoned(number)):
                yield from list_changed(checkpoints.read_manifest(label, log))


def list_changed(manifest: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the hooks of all ``changes`` in plain values, at any depth: names and tables, as a resume reads them."""
    waiting = [manifest]
    while waiting:
        value = waiting.pop()
        table = dict(_items(value))
        with suppress(TypeError, ValueError):  # a run with these cannot be resumed either
            yield from dict(dict(_items(table.get("changes"))).get("hooks", ())).items()
        waiting += table.values() if table else value if isinstance(value, list | tuple) else ()


def _items(table: Any) -> list[tuple[str, Any]]:
    """Return the items of a table; none of what is no table."""
    return [*table.items()] if isinstance(table, Mapping) else []
