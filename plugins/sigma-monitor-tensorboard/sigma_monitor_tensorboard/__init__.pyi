# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_monitor_tensorboard.monitor import TensorboardMonitor as TensorboardMonitor
