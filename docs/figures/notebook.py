"""Execute the notebooks of the documentation, and save them with their outputs: ``python -m figures.notebook``."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from figures import FOLDER

NOTEBOOKS = sorted(FOLDER.parent.glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"  # the number of a widget, which is another in each kernel


def executed(path: Path) -> nbformat.NotebookNode:
    """Execute a notebook in an empty folder; return it with its outputs, and without what differs between runs."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)
    notebook.metadata.pop("widgets", None)
    return notebook


if __name__ == "__main__":
    for path in NOTEBOOKS:
        path.write_text(nbformat.writes(executed(path)) + "\n", encoding="utf-8")
