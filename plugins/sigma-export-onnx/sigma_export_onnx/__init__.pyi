# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_export_onnx.exporter import Onnx as Onnx
