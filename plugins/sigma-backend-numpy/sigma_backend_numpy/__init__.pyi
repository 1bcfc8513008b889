# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_backend_numpy.backend import NumpyBackend as NumpyBackend
from sigma_backend_numpy.debug import DebugBackend as DebugBackend
