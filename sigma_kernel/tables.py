"""Tables as text with aligned columns, and as HTML with all text escaped; values as strict JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def align_rows(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; the last column is not padded."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
    padded = ([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]] for row in cells)
    return ["  ".join(row).rstrip() for row in padded]


def html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in HTML."""
    lines = [("th", head), *(("td", row) for row in rows)]
    marked = ("".join(f'<{tag} style="text-align:left">{escape(cell)}</{tag}>' for cell in row) for tag, row in lines)
    return f"<table>{''.join(f'<tr>{cells}</tr>' for cells in marked)}</table>"
