# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_backend_cupy.backend import CupyBackend as CupyBackend
