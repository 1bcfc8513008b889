# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_monitor_control.client import Client as Client
from sigma_monitor_control.commands.live import send_command as send_command
from sigma_monitor_control.commands.reading import get_values as get_values
from sigma_monitor_control.commands.reading import list_runs as list_runs
from sigma_monitor_control.commands.reading import watch_values as watch_values
from sigma_monitor_control.commands.steering import set_values as set_values
from sigma_monitor_control.discovery import connect as connect
from sigma_monitor_control.monitor import ControlMonitor as ControlMonitor
