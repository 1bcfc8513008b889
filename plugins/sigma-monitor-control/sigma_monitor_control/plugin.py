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
    ("send", "steering:send_command", "Send any command to a run, also one of a plugin."),
    ("pause", "steering:pause_run", "Pause a run."),
    ("go", "steering:continue_run", "Continue a paused run."),
    ("step", "steering:step_run", "Train for some iterations or epochs, then pause again."),
    ("save", "steering:save_run", "Write a checkpoint of a run."),
    ("rewind", "steering:rewind_run", "Rewind a run to an earlier moment."),
    ("undo", "steering:undo_command", "Undo the last change of a run."),
    ("attach", "steering:attach_hook", "Add a hook to a run."),
    ("detach", "steering:detach_hook", "Remove a hook from a run."),
    ("swap", "steering:swap_component", "Replace the optimiser, backend or iterator of a run."),
    ("exclude", "steering:exclude_rows", "Leave rows of the data out from the next epoch on."),
    ("include", "steering:include_rows", "Take excluded rows in again."),
    ("relabel", "steering:relabel_rows", "Give rows of the data another label."),
    ("stop", "steering:stop_run", "End the training of a run."),
)


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the monitor and the commands."""
    commands = (
        Component("verb", name, f"sigma_monitor_control.commands.{path}", summary) for name, path, summary in COMMANDS
    )
    summary = "Let other shells watch and steer the run."
    return [Component("monitor", "control", MONITOR, summary, default_for="steering"), *commands]
