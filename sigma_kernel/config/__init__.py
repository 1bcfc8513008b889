"""Configuration files: read TOML that describes a run, validate all of it, build the environment."""

from sigma_kernel.config.building import build as build, prepare as prepare
from sigma_kernel.config.document import Document as Document, override as override, parse as parse, read as read
from sigma_kernel.config.reading import load as load, structured as structured
from sigma_kernel.config.schema import Configuration as Configuration
from sigma_kernel.config.writing import resolved as resolved
