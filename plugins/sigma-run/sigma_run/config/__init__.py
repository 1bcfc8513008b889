"""Configuration files: read TOML that describes a run, validate all of it, build the environment."""

from sigma_run.config.building import build as build, prepare as prepare
from sigma_run.config.document import (
    Document as Document,
    override as override,
    parse as parse,
    parse_key as parse_key,
    read as read,
)
from sigma_run.config.reading import (
    load as load,
    load_configuration as load_configuration,
    load_table as load_table,
)
from sigma_run.config.schema import Configuration as Configuration
from sigma_run.config.stored import open_data as open_data, read_configuration as read_configuration
from sigma_run.config.stores import open_run as open_run
from sigma_run.config.writing import resolved_toml as resolved_toml
