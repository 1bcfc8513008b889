"""The figures of the documentation, each beside the module that draws it."""

from pathlib import Path

FOLDER = Path(__file__).parent
