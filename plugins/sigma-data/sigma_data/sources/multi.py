"""The first available of several sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from attrs import field, frozen

from sigma_kernel import SigmaDataError, Source
from sigma_kernel.settings import min_len


@frozen
class Multi(Source):
    """Read the first source that can be opened; SigmaDataError with every reason if there is none.

    Args:
        sources: Sources in the order in which they are tried.
    """

    sources: tuple[Source, ...] = field(validator=min_len(1))
    name: str = field(init=False)

    @name.default
    def _name(self) -> str:
        return self.sources[0].name if self.sources else "multi"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Return the first source that opens, as an open file."""
        with ExitStack() as stack:
            yield self._open_first(stack)

    def _open_first(self, stack: ExitStack) -> IO[bytes]:
        reasons = []
        for source in self.sources:
            try:
                return stack.enter_context(source.open())
            except SigmaDataError as error:
                reasons.append(f"\n  {error}")
        raise SigmaDataError(f"{self.name}: none of {len(self.sources)} sources is available:{''.join(reasons)}")
