# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_step.model import Model as Model
