"""``sigma data cache``: list what is prepared of data, and delete it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from sigma_kernel.contracts import CachedData
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_run.launcher.output import document, json_option, say, table

SHOWN = 12  # characters of the name of an entry


@click.command()
@click.argument("entries", metavar="[ENTRY]...", nargs=-1)
@click.option("--clear", is_flag=True, help="Delete the entries: all, or those named.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="List a cache in another folder.")
@json_option
def cache(entries: tuple[str, ...], clear: bool, folder: Path | None, as_json: bool) -> None:
    """List what is prepared of data that are larger than memory: entry, size, last use, source.

    Runs prepare again what they do not find. An ENTRY may be the first characters of its name.
    """
    listed = _select(_list_all(folder), entries)
    if clear:
        for entry in listed:
            entry.remove()
    if as_json:
        document({"cleared" if clear else "entries": [*map(_describe, listed)]})
        return
    if listed and not clear:
        table(_rows(listed))
    total = _format_size(sum(entry.size for entry in listed))
    say(f"{'deleted: ' if clear else ''}{len(listed)} {'entry' if len(listed) == 1 else 'entries'}, {total}")


def _list_all(folder: Path | None) -> list[CachedData]:
    """Return the entries of all forms of data, that used last first."""
    inspectors = [load(component)() for component in catalogue().components("inspector")]
    by_name = {entry.name: entry for inspector in inspectors for entry in inspector.list_cached(folder)}
    return sorted(by_name.values(), key=lambda entry: -entry.last_use)


def _select(listed: Sequence[CachedData], names: Sequence[str]) -> list[CachedData]:
    """Return the entries whose names begin with one of these, or all; SigmaConfigError for a name that none has."""
    for name in names:
        if not name or not any(entry.name.startswith(name) for entry in listed):
            raise SigmaConfigError(f"{name!r}: no entry of the cache has this name. `sigma data cache` lists them.")
    return [entry for entry in listed if not names or entry.name.startswith(tuple(names))]


def _rows(listed: Sequence[CachedData]) -> Iterator[list[str]]:
    """Yield the rows of a table, its header first."""
    yield ["ENTRY", "SIZE", "LAST USE", "SOURCE"]
    for entry in listed:
        used = datetime.fromtimestamp(entry.last_use, UTC)
        yield [entry.name[:SHOWN], _format_size(entry.size), f"{used:%Y-%m-%d %H:%M}", entry.source]


def _describe(entry: CachedData) -> dict[str, object]:
    used = datetime.fromtimestamp(entry.last_use, UTC).isoformat()
    return {"entry": entry.name, "source": entry.source, "bytes": entry.size, "last_use": used}


def _format_size(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
