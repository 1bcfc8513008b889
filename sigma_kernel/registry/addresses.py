"""The language of addresses: ``trainer.network.layers.2-dense.weights``, ``**.layers.*<dense>.weights``.

An address names one value, level by level.  A pattern may leave levels open: ``*`` stands for any characters inside a
level, ``**`` for any number of whole levels, none included; ``<tag>`` asks for a level with this tag, whatever its name
(``<tag,other>``: with both), and ``2-*<dense>`` for name and tag.

Where several patterns match an address, the most specific one wins: the one with more named levels; if equal, with more
levels named in part; then with more letters in these; then with more tags; then with more single ``*``; then with fewer
``**``.

A pattern is compared with an address in at most as many steps as the product of their lengths: of several stars, only
the last one that was met is given more, which is enough: what an earlier one could take, the last one can as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from sigma_kernel.errors import SigmaAddressError

Tags = Callable[[str], frozenset[str]]  # the tags of the level at an address

_LEVEL = re.compile(r"(?P<name>[\w*-]*+)(<(?P<tags>[\w-]++(,[\w-]++)*+)>)?")
_PLAIN = re.compile(r"[\w-]++(?:\.[\w-]++)*+")
_remembered = lru_cache(maxsize=4096)  # patterns come from outside too: a monitor may ask for any number of them


class Level(NamedTuple):
    """One level of a pattern: a name with ``*`` in it, and tags that are asked for."""

    name: str
    tags: frozenset[str] = frozenset()

    @property
    def deep(self) -> bool:
        """Return whether it stands for any number of levels."""
        return self.name == "**"

    @property
    def literal(self) -> bool:
        """Return whether it is a plain name."""
        return "*" not in self.name and not self.tags

    def fits(self, name: str) -> bool:
        """Return whether the name of one level of an address matches."""
        head, *inner = self.name.split("*")
        if not inner:
            return name == head
        at, end = len(head), len(name) - len(inner[-1])
        if at > end or not (name.startswith(head) and name.endswith(inner[-1])):
            return False
        for part in inner[:-1]:
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


@_remembered
def levels(pattern: str) -> tuple[Level, ...]:
    """Return a pattern level by level; raises SigmaAddressError if it is not one."""
    found: list[Level] = []
    for part in pattern.split("."):
        level = _LEVEL.fullmatch(part)
        if level is None or not part or ("**" in part and part != "**"):
            raise SigmaAddressError(
                f"{pattern!r} is no address: {part!r} cannot be a level. Levels are letters, digits, '-' and '_', "
                "with '*' for any part, '**' for any number of levels, or a <tag>."
            )
        tags = frozenset(level["tags"].split(",")) if level["tags"] else frozenset()
        if not (part == "**" and found and found[-1].deep):  # two in a row say no more than one
            found.append(Level(level["name"] or "*", tags))
    return tuple(found)


def literal(pattern: str) -> bool:
    """Return whether a pattern names one address only."""
    if not isinstance(pattern, str):
        raise SigmaAddressError(f"{pattern!r} is no address. Give it as text, such as 'training.loss'.")
    return _PLAIN.fullmatch(pattern) is not None or all(level.literal for level in levels(pattern))


def _untagged(address: str) -> frozenset[str]:
    return frozenset()


def matches(pattern: str, address: str, tags: Tags = _untagged) -> bool:
    """Return whether a pattern matches an address; ``tags`` tells the tags of each level by its address."""
    wanted, names = levels(pattern), address.split(".")
    at = place = 0
    again: tuple[int, int] | None = None  # behind the last ** that was met, and the first level that it has not taken
    while place < len(names):
        if at < len(wanted) and wanted[at].deep:
            at, again = at + 1, (at + 1, place)
        elif at < len(wanted) and _fits(wanted[at], names, place, tags):
            at, place = at + 1, place + 1
        elif again is not None:
            at, place = again[0], again[1] + 1
            again = at, place
        else:
            return False
    return all(level.deep for level in wanted[at:])


def _fits(level: Level, names: Sequence[str], place: int, tags: Tags) -> bool:
    return level.fits(names[place]) and (not level.tags or level.tags <= tags(".".join(names[: place + 1])))


def specificity(pattern: str) -> tuple[int, ...]:
    """Return a key that is greater for a more specific pattern."""
    parts = levels(pattern)
    partial = [level for level in parts if "*" in level.name and level.name.strip("*")]
    return (
        sum("*" not in level.name for level in parts),
        len(partial),
        sum(len(level.name.replace("*", "")) for level in partial),
        sum(len(level.tags) for level in parts),
        sum(level.name == "*" for level in parts),
        -sum(level.deep for level in parts),
    )
