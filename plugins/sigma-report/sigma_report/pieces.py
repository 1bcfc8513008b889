"""Pieces of pages of HTML: the document, sections, tables, samples and charts; no scripts, nothing from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sigma_report.charts import as_text

SAFE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:"
STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1a1c20;--faint:#666a73;--grid:#e2e2dc;--mark:47,84,200;
--c0:#2f54c8;--c1:#bd4b00;--c2:#007558;--c3:#9b3199;--c4:#42400b;--c5:#133c5d}
@media(prefers-color-scheme:dark){:root{--ground:#17191d;--ink:#e9eaec;--faint:#a3a8b2;--grid:#2a2e34;--mark:147,173,255;
--c0:#93adff;--c1:#f2985a;--c2:#4fc6a3;--c3:#f0d4ed;--c4:#f5ca3a;--c5:#75899d}}
*{box-sizing:border-box}body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}h1{font-size:1.6rem}h2{margin-top:2.5rem;font-size:1.25rem}
h1,p,td,th,summary{overflow-wrap:anywhere}.faint,caption{color:var(--faint)}
.pair{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}.pair>*{flex:1 1 18rem;min-width:0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.25rem 0}th,td{padding:.25rem .6rem;border-bottom:1px solid var(--grid);
text-align:right;overflow-wrap:normal}th{font-weight:600}th[scope=row],td.text{text-align:left}
ul{list-style:none;padding:0}
svg{display:block;width:100%;max-width:32rem;height:auto;font-size:12px}svg text{fill:var(--ink)}
.grid{stroke:var(--grid)}.guide{stroke:var(--faint);stroke-dasharray:4 4;fill:none}
.error{stroke:var(--ink);stroke-width:2}
.line{fill:none;stroke-width:2}.bar,.point{fill:var(--c0)}.point{opacity:.6}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
.key::before{content:"";display:inline-block;width:1rem;height:.25rem;margin-right:.4rem;vertical-align:middle;
background:currentColor}.k0{color:var(--c0)}.k1{color:var(--c1)}.k2{color:var(--c2)}.k3{color:var(--c3)}
.k4{color:var(--c4)}.k5{color:var(--c5)}.media{display:flex;flex-wrap:wrap;gap:1rem;align-items:flex-end}figure{margin:0;max-width:100%}
.media pre{max-width:32rem;margin:0}
figcaption{color:var(--faint);font-size:.85rem}h3{font-size:1rem;overflow-wrap:anywhere}
img{max-width:100%}.picture{width:96px;image-rendering:pixelated}
"""


def render_document(title: str, parts: Iterable[str]) -> str:
    """Return a page with a title and the parts that are not empty."""
    body = "\n".join(filter(None, parts))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n<meta name="viewport" '
        f'content="width=device-width,initial-scale=1">\n<meta http-equiv="Content-Security-Policy" content="{SAFE}">\n'
        f"<title>{as_text(title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def render_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table, whose first column names the rows."""
    titles = "".join(f'<th scope="col">{as_text(name)}</th>' for name in head)
    lines = (
        f'<tr><th scope="row">{as_text(row[0])}</th>{"".join(f"<td>{as_text(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{as_text(caption)}"><table>'
        f"<caption>{as_text(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def render_section(title: str, *parts: str) -> str:
    """Return a section with a heading."""
    return f"<section><h2>{as_text(title)}</h2>{''.join(parts)}</section>"


def render_pair(*parts: str) -> str:
    """Return parts side by side, where there is room."""
    return f'<div class="pair">{"".join(parts)}</div>'


def render_note(text: str) -> str:
    """Return a faint paragraph."""
    return f'<p class="faint">{as_text(text)}</p>'


def render_picture(content: Mapping[str, Any], title: str) -> str:
    """Return a sample that is a picture."""
    return f'<img class="picture" alt="{as_text(title)}" src="data:image/png;base64,{content["picture"]}">'


def render_content(section: str, content: Mapping[str, Any], row: int) -> str:
    """Return the inputs of a row: a picture, a text, or values."""
    if "picture" in content:
        return render_picture(content, f"{section} of row {row}")
    if "text" in content:
        return f"<p>{as_text(content['text'])}</p>"
    if "values" in content:
        return f"<p>{', '.join(f'{as_text(name)} {as_text(x)}' for name, x in content['values'].items())}</p>"
    return f"<p>{as_text(section)} {as_text(content['shape'])}: {', '.join(map(as_text, content['first']))} ...</p>"


def render_curves(drawing: str) -> str:
    """Return the curves of the run, as a picture of their own, so that its style sheet stays in it."""
    if not drawing:
        return ""
    data = b64encode(drawing.encode()).decode()
    image = f'<img alt="Curves" src="data:image/svg+xml;base64,{data}">'
    return render_section(
        "Curves of the run", image, render_note("`sigma plot RUN --save curves.csv` writes their numbers.")
    )
