"""Read the text form of architectures.  It is parsed, never evaluated.

    trunk = input(28, 28) + flatten() + 2 * dense(100, activation="relu")
    left = trunk + dense(10)
    concat(left, trunk, axis=-1) + output(10) + softmax_cross_entropy()

Statements stand on lines of their own, or between semicolons; a line that ends or begins with an operator goes on.
``name = chain`` names a chain for later, ``a -> b`` links the end of one to the start of another, and every other
statement is an end of the network.  Settings are numbers, strings, true, false, none, lists, tuples, mappings and
chains.  ``distribution:name(...)`` tells equal names of two plugins apart; ``#`` begins a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import Parameter as Argument, signature
from typing import Any

from attrs import define, field, frozen
from lark import Lark, Token, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive

from sigma_kernel.architecture import Architecture, Chain, chained
from sigma_kernel.errors import SigmaError, SigmaNetworkError, near

_SPACE = r"(?:[ \t\r\n]|#[^\n]*)*"  # what a mark swallows around it, so that a line may go on there
_GRAMMAR = rf"""
    start: _SEP? statement (_SEP statement)* _SEP?
    ?statement: sum | NAME _EQUAL sum -> naming | sum _ARROW NAME -> link
    ?sum: term (_PLUS term)* -> chain
    ?term: atom | NUMBER _STAR term -> copies
    ?atom: NAME -> use | NAME _OPEN [arguments] _CLOSE -> call | _OPEN sum _CLOSE
    arguments: argument (_COMMA argument)* _COMMA?
    ?argument: value | NAME _EQUAL value -> named
    ?value: sum | literal
    ?literal: NUMBER -> number | STRING -> string
        | "true" -> true | "false" -> false | "none" -> none
        | _SQUARE _SQUARED -> sequence | _SQUARE value (_COMMA value)* _COMMA? _SQUARED -> sequence
        | _OPEN _CLOSE -> several | _OPEN value _COMMA _CLOSE -> several
        | _OPEN value (_COMMA value)+ _COMMA? _CLOSE -> several
        | _CURLY _CURLED -> mapping | _CURLY pair (_COMMA pair)* _COMMA? _CURLED -> mapping
    pair: STRING _COLON value

    NAME: /([A-Za-z_][\w.-]*:)?[A-Za-z_]\w*(-\w+)*/
    NUMBER.1: /-?(inf\b|nan\b|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)/
    STRING: /"([^"\\\n]|\\.)*"|'[^'\n]*'/
    _PLUS.2: /{_SPACE}\+{_SPACE}/
    _STAR.2: /{_SPACE}\*{_SPACE}/
    _ARROW.2: /{_SPACE}->{_SPACE}/
    _EQUAL.2: /{_SPACE}={_SPACE}/
    _COMMA.2: /{_SPACE},{_SPACE}/
    _COLON.2: /{_SPACE}:{_SPACE}/
    _OPEN.2: /\({_SPACE}/
    _SQUARE.2: /\[{_SPACE}/
    _CURLY.2: /\{{{_SPACE}/
    _CLOSE.2: /{_SPACE}\)/
    _SQUARED.2: /{_SPACE}\]/
    _CURLED.2: /{_SPACE}\}}/
    _SEP: /{_SPACE}[\n;]{_SPACE}([\n;]{_SPACE})*/
    %ignore /[ \t\r]+|#[^\n]*/
