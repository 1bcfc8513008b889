"""The components of sigma-run."""

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of this distribution's components."""
    summary = "Runs and trained networks as TOML files."
    return [Component("configuration", "toml", "sigma_run.config.toml:Toml", summary, default_for="run")]
