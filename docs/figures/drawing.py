"""Shapes for diagrams and bar charts as SVG, in the colours of Sigma's own charts: light, dark, all text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from sigma_plot.charts import INK, NIGHT

LETTER = {13: 6.9, 12: 6.4, 16: 8.6}  # the width of a letter by font size: what must fit is measured with these


def document(title: str, description: str, size: tuple[int, int], parts: Iterable[str]) -> str:
    """Return an SVG document; ``description`` is what someone hears who cannot see it."""
    width, height = size
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="system-ui, sans-serif" font-size="13" role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            f"<style>{_style()}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="tip" d="M0 0L8 4L0 8Z"/></marker></defs>',
            '<rect class="ground" width="100%" height="100%"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _style() -> str:
    def rules(ground: str, ink: str, quiet: str, edge: str, colours: Sequence[str]) -> str:
        series = "".join(
            f".s{i} rect,rect.s{i}{{fill:{c};stroke:{c}}}.s{i} .head{{fill:{c}}}" for i, c in enumerate(colours)
        )
        return (
            f".ground{{fill:{ground}}}text{{fill:{ink}}}.quiet{{fill:{quiet}}}.edge{{stroke:{edge}}}.tip{{fill:{edge}}}"
            f"{series}.area{{fill:none;stroke:{edge}}}"
        )

    day, night = (
        rules("#fff", "#1a1c20", "#5b6068", "#868b93", INK),
        rules("#17191d", "#e9eaec", "#a4a9b1", "#868b93", NIGHT),
    )
    shapes = (
        ".box rect{fill-opacity:.08;stroke-width:1.5}.head{font-weight:600}.edge{fill:none;stroke-width:1.5}"
        ".area{stroke-dasharray:4 4}code,.code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}"
    )
    return f"{shapes}{day}@media(prefers-color-scheme:dark){{{night}}}"


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start", size: int = 13) -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def box(at: tuple[int, int], size: tuple[int, int], head: str, *lines: str, colour: int = 0) -> str:
    """Return a box with a heading and lines below it; raises ValueError if they do not fit."""
    (x, y), (width, height) = at, size
    for line in (head, *lines):
        if len(line) * LETTER[13] > width - 16:
            raise ValueError(f"{line!r} is wider than its box of {width}")
    if 26 + 18 * len(lines) > height:
        raise ValueError(f"{head!r}: {len(lines)} lines are higher than their box of {height}")
    top = y + height / 2 - 9 * len(lines) + 5
    written = [
        text(x + width / 2, top + 18 * i, line, "head" if not i else "", "middle")
        for i, line in enumerate((head, *lines))
    ]
    frame = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
    return f'<g class="box s{colour}">{frame}{"".join(written)}</g>'


def area(at: tuple[int, int], size: tuple[int, int], head: str) -> str:
    """Return a dashed frame around other shapes."""
    (x, y), (width, height) = at, size
    return (
        f'<rect class="area" x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/>'
        f"{text(x + 12, y + 20, head, 'quiet')}"
    )


def arrow(*points: tuple[int, int]) -> str:
    """Return an arrow through points."""
    path = "L".join(f"{x} {y}" for x, y in points)
    return f'<path class="edge" d="M{path}" marker-end="url(#tip)"/>'
