"""The seconds that each phase of a burst takes."""

from __future__ import annotations

from time import perf_counter

from attrs import define


@define(eq=False, repr=False)
class Timed:
    """A context manager that adds the seconds spent inside to a phase; entered several times per burst."""

    phases: dict[str, float]
    phase: str
    began: float = 0.0

    def __enter__(self) -> None:
        self.began = perf_counter()

    def __exit__(self, *error: object) -> None:
        self.phases[self.phase] += perf_counter() - self.began
