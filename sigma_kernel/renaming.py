"""Former names of methods and arguments: until the next major version of the API they work as before, and warn.

A class that plugins fulfil or call, and a function, say what their members and arguments were called before::

    @keep_former_names("1.1", {"run": "forward", "value(count)": "rows"})
    class Layer: ...


    @keep_former_names("1.1", {"dim": "axis"})
    def softmax(x, axis=-1): ...

Calls by a former name go on to the present one. A subclass that defines a former method, or a method with a former
argument, fulfils the present one; ``USES`` lists these.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isfunction, signature
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


class Rename(NamedTuple):
    """A name that is another one since a version of the API: of a member of ``owner``, or of its ``argument``."""

    since: str
    owner: str
    old: str
    new: str
    argument: bool = False

    def __str__(self) -> str:
        form = "{}({})" if self.argument else "{}.{}"
        return f"`{form.format(self.owner, self.old)}` is `{form.format(self.owner, self.new)}` since API {self.since}"


USES: dict[str, list[Rename]] = {}  # by the paths of classes, ``package.module:Class``


class Alias:
    """The alias of a member under its former name."""

    def __init__(self, rename: Rename) -> None:
        self.rename = rename

    def __get__(self, instance: Any, owner: type) -> Any:
        """Return what the present name returns."""
        _warn(self.rename)
        return getattr(owner if instance is None else instance, self.rename.new)


def _warn(rename: Rename, whose: str = "") -> None:
    """Warn at the line of the call, or of the class that was written before."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"] in (__name__, "abc"):
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{whose}{rename}. Use the new name.", DeprecationWarning, stacklevel=level)


def keep_former_names(since: str, names: Mapping[str, str]) -> Callable[[T], T]:
    """Let members of a class, or arguments of a function, have their former names as well, ``{old: new}``.

    ``"method(old)": "new"`` names an argument of a method of the class.
    """

    def decorate(thing: Any) -> Any:
        if not isinstance(thing, type):
            return accept_former(thing, [Rename(since, thing.__qualname__, *pair, True) for pair in names.items()])
        members, arguments = list[Rename](), dict[str, list[Rename]]()
        for old, new in names.items():
            method, _, argument = old.rstrip(")").partition("(")
            if argument:
                owner = f"{thing.__name__}.{method}"
                arguments.setdefault(method, []).append(Rename(since, owner, argument, new, True))
            else:
                members.append(Rename(since, thing.__name__, old, new))
        for rename in members:
            setattr(thing, rename.old, Alias(rename))
        for method, renames in arguments.items():
            setattr(thing, method, accept_former(vars(thing)[method], renames))
        _look_at_subclasses(thing, members, arguments)
        return thing

    return decorate


def accept_former(function: Any, renames: list[Rename]) -> Any:
    """Return a function that also takes arguments by their former names."""

    @wraps(function)
    def call(*given: Any, **settings: Any) -> Any:
        for rename in renames:
            if rename.old in settings:
                _warn(rename)
                settings[rename.new] = settings.pop(rename.old)
        return function(*given, **settings)

    call.__dict__["former"] = {rename.old: rename.new for rename in renames}
    return call


def _look_at_subclasses(cls: Any, members: list[Rename], arguments: Mapping[str, list[Rename]]) -> None:
    """Let each new subclass of a class fulfil its present contract, also if it was written before."""
    own = vars(cls).get("__init_subclass__")

    def __init_subclass__(sub: Any, /, **settings: Any) -> None:  # noqa: N807
        if own is None:
            super(cls, sub).__init_subclass__(**settings)
        else:
            own.__get__(None, sub)(**settings)
        _adopt(sub, members, arguments)

    cls.__init_subclass__ = classmethod(__init_subclass__)


def _adopt(sub: Any, members: list[Rename], arguments: Mapping[str, list[Rename]]) -> None:
    for rename in members:
        if rename.old in vars(sub):  # and no more then, so that attrs, which makes a class again, warns once
            _use(sub, rename)
            if rename.new not in vars(sub):
                setattr(sub, rename.new, vars(sub)[rename.old])
            delattr(sub, rename.old)
    for method, renames in arguments.items():
        if not isfunction(own := vars(sub).get(method)) or own.__code__.co_filename == __file__:
            continue  # not its own, or done: attrs makes a class again
        former = [rename for rename in renames if rename.old in signature(own).parameters]
        for rename in former:
            _use(sub, rename)
        present = [rename._replace(old=rename.new, new=rename.old) for rename in former]
        setattr(sub, method, _pass_on(own, present, [rename for rename in renames if rename not in former]))


def _pass_on(function: Any, present: list[Rename], renames: list[Rename]) -> Any:
    """Return a method that takes present names for arguments that it knows by former ones, and the other way round."""
    accepting = accept_former(function, renames)

    @wraps(function)
    def call(*given: Any, **settings: Any) -> Any:
        named = {rename.old: rename.new for rename in present}
        return accepting(*given, **{named.get(name, name): value for name, value in settings.items()})

    return call


def _use(sub: type, rename: Rename) -> None:
    USES.setdefault(f"{sub.__module__}:{sub.__qualname__}", []).append(rename)
    _warn(rename, f"{sub.__module__}.{sub.__qualname__}: ")
