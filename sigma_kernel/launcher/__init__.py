"""The ``sigma`` command: one module per subcommand, each imported on first use."""

from sigma_kernel.launcher.group import main as main
