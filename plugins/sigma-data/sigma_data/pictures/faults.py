"""Tell which files of a folder, such as pictures or sounds, are not used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path

from sigma_data.labels import list_first
from sigma_kernel import SigmaDataError

SHOWN = 10  # files named in an error


def check_faults(root: Path, faults: Mapping[str, str], total: int, remedy: str, noun: str = "picture") -> None:
    """Raise SigmaDataError if some files cannot be decoded, with the first of them by name; ``faults`` are by path."""
    if faults:
        raise SigmaDataError(
            f"{root}: {len(faults):,} of {total:,} {noun}s cannot be used:{''.join(_lines(faults))}\n{remedy}"
        )


def _lines(faults: Mapping[str, str]) -> Iterator[str]:
    for path in sorted(faults)[:SHOWN]:
        yield f"\n  {path}: {faults[path]}"
    if len(faults) > SHOWN:
        yield f"\n  and {len(faults) - SHOWN:,} more"


def describe_left_out(faults: Mapping[str, str], others: Sequence[str], noun: str = "picture") -> tuple[str, ...]:
    """Return a sentence about files that cannot be decoded, and one about files that have other names."""
    notes = []
    if faults:
        first = "; ".join(f"{path} {faults[path]}" for path in sorted(faults)[:3])
        notes.append(f"{_count(faults, noun)} left out: {first}{'; ...' if len(faults) > 3 else ''}.")
    if others:
        notes.append(f"{_count(others, 'file')} left out, by the end of the name: {list_first(others)}.")
    return tuple(notes)


def _count(items: Sized, what: str) -> str:
    return f"1 {what} is" if len(items) == 1 else f"{len(items):,} {what}s are"
