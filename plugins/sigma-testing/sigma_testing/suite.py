"""The base of the conformance suites: messages of failures, and the one test that fails if a component cannot run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import getdoc
from typing import Any, ClassVar

import attrs
import pytest

from sigma_kernel.errors import component_name, error_text
from sigma_testing.guard import SECONDS, guard
from sigma_testing.saving import find_unsaved

FAILURES = (Exception, pytest.fail.Exception)
FIRST = "test_it_can_be_made_and_used"


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal; pytest shows no difference then, which takes minutes for large values."""
    return bool(one == other)


def explain_failures(test: Callable[..., None]) -> Callable[..., None]:
    """Return a test whose failure is a sentence; it is skipped if the component cannot be used at all."""

    @wraps(test)
    def run(suite: Suite, *given: Any, **settings: Any) -> None:
        try:
            with guard(suite.prints, suite.seconds):
                test(suite, *given, **settings)
        except FAILURES as error:
            needs = suite.make if test.__name__ in vars(Suite) else suite.use
            if test.__name__ != FIRST and (why := _unusable(suite, needs)):
                pytest.skip(f"{why}; see {FIRST}")
            raise AssertionError(_sentence(suite, test, error)).with_traceback(error.__traceback__) from None

    return run


def _unusable(suite: Suite, needs: Callable[[], Any]) -> str:
    """Return why the component cannot be made or used at all; empty if it can."""
    try:
        with guard(suite.prints, suite.seconds):
            needs()
    except FAILURES as error:
        return f"{type(suite).__name__}: it cannot be made and used ({_came(error)})"
    return ""


def _sentence(suite: Suite, test: Callable[..., None], error: BaseException) -> str:
    """Return the message of a failure: the component, the expectation, the result, and the test's purpose."""
    try:
        component = suite.make()
        name = component_name(component)
        kept = name.startswith(("builtins.", "click.", "sigma_kernel."))  # of a class that is not the plugin's
        name = getattr(component, "name", getattr(component, "__name__", name)) if kept else name
    except Exception:  # which is the failure, or not the one to report
        name = type(suite).__name__
    expected = test.__name__.removeprefix("test_").replace("_", " ")
    does, whole = " ".join((getdoc(test) or "").split()), str(error).strip()
    sentence = f"{name}: expected that {expected}, but: {_came(error)}. {does}".rstrip()
    return f"{sentence}\n\n{whole}" if "\n" in whole else sentence


def _came(error: BaseException) -> str:
    """Return the message of an error on one line, without the compared values."""
    text = str(error) if isinstance(error, (AssertionError, pytest.fail.Exception)) else error_text(error)
    first, *more = [line.strip() for line in text.splitlines() if line.strip()] or ["it does not hold"]
    first = "it does not hold" if first in ("assert False", "assert not True") else first
    more = [line for line in more[:1] if line.startswith("Mismatched")]  # of NumPy's comparisons
    return ", ".join([first, *more]).removesuffix(".")


class Suite(ABC):
    """Conformance tests of one component, to inherit.

    A component that cannot be made or used at all fails in one test; all others that fail are then skipped. Each test
    has a time limit of so many ``seconds``, and leaves the process as it was; only a component that ``prints`` writes
    to standard output.
    """

    prints: ClassVar[bool] = False
    seconds: ClassVar[float] = SECONDS

    def __init_subclass__(cls, **settings: Any) -> None:
        """Let failures of this package's tests state the expectation."""
        super().__init_subclass__(**settings)
        for name, test in [*vars(cls).items()] if cls.__module__.startswith(f"{__package__}.") else ():
            if name.startswith("test_") and callable(test):
                setattr(cls, name, explain_failures(test))

    @abstractmethod
    def make(self) -> Any:
        """Return the component under test."""

    def use(self) -> None:
        """Make the component, and use it once as its tests do."""
        self.make()

    def test_it_can_be_made_and_used(self) -> None:
        """Correct what it raises: the other tests need it."""
        self.use()

    def test_its_settings_are_fields_of_its_class(self) -> None:
        """Decorate the class with attrs.define or attrs.frozen."""
        component = self.make()
        every = [vars(cls) for cls in (component if isinstance(component, type) else type(component)).__mro__]
        names = [name for members in every for name, value in members.items() if type(value) is type(attrs.field())]
        assert not names, f"{', '.join(names)}: declared with field() or live() in a class that attrs did not make"
        bare = _bare_settings(type(component))
        assert not bare, (
            f"{', '.join(bare)}: set in the class without its annotation, which changes no setting. Annotate it as "
            "where it was declared: `priority: int = 5`"
        )

    def test_its_settings_can_be_saved_and_loaded(self) -> None:
        """Let a file of a run hold each setting, so that `trainer.save()` can write it, and a resume read it."""
        unsaved = find_unsaved(self.make())
        assert not unsaved, unsaved


def _bare_settings(cls: Any) -> list[str]:
    """Return the settings that a class sets in its body without their annotations, and does not change by that."""
    return [f.name for f in attrs.fields(cls) if _is_bare(cls, f.name)] if attrs.has(cls) else []


def _is_bare(cls: Any, name: str) -> bool:
    """Return whether the nearest class that has a setting in its body does not declare it."""
    for part in cls.__mro__:
        own: Mapping[str, Any] = attrs.fields_dict(part) if "__attrs_attrs__" in vars(part) else {}
        if name in own and not own[name].inherited:
            return False
        if name in vars(part).get("_assigned", ()):
            return True
    return False


for _name in [name for name in vars(Suite) if name.startswith("test_")]:
    setattr(Suite, _name, explain_failures(getattr(Suite, _name)))
