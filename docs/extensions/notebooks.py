"""Read notebooks as pages, without a Jupyter of any kind."""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from myst_parser.sphinx_ import Parser

from extensions.cells import markdown


class NotebookParser(Parser):
    """Parse a notebook as the MyST text of its cells and outputs."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the text of a notebook."""
        super().parse(markdown(json.loads(inputstring)), document)


def setup(app: Any) -> dict[str, Any]:
    """Register the parser for ``.ipynb``."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
