# Generated: python -m sigma_kernel.testing.generate
# ruff: noqa
from sigma_backend_jax.backend import JaxBackend as JaxBackend
