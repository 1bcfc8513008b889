# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_backend_numba.backend import NumbaBackend as NumbaBackend
