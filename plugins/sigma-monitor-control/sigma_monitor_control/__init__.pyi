# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_monitor_control.client import Client as Client
from sigma_monitor_control.commands.reading import get_values as get_values
from sigma_monitor_control.commands.reading import list_runs as list_runs
from sigma_monitor_control.commands.reading import watch_values as watch_values
from sigma_monitor_control.commands.steering import attach_hook as attach_hook
from sigma_monitor_control.commands.steering import continue_run as continue_run
from sigma_monitor_control.commands.steering import detach_hook as detach_hook
from sigma_monitor_control.commands.steering import exclude_rows as exclude_rows
from sigma_monitor_control.commands.steering import include_rows as include_rows
from sigma_monitor_control.commands.steering import pause_run as pause_run
from sigma_monitor_control.commands.steering import relabel_rows as relabel_rows
from sigma_monitor_control.commands.steering import rewind_run as rewind_run
from sigma_monitor_control.commands.steering import save_run as save_run
from sigma_monitor_control.commands.steering import send_command as send_command
from sigma_monitor_control.commands.steering import set_values as set_values
from sigma_monitor_control.commands.steering import step_run as step_run
from sigma_monitor_control.commands.steering import stop_run as stop_run
from sigma_monitor_control.commands.steering import swap_component as swap_component
from sigma_monitor_control.commands.steering import undo_command as undo_command
from sigma_monitor_control.discovery import connect as connect
from sigma_monitor_control.monitor import ControlMonitor as ControlMonitor
