"""The plugins that take part in a run by name: calls of their implementations of the hookspecs of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from sigma_kernel.errors import error_text
from sigma_kernel.plugins.catalogue import Catalogue


@frozen(eq=False)
class Participants:
    """The plugins of a run, by the names of their distributions, in the order in which they are called."""

    catalogue: Catalogue
    names: Sequence[str]
    log: Callable[[str], object]

    def check(self) -> None:
        """Raise SigmaPluginError for a plugin that is not installed, disabled or broken."""
        for name in self.names:
            self.catalogue.call(name, "sigma_components")

    def begin(self, **about: Any) -> None:
        """Tell them that a run begins; if one raises an error, tell those before it that the run fails, and raise."""
        for count, name in enumerate(self.names):
            try:
                self.catalogue.call(name, "sigma_run_begins", **about)
            except BaseException as error:
                self._tell(self.names[:count], "sigma_run_fails", error=error, **about)
                raise

    def end(self, error: BaseException | None, summary: Any, **about: Any) -> BaseException | None:
        """Tell them that a run has ended, or failed; an error of theirs is logged.

        One that is interrupted does not keep the others from being told; return the first interruption.
        """
        if error is None:
            return self._tell(self.names, "sigma_run_ends", summary=summary, **about)
        return self._tell(self.names, "sigma_run_fails", error=error, **about)

    def _tell(self, names: Sequence[str], spec: str, **about: Any) -> BaseException | None:
        interruption = None
        for name in names:
            try:
                self.catalogue.call(name, spec, **about)
            except Exception as error:  # the run is over: what it has come to is not changed
                self.log(error_text(error))
            except BaseException as error:  # such as Ctrl-C
                self.log(f"plugin {name}: {spec} was ended by {type(error).__name__}")
                interruption = interruption or error
        return interruption
