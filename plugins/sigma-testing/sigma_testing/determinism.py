"""The base of suites whose results are compared with those of a second process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import pytest

from sigma_testing.second_process import SEED, ProcessEndedError, digest_results, second_process
from sigma_testing.suite import Suite

WHERE = f"in a process with another {SEED}"


class DeterministicSuite(Suite):
    """Conformance tests of a component whose results are the same in every process.

    Suites of classes in functions, and those that use fixtures of their own, cannot be made in a second process: they
    are not compared.
    """

    @abstractmethod
    def results(self) -> Mapping[str, Any]:
        """Return what the component computes, by name; the bits are compared. Return {} to compare nothing."""

    def test_a_process_with_another_seed_of_hashes_computes_the_same(self, request: pytest.FixtureRequest) -> None:
        """Order what you take from a set of texts, as with sorted()."""
        if _is_made_by_name(self, request):
            self._compare(second_process(request.config))

    def _compare(self, second: Any) -> None:
        second.ask(type(self))
        try:
            own, answer = digest_results(self.results()), second.answer()
        except ProcessEndedError as error:
            pytest.fail(f"{WHERE} it ends the process ({error})")
        except BaseException:
            second.close()
            raise
        if "errors" in answer:
            why = ", ".join(f"{name}: {text}" for name, text in answer["errors"].items())
            pytest.skip(f"{type(self).__name__}: results are not compared, as a second process raises {why}")
        there = answer["results"]
        names = [name for name in sorted({*own, *there}) if own.get(name) != there.get(name)]
        where = "each time" if names and digest_results(self.results()) != own else WHERE
        assert not names, f"it returns other numbers {where}: {', '.join(names)}"


def _is_made_by_name(suite: Suite, request: pytest.FixtureRequest) -> bool:
    """Return whether another process can make the suite: from its module, without fixtures of module or class."""
    fixtures = [name for name in request.fixturenames if name.startswith("_xunit") or hasattr(request.module, name)]
    fixtures += [name for name in request.fixturenames if hasattr(suite, name)]
    marks = [*request.node.iter_markers("usefixtures")]
    return not fixtures and not marks and "<locals>" not in type(suite).__qualname__
