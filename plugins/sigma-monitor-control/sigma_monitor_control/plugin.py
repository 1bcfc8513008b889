"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"
MONITOR = "sigma_monitor_control.monitor:ControlMonitor"
COMMANDS = (
    ("ps", "reading:list_runs", "List the runs that can be steered."),
    ("get", "reading:get_values", "Print values of a run by address, pattern or last name."),
    ("watch", "reading:watch_values", "Print values of a run whenever they change."),
    ("set", "steering:set_values", "Set values of a run while it trains."),
)
SEND = "sigma_monitor_control.commands.live:send_command"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the monitor and the commands."""
    commands = (
        Component("verb", name, f"sigma_monitor_control.commands.{path}", summary) for name, path, summary in COMMANDS
    )
    summary = "Let other shells watch and steer the run."
    return [
        Component("monitor", "control", MONITOR, summary, default_for="steering"),
        *commands,
        Component("verb", "send", SEND, "Send any live command to a run.", default_for="live"),
    ]
