"""Devices that run kernels: a CUDA device, or the processor in its place."""
