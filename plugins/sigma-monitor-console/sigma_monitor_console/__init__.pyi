# Generated: python -m sigma_kernel.testing.generate
# ruff: noqa
from sigma_monitor_console.console import ConsoleMonitor as ConsoleMonitor
