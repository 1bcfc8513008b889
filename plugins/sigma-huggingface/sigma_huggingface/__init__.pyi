# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_huggingface.dataset import HuggingFace as HuggingFace
