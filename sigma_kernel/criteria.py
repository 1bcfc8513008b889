"""Criteria: conditions on published values and time, joined with and, or, not.

A criterion is written as text, or in Python; both give the same object, and ``str()`` returns the text::

    when("validation.loss").increases().for_(5, "epoch") & when("epoch").reaches(10)
    validation.loss increases for 5 epochs and epoch reaches 10

``reaches`` holds at or above a number, ``falls to`` at or below it, ``above`` and ``below`` strictly beyond it. The
address of another value may replace the number: ``training.loss below validation.loss``. Of texts, ``equals`` alone is
asked, with the text in quotes: ``status equals "finished"``. ``increases`` and ``decreases`` compare with the value at
the previous evaluation, ``improves`` with the smallest value so far (``improves upwards``: the largest); ``by 0.1``
sets the least difference. ``for 5 epochs`` evaluates once per epoch and holds after five consecutive epochs in which
the criterion held; ``for 5 epochs in all`` counts them in total. ``once`` lets it hold for the first time only. Both
belong to the condition before them, and ``not`` to all of it: ``not x increases for 3 epochs`` is ``not (x increases
for 3 epochs)``. ``any`` or ``all`` before a pattern applies to all its matches. The result is unknown as long as a
value is unpublished or NaN; ``and``, ``or`` and ``not`` follow Kleene's three-valued logic. A criterion whose result is
unknown does not hold. A criterion of a plugin is called by its name, with its settings, in which addresses need no
quotes: ``plateau(training.loss, window=20) and epoch reaches 3``.

Criteria have no mutable state: the caller passes their memory, plain values saved with the run.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from math import ceil, isnan, nan
from typing import Any, ClassVar

from attrs import NOTHING, astuple, evolve, fields, frozen

from sigma_kernel.clock import UNITS, Moment, TimeScale, duration, spoken, words
from sigma_kernel.errors import SigmaConfigError, SigmaError, component_name, refuse_unknown, suggest_name
from sigma_kernel.registry.addresses import literal
from sigma_kernel.scanning import OWN, Rule, Scanner
from sigma_kernel.settings import is_finite, phrase

Lookup = Callable[[str], Any]  # a value or None; for a pattern, all values by address
Memory = dict[str, Any]

LONGEST = 300  # words of a criterion, to limit the depth of nesting


@frozen
class Criterion(ABC):
    """A condition that is evaluated repeatedly.

    A plugin's criterion is a frozen attrs class whose fields are its settings: numbers, booleans, and strings such as
    addresses. It overrides :meth:`answer`, and :meth:`addresses` with what it reads.
    """

    def ask(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool:
        """Return whether it holds now; updates ``memory``."""
        return self.answer(lookup, memory, moment) is True

    @abstractmethod
    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Return whether it holds, or None if that is unknown; updates ``memory``."""

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses and patterns that it reads."""
        inner = [part for part in astuple(self, recurse=False) if isinstance(part, Criterion)]
        return tuple(dict.fromkeys(address for part in inner for address in part.addresses()))

    def falling(self) -> tuple[str, ...]:
        """Return the addresses and patterns whose values it takes to improve by falling."""
        inner = [part for part in astuple(self, recurse=False) if isinstance(part, Criterion)]
        return tuple(address for part in inner for address in part.falling())

    def goal(self, scale: TimeScale) -> float | None:
        """Return the count of a scale at which it is certain to hold, or None."""
        return None

    def bound(self, load: Callable[[str, str], Any]) -> Criterion:
        """Return the criterion with plugins' criteria in it constructed; ``load(kind, name)`` returns their classes."""
        parts = {f.name: getattr(self, f.name) for f in fields(type(self))}
        new_parts = {name: part.bound(load) for name, part in parts.items() if isinstance(part, Criterion)}
        return evolve(self, **new_parts) if any(new_parts[name] is not parts[name] for name in new_parts) else self

    def __str__(self) -> str:
        """Return the text of a plugin's criterion: its full name, or the path of its class, and its settings."""
        name, path = component_name(self), f"{type(self).__module__}:{type(self).__qualname__}"
        given = [(f, getattr(self, f.name)) for f in fields(type(self))]
        settings = [(f.alias if f.kw_only or f.default is not NOTHING else "", x) for f, x in given if x != f.default]
        return str(Named(name, (*settings,)) if ":" in name else Named(OWN, (("", path), *settings)))

    @staticmethod
    def parse(text: str) -> Criterion:
        """Parse the text of a criterion; raises SigmaConfigError if it is invalid.

        Criteria of plugins have to be :meth:`bound` before they are evaluated; trainers bind those of their hooks.
        """
        if len(text.replace("(", " ").split()) > LONGEST:
            raise SigmaConfigError(f"{text!r}: must have at most {LONGEST} words. Use several hooks.")
        parser = _Parser(text)
        try:
            return parser.read(parser.sentence())  # type: ignore[no-any-return]
        except SigmaError as error:
            raise SigmaConfigError(f"{text!r}: {error}") from error

    def __and__(self, other: Criterion) -> Criterion:
        return Both(self, other)

    def __or__(self, other: Criterion) -> Criterion:
        return Either(self, other)

    def __invert__(self) -> Criterion:
        return Not(self)

    def for_(self, count: float, scale: str, *, in_all: bool = False) -> Criterion:
        """Return the criterion that this one held for so long, consecutively unless ``in_all``."""
        return For(self, *duration(f"{count} {scale}"), in_all)

    def once(self) -> Criterion:
        """Return the criterion that this one holds for the first time."""
        return Once(self)


