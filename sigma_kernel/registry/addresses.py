"""Addresses and patterns: ``trainer.network.layers.2-dense.weights``, ``**.layers.*<dense>.weights``.

An address names one value, level by level. In a pattern, ``*`` matches any characters within a level, ``**`` any number
of levels including none, ``<tag>`` a level with this tag (``<tag,other>``: with both), and ``2-*<dense>`` a level by
name and tag.

If several patterns match an address, the most specific one wins: the one with more named levels; if equal, with more
partially named levels; then with more characters in these; then with more tags; then with more single ``*``; then with
fewer ``**``.

Matching takes at most as many steps as the product of the two lengths. It backtracks to the last ``**`` only, which
suffices, since the last one can match anything that an earlier one could.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from sigma_kernel.errors import SigmaAddressError

Tags = Callable[[str], frozenset[str]]  # the tags of the level at an address

_LEVEL = re.compile(r"(?P<name>[\w*-]*+)(<(?P<tags>[\w-]++(,[\w-]++)*+)>)?")
_PLAIN = re.compile(r"[\w-]++(?:\.[\w-]++)*+")
_remembered = lru_cache(maxsize=4096)  # bounded, since monitors may ask for any number of patterns


class Level(NamedTuple):
    """One level of a pattern: a name, which may contain ``*``, and the required tags."""

    name: str
    tags: frozenset[str] = frozenset()

    def fits(self, name: str) -> bool:
        """Return whether it matches the name of one level of an address."""
        return fnmatchcase(name, self.name) if "*" in self.name else name == self.name


DEEP = Level("**")  # matches any number of levels


@_remembered
def levels(pattern: str) -> tuple[Level, ...]:
    """Return the levels of a pattern; raises SigmaAddressError if it is invalid."""
    result: list[Level] = []
    for part in pattern.split("."):
        level = _LEVEL.fullmatch(part)
        if level is None or not part or ("**" in part and part != "**"):
            raise SigmaAddressError(
                f"{pattern!r} is not an address: {part!r} cannot be a level. Levels are letters, digits, '-' and '_', "
                "with '*' for any part, '**' for any number of levels, or a <tag>."
            )
        tags = frozenset(level["tags"].split(",")) if level["tags"] else frozenset()
        if not (part == "**" and result and result[-1] == DEEP):  # two in a row are the same as one
            result.append(Level(level["name"] or "*", tags))
    return tuple(result)


def literal(pattern: str) -> bool:
    """Return whether a pattern is a plain address; raises SigmaAddressError if it is invalid."""
    if not isinstance(pattern, str):
        raise SigmaAddressError(f"{pattern!r} is not an address. Pass a string, such as 'training.loss'.")
    return _PLAIN.fullmatch(pattern) is not None or not levels(pattern)  # which raises for an invalid pattern


def matches(pattern: str, address: str, tags: Tags = lambda address: frozenset()) -> bool:
    """Return whether a pattern matches an address; ``tags`` returns the tags of a level by its address."""
    wanted, names = levels(pattern), address.split(".")
    at = place = 0
    again: tuple[int, int] | None = None  # after the last **, and the first level it has not matched
    while place < len(names):
        if at < len(wanted) and wanted[at] == DEEP:
            at, again = at + 1, (at + 1, place)
        elif at < len(wanted) and _fits(wanted[at], names, place, tags):
            at, place = at + 1, place + 1
        elif again is not None:
            at, place = again[0], again[1] + 1
            again = at, place
        else:
            return False
    return all(level == DEEP for level in wanted[at:])


def _fits(level: Level, names: Sequence[str], place: int, tags: Tags) -> bool:
    return level.fits(names[place]) and (not level.tags or level.tags <= tags(".".join(names[: place + 1])))
