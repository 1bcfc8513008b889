# Generated: python -m sigma_kernel.testing.generate
# ruff: noqa
from sigma_monitor_tensorboard.monitor import TensorboardMonitor as TensorboardMonitor
