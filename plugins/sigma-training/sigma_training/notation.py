"""Parse the text form of architectures, without evaluating it as code.

    trunk = input(28, 28) + flatten() + 2 * dense(100, activation="relu")
    left = trunk + dense(10)
    concat(left, trunk, axis=-1) + output(10) + softmax_cross_entropy()

Statements are separated by new lines or semicolons; a line that ends or begins with an operator is continued.
``name = chain`` names a chain, ``a -> b`` links the end of one to the start of another, and any other statement is an
end of the network. Settings are numbers, strings, true, false, none, lists, tuples, mappings and chains.
``distribution:name(...)`` distinguishes equal names of two plugins; ``#`` begins a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import attrs

from sigma_kernel.errors import FIRST, Mistakes, SigmaError, SigmaNetworkError, suggest_name
from sigma_kernel.network.architecture import Architecture, Chain, check_size, layers_of
from sigma_kernel.scanning import OWN, Rule, Scanner, Word
from sigma_kernel.settings import check_call

_SPACE = r"(?:[ \t\r\n]++|#[^\n]*+)*+"  # around an operator, so that lines can be continued there
_BLANK = r"(?:[ \t\r]++|#[^\n]*+)*+"  # within a line
DIGITS = 20  # of a whole number: those of 2**64
_CONSTANTS = {"true": True, "false": False, "none": None}


def parse(text: str, resolve: Callable[[str, Any], Any], mistakes: Mistakes = FIRST) -> list[Architecture]:
    """Parse a text form and return the ends of the network; ``resolve("layer", name)`` returns a layer's class.

    Raises SigmaNetworkError with line and column, the expected tokens and similar names. Errors raised by ``resolve``
    and by layers keep their type, and line and column are added; if ``mistakes`` collect them, the ends have gaps.
    """
    parser = _Parser(text, resolve, mistakes)
    ends = [end for end in parser.read(parser.statements()) if end is not None]
    if not ends:
        raise SigmaNetworkError("architecture: every chain has a name, so none is an end. Remove the last name.")
    for name, (word, _) in parser.chains.items():
        if name not in parser.used:
            where = _position(text, word.at)
            raise SigmaNetworkError(f"{where}: {name!r} is never used. Add it to a chain, or remove the name.")
    return ends


def _position(text: str, offset: int) -> str:
    """Return line and column of the first token at or after an offset."""
    gap = re.match(_SPACE, text[offset:])
    offset += gap.end() if gap and offset + gap.end() < len(text) else 0
    line = text.count("\n", 0, offset) + 1
    return f"architecture, line {line}, column {offset - text.rfind(chr(10), 0, offset)}"


@attrs.define(eq=False, repr=False)
class _Gap(Architecture):
    """The place of a layer that could not be made."""


class _Parser(Scanner):
    """A parser of the text form that makes the layers."""

    words: ClassVar = {
        **{f"'{mark}'": f"{_BLANK}{re.escape(mark)}{_SPACE}" for mark in "([{"},
        **{f"'{mark}'": f"{_SPACE}{re.escape(mark)}{_SPACE}" for mark in ("+", "*", "->", "=", ",", ":")},
        **{f"'{mark}'": f"{_SPACE}{re.escape(mark)}" for mark in ")]}"},
        **{word: rf"{_BLANK}{word}\b" for word in _CONSTANTS},
        "a name": _BLANK + r"((?:[A-Za-z_][\w.-]*+:)?[A-Za-z_]\w*+(?:-\w++)*+)",
        "a number": _BLANK + r"(-?(?:inf\b|nan\b|(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?))",
        "a string": _BLANK + r"""("(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+')""",
        "a new line": _BLANK + r"[\n;](?:[ \t\r\n;]++|#[^\n]*+)*+",
        "the end": _BLANK + r"\Z",
    }

    def __init__(self, text: str, resolve: Callable[[str, Any], Any], mistakes: Mistakes) -> None:
        super().__init__(text)
        self.resolve, self.mistakes = resolve, mistakes
        self.chains: dict[str, tuple[Word, Architecture]] = {}  # by name, with its position
        self.used: set[str] = set()

    def unread(self, at: int, expected: set[str]) -> SigmaError:
        match = re.compile(_SPACE + r"([\w.]++|[^\s])").match(self.text, at)
        got = repr(match[1]) if match else "the end"
        return SigmaNetworkError(f"{_position(self.text, at)}: expected {', '.join(sorted(expected))} (got {got}).")

    # -- statements ----------------------------------------------------------------------------------------------------
    def statements(self) -> Rule:
        self.take("a new line")
        ends = [(yield self._statement())]
        while self.take("a new line") and self.take("the end") is None:
            ends.append((yield self._statement()))
        self.need("the end")
        return ends

    def _statement(self) -> Rule:
        """Return the end of the network, or None for a name or a link."""
        if name := self._naming():
            self._define(name, (yield self._sum()))
            return None
        chain = yield self._sum()
        if not self.take("'->'"):
            return chain
        chain.link(self._chain(self.need("a name")))
        return None

    def _naming(self) -> Word | None:
        """Consume a name that is followed by an equals sign."""
        start = self.at
        name = self.take("a name")
        if name and self.take("'='"):
            return name
        self.at = start
        return None

    def _define(self, name: Word, chain: Architecture) -> None:
        with self._locate_errors(name):
            if name in self.chains:
                raise SigmaNetworkError(f"{str(name)!r} is already defined. Choose another name.")
            if ":" in name or "-" in name:
                raise SigmaNetworkError(f"{str(name)!r} cannot name a chain. Use letters, digits and _.")
        self.chains[name] = name, chain

    # -- chains --------------------------------------------------------------------------------------------------------
    def _sum(self, *begun: Architecture) -> Rule:
        layers = [*layers_of(begun[0] if begun else (yield self._term()))]
        while self.take("'+'"):
            layers += layers_of((yield self._term()))
            check_size(len(layers))  # at once: a few named chains can multiply to any number
        return Chain(tuple(layers)) if len(layers) > 1 else layers[0]

    def _term(self) -> Rule:
        if number := self.take("a number"):
            self.need("'*'")
            term = yield self._term()
            with self._locate_errors(number):
                return term.__rmul__(self._number(number))
        if self.take("'('"):
            chain = yield self._sum()
            self.need("')'")
            return chain
        name = self.need("a name")
        if self.take("'('"):
            return self._layer(name, (yield self._list("')'", self._argument)))
        self.used.add(name)
        return self._chain(name)

    def _chain(self, name: Word) -> Architecture:
        with self._locate_errors(name):
            if name not in self.chains:
                hint = f" Write {name.lower()}." if name.lower() in _CONSTANTS else suggest_name(name, self.chains)
                hint = hint or f" A layer has parentheses: {name}()."
                raise SigmaNetworkError(f"there is no chain called {str(name)!r}.{hint}")
        return self.chains[name][1]

    # -- layers --------------------------------------------------------------------------------------------------------
    def _layer(self, name: Word, given: list[tuple[Word | None, Any]]) -> Architecture:
        with self.mistakes.locate():
            return self._construct(name, given)
        return _Gap()

    def _construct(self, name: Word, given: list[tuple[Word | None, Any]]) -> Architecture:
        positional = [value for key, value in given if key is None]
        named: dict[str, Any] = {}
        for i, (key, value) in enumerate(given):
            if key is not None:
                with self._locate_errors(key):
                    if key in named or i < len(positional):
                        raise SigmaNetworkError(f"{key}: positional settings come first, and no setting is repeated.")
                named[str(key)] = value
        with self._locate_errors(name):
            own = name == OWN and positional  # its path comes first
            factory = self.resolve(OWN, str(positional.pop(0))) if own else self.resolve("layer", str(name))
            check_call(name, factory, positional, named, SigmaNetworkError)
            layer = factory(*positional, **named)
            if not isinstance(layer, Architecture):
                raise SigmaNetworkError(f"{name}: {layer!r} is not a layer.")
            for attribute in attrs.fields(type(layer)):
                if "kind" in attribute.metadata and isinstance(chosen := getattr(layer, attribute.name), str):
                    self.resolve(attribute.metadata["kind"], chosen)
        layer._called = str(name) if name != OWN else ""
        return layer

    def _argument(self) -> Rule:
        return self._naming(), (yield self._value())

    # -- values --------------------------------------------------------------------------------------------------------
    def _value(self) -> Rule:
        start = self.at
        if self.take("'('"):
            return (yield self._bracket())
        if self.take("'['"):
            return (yield self._list("']'", self._value))
        if self.take("'{'"):
            table = dict((yield self._list("'}'", self._pair)))
            return self.resolve(OWN, table[OWN]) if table.keys() == {OWN} else table
        if text := self.take("a string"):
            return self._string(text)
        for word, value in _CONSTANTS.items():
            if self.take(word):
                return value
        if (number := self.take("a number")) and not self.take("'*'"):
            return self._number(number)
        self.at = start
        return (yield self._sum())

    def _bracket(self) -> Rule:
        """Return a tuple, or the sum that begins with a chain in parentheses."""
        if self.take("')'"):
            return ()
        first = yield self._value()
        if isinstance(first, Architecture) and self.take("')'"):
            return (yield self._sum(first))
        self.need("','")
        return (first, *(yield self._list("')'", self._value)))

    def _list(self, end: str, rule: Callable[[], Rule]) -> Rule:
        """Return a comma-separated list up to ``end``; a trailing comma is optional."""
        items: list[Any] = []
        while not self.take(end):
            items.append((yield rule()))
            if not self.take("','"):
                self.need(end)
                break
        return items

    def _pair(self) -> Rule:
        key = self._string(self.need("a string"))
        self.need("':'")
        return key, (yield self._value())

    def _number(self, word: Word) -> int | float:
        with self._locate_errors(word):
            if not word.lstrip("-").isdigit():
                return float(word)
            if (digits := len(word.lstrip("-"))) > DIGITS:
                raise SigmaNetworkError(f"a whole number has {DIGITS} digits at most (got {digits:,}).")
            return int(word)

    def _string(self, word: Word) -> str:
        with self._locate_errors(word):
            return str(json.loads(word, strict=False)) if word.startswith('"') else word[1:-1]

    @contextmanager
    def _locate_errors(self, word: Word) -> Iterator[None]:
        try:
            yield
        except (SigmaError, TypeError, ValueError) as error:
            kind = type(error) if isinstance(error, SigmaError) else SigmaNetworkError
            raise kind(f"{_position(self.text, word.at)}: {error}") from error
