# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_export_arrays.npz import Npz as Npz
from sigma_export_arrays.tensors import SafeTensors as SafeTensors
