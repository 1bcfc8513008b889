"""Which addresses are meant by a short name, such as ``learning_rate``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sigma_kernel.errors import SigmaAddressError, suggest_name

SHOWN = 12  # candidates in a message
_PATTERN = re.compile(r"[*<]")


def is_pattern(name: str) -> bool:
    """Return whether a name is a pattern, with ``*`` or a ``<tag>``."""
    return _PATTERN.search(name) is not None


def qualify_name(name: str, trainer: str | None) -> str:
    """Return an address or a pattern of one trainer, which may begin with its name, from the root."""
    if trainer is None or name.startswith(f"{trainer}."):
        return name
    return f"{trainer}.{name}"


def meant(name: str, addresses: Sequence[str]) -> str:
    """Return the address of a name: itself, or the only one that ends with its levels.

    An address outranks those below its own level that end alike: ``optimiser.learning_rate`` the learning rates of
    single parameters, which follow it.  Raises SigmaAddressError, with the candidates, if none or several are left.
    """
    if name in addresses:
        return name
    matches = leading(name, addresses)
    if len(matches) == 1:
        return matches[0]
    if not matches:
        levels = {level for address in addresses for level in address.split(".")}
        hint = suggest_name(name.rpartition(".")[2], levels) or " `sigma get '**'` lists all."
        raise SigmaAddressError(f"{name}: is neither an address nor the end of one.{hint}")
    raise SigmaAddressError(f"{name}: could be {list_addresses(matches)}. Write more of its levels, or a pattern.")


def leading(name: str, addresses: Iterable[str]) -> list[str]:
    """Return the addresses that end with the levels of a name, without outranked ones."""
    ending = f".{name}"
    matches = [address for address in addresses if address.endswith(ending)]
    heads = [address.removesuffix(ending) for address in matches]
    return [
        address
        for address, head in zip(matches, heads, strict=True)
        if not any(head.startswith(f"{other}.") for other in heads)
    ]


def list_addresses(found: Sequence[str]) -> str:
    """Return addresses for a message, the first dozen of them."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