"""
_WORDS = {
    "_PLUS": "'+'", "_STAR": "'*'", "_ARROW": "'->'", "_EQUAL": "'='", "_COMMA": "','", "_COLON": "':'", "_OPEN": "'('",
    "_CLOSE": "')'", "_SQUARE": "'['", "_SQUARED": "']'", "_CURLY": "'{'", "_CURLED": "'}'", "_SEP": "a new line",
    "NAME": "a name", "NUMBER": "a number", "STRING": "a text in quotes", "TRUE": "true", "FALSE": "false",
    "NONE": "none", "$END": "the end",
}  # fmt: skip


def parse(text: str, resolve: Callable[[str, Any], Any]) -> list[Architecture]:
    """Return the ends of the network that a text describes; ``resolve("layer", name)`` returns a layer's class.

    Raises SigmaNetworkError with line and column, what was expected and near-miss names; what ``resolve`` and the
    layers themselves raise keeps its type and gains line and column.
    """
    reader = _Reader(text, resolve)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise SigmaNetworkError(_unexpected(text, error)) from None
    try:
        ends = reader.transform(tree)
    except VisitError as error:
        raise error.orig_exc from error.orig_exc.__cause__
    return _used(reader, ends)


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", propagate_positions=True)


def _where(text: str, offset: int) -> str:
    """Return line and column of the first thing that says something, from an offset on."""
    gap = re.match(_SPACE, text[offset:])
    offset += gap.end() if gap and offset + gap.end() < len(text) else 0
    line = text.count("\n", 0, offset) + 1
    return f"architecture, line {line}, column {offset - text.rfind(chr(10), 0, offset)}"


def _unexpected(text: str, error: UnexpectedInput) -> str:
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    offset = len(text) if ended or error.pos_in_stream is None else error.pos_in_stream
    wanted = getattr(error, "accepts", None) or getattr(error, "allowed", None) or ()
    expected = ", ".join(sorted({_WORDS[name] for name in wanted}))
    found = re.match(_SPACE + r"([\w.]+|[^\s])", text[offset:])
    return f"{_where(text, offset)}: expected {expected} (got {repr(found[1]) if found else 'the end'})."


def _used(reader: _Reader, ends: list[Architecture]) -> list[Architecture]:
    if not ends:
        raise SigmaNetworkError("architecture: every chain has a name, so none is an end. Leave the last name out.")
    for name, token in reader.defined.items():
        if name not in reader.used:
            where = _where(reader.text, token.start_pos or 0)
            raise SigmaNetworkError(f"{where}: {name!r} is never used. Join it to a chain, or leave its name out.")
    return ends


@v_args(inline=True)
@define(eq=False)
class _Reader(Transformer_NonRecursive[Token, list[Architecture]]):
    """Turn the tree into objects, from its leaves on and from left to right."""

    text: str
    resolve: Callable[[str, Any], Any]
    defined: dict[str, Token] = field(factory=dict)
    chains: dict[str, Architecture] = field(factory=dict)
    used: set[str] = field(factory=set)

    # -- statements ----------------------------------------------------------------------------------------------------
    def start(self, *ends: Architecture | None) -> list[Architecture]:
        return [end for end in ends if end is not None]

    def naming(self, name: Token, chain: Architecture) -> None:
        with self._at(name):
            if name in self.defined:
                raise SigmaNetworkError(f"{str(name)!r} is already defined. Choose another name.")
            if ":" in name or "-" in name:
                raise SigmaNetworkError(f"{str(name)!r} cannot name a chain. Use letters, digits and _.")
        self.defined[str(name)], self.chains[str(name)] = name, chain

    def link(self, chain: Architecture, name: Token) -> None:
        chain.link(self._chain(name))

    # -- chains --------------------------------------------------------------------------------------------------------
    def chain(self, *terms: Architecture) -> Architecture:
        layers = tuple(layer for term in terms for layer in chained(term))
        return Chain(layers) if len(layers) > 1 else layers[0]

    def copies(self, n: Token, term: Architecture) -> Architecture:
        with self._at(n):
            return term.__rmul__(self.number(n))

    def use(self, name: Token) -> Architecture:
        self.used.add(str(name))
        return self._chain(name)

    def _chain(self, name: Token) -> Architecture:
        with self._at(name):
            if name not in self.chains:
                literal = name.lower() if name.lower() in ("true", "false", "none") else ""
                hint = f" Write {literal}." if literal else near(name, self.chains)
                hint = hint or f" A layer has parentheses: {name}()."
                raise SigmaNetworkError(f"there is no chain called {str(name)!r}.{hint}")
        return self.chains[str(name)]

    # -- layers --------------------------------------------------------------------------------------------------------
    def call(self, name: Token, arguments: tuple[list[Any], dict[str, Any]] | None) -> Architecture:
        positional, named = arguments or ([], {})
        with self._at(name):
            factory = self.resolve("layer", str(name))
            _fitting(name, factory, positional, named)
            made = factory(*positional, **named)
            if not isinstance(made, Architecture):
                raise SigmaNetworkError(f"{name}: {made!r} is not a layer.")
        made._called = str(name)
        return made

    def arguments(self, *given: Any) -> tuple[list[Any], dict[str, Any]]:
        positional = [x for x in given if not isinstance(x, _Named)]
        named: dict[str, Any] = {}
        for i, x in enumerate(given):
            if isinstance(x, _Named):
                with self._at(x.name):
                    if x.name in named or i < len(positional):
                        raise SigmaNetworkError(
                            f"{x.name}: settings without a name come first, and each is given once."
                        )
                named[str(x.name)] = x.value
        return positional, named

    def named(self, name: Token, value: Any) -> _Named:
        return _Named(name, value)

    # -- literals ------------------------------------------------------------------------------------------------------
    def number(self, token: Token) -> int | float:
        with self._at(token):
            return int(token) if token.lstrip("-").isdigit() else float(token)

    def string(self, token: Token) -> str:
        with self._at(token):
            return str(json.loads(token, strict=False)) if token.startswith('"') else str(token[1:-1])

    def pair(self, key: Token, value: Any) -> tuple[str, Any]:
        return self.string(key), value

    def mapping(self, *pairs: tuple[str, Any]) -> dict[str, Any]:
        return dict(pairs)

    def true(self) -> bool:
        return True

    def false(self) -> bool:
        return False

    def none(self) -> None:
        return None

    def sequence(self, *values: Any) -> list[Any]:
        return list(values)

    def several(self, *values: Any) -> tuple[Any, ...]:
        return values

    @contextmanager
    def _at(self, token: Token) -> Iterator[None]:
        try:
            yield
        except SigmaError as error:
            raise type(error)(f"{_where(self.text, token.start_pos or 0)}: {error}") from error
        except (TypeError, ValueError) as error:
            raise SigmaNetworkError(f"{_where(self.text, token.start_pos or 0)}: {error}") from error


@frozen
class _Named:
    name: Token
    value: Any


def _fitting(name: str, factory: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> None:
    """Raise SigmaNetworkError if a component does not take these settings."""
    known = signature(factory).parameters
    loose = any(p.kind is Argument.VAR_KEYWORD for p in known.values())
    also = f" It has {', '.join(known)}."
    for key in named:
        if key not in known and not loose:
            raise SigmaNetworkError(f"{name} has no setting {key!r}.{near(key, known) or also}")
    try:
        signature(factory).bind(*positional, **named)
    except TypeError as error:
        raise SigmaNetworkError(f"{name}: {error}. It has {', '.join(known)}.") from error
