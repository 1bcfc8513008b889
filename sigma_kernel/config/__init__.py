"""Configurations: TOML files that describe a run, checked as a whole before anything happens."""

from sigma_kernel.config.building import build, prepare
from sigma_kernel.config.document import Document, override, parse, read
from sigma_kernel.config.reading import load, structured
from sigma_kernel.config.schema import Configuration
from sigma_kernel.config.writing import resolved

__all__ = [
    "Configuration", "Document", "build", "load", "override", "parse", "prepare", "read", "resolved",
    "structured",
]  # fmt: skip
