# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_training.workers.driver import GroupDriver as GroupDriver
