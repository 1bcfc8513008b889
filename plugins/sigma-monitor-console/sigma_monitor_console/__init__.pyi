# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_monitor_console.console import ConsoleMonitor as ConsoleMonitor
