# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_backend_jax.backend import JaxBackend as JaxBackend
