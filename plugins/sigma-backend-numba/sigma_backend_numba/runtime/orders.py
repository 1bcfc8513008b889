"""Orders of rows: rows sorted by 64 random bits each, as :func:`sigma_kernel.graph.permutation` defines them.

Two stable passes of a radix sort cover the upper 24 bits; insertion sorts rows that agree in them, which are few.  An
item is the upper word of a row and, below it, the number of the row.
"""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import driver, i8, task
from sigma_backend_numba.compiler.tile_sizes import ORDER_KINDS

ROW = 31  # bits of the number of a row
ROWS = (1 << ROW) - 1
FIRST, SECOND = ROW + 8, ROW + 20  # the place of the digits in an item


@driver
def _items(items: Any, words: Any, first: Any, second: Any, rows: Any) -> None:
    """Make the items, and count the values of both digits."""
    for kind in range(ORDER_KINDS):
        first[kind] = i8(0)
        second[kind] = i8(0)
    for row in range(rows):
        item = i8(words[2 * row]) << ROW | row
        items[row] = item
        first[item >> FIRST & (ORDER_KINDS - 1)] += 1
        second[item >> SECOND] += 1


@driver
def _sort_by_digit(to: Any, items: Any, counts: Any, digit: Any, rows: Any) -> None:
    """Sort the items by a digit, given the counts of its values."""
    place = i8(0)
    for kind in range(ORDER_KINDS):
        place = place + counts[kind]
        counts[kind] = place - counts[kind]
    for i in range(rows):
        item = items[i]
        kind = item >> digit & (ORDER_KINDS - 1)
        to[counts[kind]] = item
        counts[kind] += 1


@driver
def _is_after(item: Any, other: Any, words: Any) -> Any:
    """Return whether an item belongs behind the one that follows it."""
    upper, other_upper = item >> ROW, other >> ROW
    lower, other_lower = words[2 * (item & ROWS) + 1], words[2 * (other & ROWS) + 1]
    return upper > other_upper or (upper == other_upper and lower > other_lower)


@task
def order(out: Any, words: Any, items: Any, others: Any, first: Any, second: Any, rows: Any) -> None:
    """Write the order of rows by their ``words (rows, 2)``, the upper one first; before ``items`` is room for one."""
    _items(items, words, first, second, rows)
    _sort_by_digit(others, items, first, FIRST, rows)
    _sort_by_digit(items, others, second, SECOND, rows)
    items[-1] = i8(-1)  # agrees with no other
    for i in range(rows):
        item = items[i]
        place = i
        while items[place - 1] >> FIRST == item >> FIRST:
            if not _is_after(items[place - 1], item, words):
                break
            items[place] = items[place - 1]
            place = place - 1
        items[place] = item
    for i in range(rows):
        out[i] = items[i] & ROWS
