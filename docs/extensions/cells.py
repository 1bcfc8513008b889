"""Notebooks as MyST text: their cells, with the outputs that are saved in them."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

ESCAPES = re.compile(r"\x1b\[[0-9;?]*+[A-Za-z]")


def markdown(notebook: Mapping[str, Any]) -> str:
    """Return a notebook as MyST."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _cell(cell))


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield f"```{{code-block}} python\n{text}\n```"
    yield from map(_output, cell["outputs"])


def _output(output: Mapping[str, Any]) -> str:
    """Return one output: as HTML, as a picture, or as the text that every other output has."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "text/html" in data:
        return _raw("".join(data["text/html"]))
    if "image/svg+xml" in data:
        return _raw("".join(data["image/svg+xml"]))
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        base64.b64decode(picture, validate=True)
        return _raw(f'<img alt="{html.escape("".join(data["text/plain"]))}" src="data:image/png;base64,{picture}">')
    return _raw(f"<pre>{html.escape(ESCAPES.sub('', ''.join(data['text/plain'])))}</pre>")


def _raw(text: str) -> str:
    return f'````{{raw}} html\n<div class="output">{text}</div>\n````'