# -- conditions --------------------------------------------------------------------------------------------------------
def _has_increased(value: float, number: float, memory: Memory) -> bool | None:
    """Return whether a value increased by more than a number since the previous evaluation; None at the first one."""
    last = memory.get("last")
    memory["last"] = value
    return None if last is None else value - last > number


def _better(value: float, number: float, memory: Memory) -> bool:
    """Return whether a value exceeds the largest so far by more than a number; True for the first one."""
    better = "best" not in memory or value - memory["best"] > number
    if better:
        memory["best"] = value
    return better


def _all_hold(answers: Collection[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _any_holds(answers: Collection[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _quantify(quantifier: str, answers: Collection[bool | None]) -> bool | None:
    """Return whether any of the answers holds, or else all of them; None without any."""
    return None if not answers else _any_holds(answers) if quantifier == "any" else _all_hold(answers)


def _read_values(address: str, lookup: Lookup, moment: Moment) -> Mapping[str, Any]:
    """Return the published values at an address, or of the matches of a pattern."""
    if address in UNITS:
        return {"": moment.count(UNITS[address])}
    current = lookup(address)
    values = current if isinstance(current, Mapping) else {"": current}
    return {name: value for name, value in values.items() if value is not None}


# functions of a value, the number in the criterion, and the memory
VERBS: dict[str, Callable[[float, float, Memory], bool | None]] = {
    "reaches": lambda value, number, memory: value >= number,
    "falls to": lambda value, number, memory: value <= number,
    "above": lambda value, number, memory: value > number,
    "below": lambda value, number, memory: value < number,
    "equals": lambda value, number, memory: value == number,
    "increases": _has_increased,
    "decreases": lambda value, number, memory: _has_increased(-value, number, memory),
    "improves": lambda value, number, memory: _better(-value, number, memory),
    "improves upwards": _better,
}
OWN_PACE = ("increases", "decreases", "improves", "improves upwards")  # their number is optional and follows ``by``


@frozen
class Question(Criterion):
    """A condition on the value at one address, or on ``any`` or ``all`` matches of a pattern."""

    subject: str
    verb: str
    number: float | str = 0.0  # or the address of another value
    quantifier: str = ""

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Evaluate every published value, and combine the results."""
        values = _read_values(self.subject, lookup, moment)
        other = self.number
        limit = _read_values(other, lookup, moment).get("") if isinstance(other, str) else other
        answers = [self._answer(value, limit, memory.setdefault(name, {})) for name, value in values.items()]
        return _quantify(self.quantifier, answers)

    def _answer(self, value: Any, limit: Any, memory: Memory) -> bool | None:
        try:
            number, other = float(value), float(nan if limit is None else limit)
        except (TypeError, ValueError):
            got = " and ".join(type(x).__name__ for x in (value, limit) if not isinstance(x, float))
            raise SigmaConfigError(f"{self}: needs a number (got {got}).") from None
        return None if isnan(number) or isnan(other) else VERBS[self.verb](number, other, memory)

    def goal(self, scale: TimeScale) -> float | None:
        """Return the count that the clock must reach."""
        is_count = self.subject == scale.value and self.verb == "reaches"
        return ceil(self.number) if is_count and not isinstance(self.number, str) else None

    def falling(self) -> tuple[str, ...]:
        """Return the subject, if it is to improve."""
        return (self.subject,) if self.verb == "improves" else ()

    def addresses(self) -> tuple[str, ...]:
        """Return the subject, and the other side of the comparison."""
        return (self.subject, self.number) if isinstance(self.number, str) else (self.subject,)

    def __str__(self) -> str:
        number = self.number if isinstance(self.number, str) else spoken(self.number)
        if self.verb in OWN_PACE:
            number = f"by {number}" if self.number else ""
        return f"{self.quantifier} {self.subject} {self.verb} {number}".strip()


@frozen
class SameText(Criterion):
    """Whether the value at one address is a text, or that of ``any`` or ``all`` matches of a pattern."""

    subject: str
    text: str
    quantifier: str = ""

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Compare every published value; a number never equals a text."""
        values = _read_values(self.subject, lookup, moment)
        return _quantify(self.quantifier, [value == self.text for value in values.values()])

    def addresses(self) -> tuple[str, ...]:
        """Return the subject."""
        return (self.subject,)

    def __str__(self) -> str:
        return f"{self.quantifier} {self.subject} equals {_quote(self.text)}".strip()


@frozen
class For(Criterion):
    """Whether another criterion held for a number of ticks of a scale; it is evaluated once per tick.

    The first result counts for one tick, each later one for the ticks since the previous one.
    """

    inner: Criterion
    count: float
    scale: TimeScale
    in_all: bool = False

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Evaluate if the scale has ticked, and count for how long the inner criterion held."""
        now = moment.count(self.scale)
        before = memory.get("asked", max(now - 1, 0))
        if now > before or "asked" not in memory:
            answer = self.inner.answer(lookup, memory.setdefault("inner", {}), moment)
            kept = memory.get("held", 0)
            memory["held"] = kept + (now - before) if answer else kept if self.in_all else 0
            memory["asked"], memory["known"] = now, answer is not None
        lasted = bool(memory["held"] >= self.count)
        return lasted if lasted or memory["known"] else None

    def __str__(self) -> str:
        inner = _parenthesise(self.inner, Not, _Pair, For, Once)
        return f"{inner} for {words(self.count, self.scale)}{' in all' if self.in_all else ''}"


@frozen
class Once(Criterion):
    """Whether another criterion holds for the first time; afterwards it is not evaluated any more."""

    inner: Criterion

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Evaluate until it has held."""
        if memory.get("held"):
            return False
        answer = self.inner.answer(lookup, memory.setdefault("inner", {}), moment)
        memory["held"] = answer is True
        return answer

    def __str__(self) -> str:
        return f"{_parenthesise(self.inner, Not, _Pair, Once)} once"


@frozen
class Named(Criterion):
    """A criterion of a plugin as it is written: its name and settings, of which positional ones have no name."""

    name: str
    settings: tuple[tuple[str, Any], ...]

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Refuse: it is not bound yet."""
        raise SigmaConfigError(f"{self}: is not bound to its plugin. Call `bound(catalogue().load)` first.")

    def addresses(self) -> tuple[str, ...]:
        """Return the settings that may be addresses."""
        return tuple(value for _, value in self.settings if isinstance(value, str))

    def bound(self, load: Callable[[str, str], Any]) -> Criterion:
        """Make the criterion; raises SigmaConfigError for settings that it does not have."""
        given, more = [x for key, x in self.settings if not key], {key: x for key, x in self.settings if key}
        cls = load(OWN, str(given.pop(0))) if self.name == OWN and given else load("criterion", self.name)
        if not (isinstance(cls, type) and issubclass(cls, Criterion)):
            raise SigmaConfigError(f"{self}: is not a criterion (got {cls!r}). Make it a subclass of Criterion.")
        refuse_unknown(self.name, more, [f.alias for f in fields(cls)])
        try:
            return cls(*given, **more)
        except (TypeError, ValueError) as error:
            raise SigmaConfigError(f"{self}: {phrase(error)}. Check its settings.") from error

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={_word(x)}' if key else _word(x) for key, x in self.settings)})"


def _word(value: Any) -> str:
    """Return a setting as it is written: an address, a number, true, false, or any other text in quotes."""
    if not isinstance(value, str) or (re.fullmatch(_OTHER, value) and value not in ("true", "false")):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return _quote(value)


def _quote(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


# -- joining -----------------------------------------------------------------------------------------------------------
@frozen
class Not(Criterion):
    """Whether another criterion does not hold."""

    inner: Criterion

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Negate the result, if it is known."""
        answer = self.inner.answer(lookup, memory, moment)
        return None if answer is None else not answer

    def __str__(self) -> str:
        return f"not {_parenthesise(self.inner, Both, Either, For, Once)}"


@frozen
class _Pair(Criterion):
    """Two criteria; both are always evaluated, because each updates its memory."""

    left: Criterion
    right: Criterion
    _joined: ClassVar[staticmethod[[Collection[bool | None]], bool | None]]

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Evaluate both, and combine the results."""
        left = self.left.answer(lookup, memory.setdefault("left", {}), moment)
        return self._joined((left, self.right.answer(lookup, memory.setdefault("right", {}), moment)))


@frozen
class Both(_Pair):
    """Whether both of two criteria hold."""

    _joined = staticmethod(_all_hold)

    def __str__(self) -> str:
        return f"{_parenthesise(self.left, Either)} and {_parenthesise(self.right, Either, Both, For, Once)}"


@frozen
class Either(_Pair):
    """Whether at least one of two criteria holds."""

    _joined = staticmethod(_any_holds)

    def goal(self, scale: TimeScale) -> float | None:
        """Return the smaller goal of the two."""
        goals = [side.goal(scale) for side in (self.left, self.right)]
        return min((goal for goal in goals if goal is not None), default=None)

    def __str__(self) -> str:
        return f"{self.left} or {_parenthesise(self.right, Either, For, Once)}"


def _parenthesise(inner: Criterion, *looser: type[Criterion]) -> str:
    return f"({inner})" if isinstance(inner, looser) else str(inner)


# -- the fluent form ---------------------------------------------------------------------------------------------------
@frozen
class Subject:
    """The subject of a condition; see :func:`when`."""

    address: str
    quantifier: str = ""

    def reaches(self, number: Any) -> Question:
        """Return the criterion that it is at or above a number, or another value."""
        return self._ask("reaches", number)

    def falls_to(self, number: Any) -> Question:
        """Return the criterion that it is at or below a number, or another value."""
        return self._ask("falls to", number)

    def above(self, number: Any) -> Question:
        """Return the criterion that it is above a number, or another value."""
        return self._ask("above", number)

    def below(self, number: Any) -> Question:
        """Return the criterion that it is below a number, or another value."""
        return self._ask("below", number)

    def equals(self, number: Any) -> Question:
        """Return the criterion that it equals a number, or another value, exactly."""
        return self._ask("equals", number)

    def increases(self, by: float = 0.0) -> Question:
        """Return the criterion that it is greater than at the previous evaluation."""
        return self._ask("increases", by)

    def decreases(self, by: float = 0.0) -> Question:
        """Return the criterion that it is less than at the previous evaluation."""
        return self._ask("decreases", by)

    def improves(self, by: float = 0.0, upwards: bool = False) -> Question:
        """Return the criterion that the value is the smallest so far, or the largest if ``upwards``."""
        return self._ask("improves upwards" if upwards else "improves", by)

    def is_text(self, text: str) -> SameText:
        """Return the criterion that it is this text."""
        if not isinstance(text, str) or "\n" in text or {'"', "'"} <= {*text}:
            raise SigmaConfigError(f"{self.address}: {text!r:.60}: needs a text of one line, with one kind of quotes.")
        return SameText(self.address, text, self.quantifier)

    def _ask(self, verb: str, number: Any) -> Question:
        if isinstance(number, str | Subject) and verb not in OWN_PACE:
            other = when(number) if isinstance(number, str) else number
            if other.quantifier or not re.fullmatch(_OTHER, other.address):
                raise SigmaConfigError(f"{other.address!r}: is not comparable. Give a number or an address.")
            return Question(self.address, verb, other.address, self.quantifier)
        if not is_finite(number):
            raise SigmaConfigError(f"{self.address} {verb}: needs a finite number (got {number!r}).")
        return Question(self.address, verb, float(number), self.quantifier)


def when(address: str, quantifier: str = "") -> Subject:
    """Begin a criterion about the value at an address; a pattern needs the quantifier ``any`` or ``all``.

    Raises SigmaConfigError for a pattern without a quantifier, and SigmaAddressError for an invalid address.
    """
    if isinstance(address, str) and " " in address:
        raise SigmaConfigError(f"{address!r}: is not an address. Pass criteria to Criterion.parse or a hook's `when`.")
    if quantifier not in ("", "any", "all") or not (literal(address) or quantifier):
        raise SigmaConfigError(f"{address!r}: a pattern needs the quantifier 'any' or 'all' (got {quantifier!r}).")
    if address in ("not", "any", "all"):
        raise SigmaConfigError(f"{address!r}: is a keyword of criteria, and cannot be a whole address.")
    return Subject(UNITS[address].value if address in UNITS else address, quantifier)


# -- the text form -----------------------------------------------------------------------------------------------------
_ABSOLUTE, _RELATIVE = ", ".join(verb for verb in VERBS if verb not in OWN_PACE), ", ".join(OWN_PACE)
_LEVEL = r"(?:[\w*-]++(?:<[\w,-]++>)?|<[\w,-]++>)"
_NUMBER = r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?"
_END = r"(?![\w.*<-])"
_OTHER = rf"(?!(?:{_NUMBER}|and|any|all|by|for|is|not|once|or){_END}){_LEVEL}(?:\.{_LEVEL})*+"
# optional tokens, not listed in errors
_UNTOLD = frozenset(("not", "is", "once", "in all", "any, all", "(", "a criterion", "its end"))


def _spelt(words: str) -> str:
    return rf"\s*+({'|'.join(sorted(words.split(', '), reverse=True)).replace(' ', ' ++')}){_END}"


class _Parser(Scanner):
    words: ClassVar = {
        _ABSOLUTE: _spelt(_ABSOLUTE),
        _RELATIVE: _spelt(_RELATIVE),
        "a number": rf"\s*+({_NUMBER}){_END}",
        "an address": rf"\s*+({_LEVEL}(?:\.{_LEVEL})*+)",
        "another address": rf"\s*+({_OTHER})",
        "a criterion": r"\s*+((?:[A-Za-z_][\w.-]*+:)?[A-Za-z_]\w*+(?:-\w++)*+)\(",
        "a setting": r"\s*+(\w++)\s*+=",
        "a string": r"""\s*+("[^"\n]*+"|'[^'\n]*+')""",
        **{words: _spelt(words) for words in ("by", "for", "once", "and", "or", "not", "is", "in all", "any, all")},
        "a comma": r"\s*+,",
        **{mark: rf"\s*+\{mark}" for mark in "()"},
        "its end": r"\s*+\Z",
    }

    def unread(self, at: int, expected: set[str]) -> SigmaError:
        word = next(iter(self.text[at:].split()), "")
        wanted = [token for words in self.words if words in expected - _UNTOLD for token in words.split(", ")]
        place = repr(word) if word else "its end"
        return SigmaConfigError(
            f"is not understood at {place}; expected {', '.join(wanted)}.{suggest_name(word, wanted)}"
        )

    def sentence(self) -> Rule:
        criterion = yield self._either()
        self.need("its end")
        return criterion

    def _either(self) -> Rule:
        return self._join_parts("or", Either, lambda: self._join_parts("and", Both, self._negation))

    def _join_parts(self, word: str, join: type[_Pair], part: Callable[[], Rule]) -> Rule:
        criterion = yield part()
        while self.take(word):
            criterion = join(criterion, (yield part()))
        return criterion

    def _negation(self) -> Rule:
        if self.take("not"):
            return Not((yield self._negation()))
        criterion = yield self._atom()
        if self.take("for"):
            count, unit = float(self.need("a number")), self.need("an address")
            criterion = criterion.for_(count, str(unit), in_all=self.take("in all") is not None)
        return Once(criterion) if self.take("once") else criterion

    def _atom(self) -> Rule:
        if name := self.take("a criterion"):
            return Named(str(name), tuple(self._settings()))
        if not self.take("("):
            return self._question()
        criterion = yield self._either()
        self.need(")")
        return criterion

    def _settings(self) -> Iterator[tuple[str, Any]]:
        while not self.take(")"):
            yield str(self.take("a setting") or ""), self._value()
            if not self.take("a comma"):
                self.need(")")
                return

    def _value(self) -> str | float:
        if text := self.take("a string"):
            return text[1:-1]
        if number := self.take("a number"):
            return int(number) if number.lstrip("+-").isdigit() else float(number)
        word = str(self.need("an address"))
        return word == "true" if word in ("true", "false") else word

    def _question(self) -> Criterion:
        quantifier, address = self.take("any, all"), self.need("an address")
        number: float | str = 0.0
        if not self.take("is") and (verb := self.take(_RELATIVE)):
            number = float(self.need("a number")) if self.take("by") else 0.0
        else:
            verb, digits = self.need(_ABSOLUTE), self.take("a number")
            if verb == "equals" and not digits and (text := self.take("a string")):
                return when(str(address), quantifier or "").is_text(text[1:-1])
            number = float(digits) if digits else str(self.need("another address"))
        return when(str(address), quantifier or "")._ask(" ".join(verb.split()), number)
