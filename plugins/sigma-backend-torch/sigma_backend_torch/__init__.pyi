# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_backend_torch.backend import TorchBackend as TorchBackend
