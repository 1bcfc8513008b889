"""The ``sigma`` command: one file per command group, each imported when its command is used."""

from sigma_kernel.launcher.group import main as main
