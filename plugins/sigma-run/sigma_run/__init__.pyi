# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_run.config.description import describe as describe
from sigma_run.config.toml import Toml as Toml
from sigma_run.config.trained import Trained as Trained
from sigma_run.config.trained import load as load
from sigma_run.files import from_file as from_file
from sigma_run.moments.fork import fork as fork
from sigma_run.moments.recall import RecallHandle as RecallHandle
from sigma_run.moments.recall import open_recalled as open_recalled
from sigma_run.moments.recall import recall as recall
