# Generated: python -m sigma_kernel.testing.generate
# ruff: noqa
from sigma_backend_torch.backend import TorchBackend as TorchBackend
