"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"
COMMANDS = {
    "set": ("set:Set", "Set the values that an address or a pattern matches."),
    "pause": ("pause:Pause", "Pause training after the current burst."),
    "go": ("go:Go", "Continue training after a pause, or after a failure."),
    "step": ("step:StepBy", "Train for some iterations or epochs, then pause again."),
    "stop": ("stop:StopTraining", "End training after the current burst."),
    "save": ("save:Save", "Write a checkpoint."),
    "rewind": ("rewind:Rewind", "Go back to an earlier state, on a new branch."),
    "reset": ("reset:Reset", "Go back to the initial state."),
    "attach": ("attach:Attach", "Add a hook."),
    "detach": ("detach:Detach", "Remove a hook."),
    "swap": ("swap:Swap", "Replace the optimiser, the backend or the iterator."),
    "undo": ("undo:Undo", "Undo the last change."),
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the trainer, and of its commands."""
    return [
        Component(
            "trainer", "network", "sigma_training.trainer:NetworkTrainer",
            "Train a network on data, iteration by iteration, by compiled steps.", default_for="training",
        ),
        Component(
            "backend", "tiered", "sigma_training.tiers:Tiered",
            "The default: the first iterations on one backend, while another one compiles.", default_for="tiers",
        ),
        *(
            Component("command", n, f"sigma_training.commands.{path}", about)
            for n, (path, about) in COMMANDS.items()
        ),
    ]  # fmt: skip
