"""Criteria: yes-or-no questions about published values, joined with and, or, not.

A criterion is said as a sentence, or in Python; both make the same object, and ``str()`` prints the sentence::

    when("validation.loss").increases().for_(5, "epoch") & when("epoch").reaches(10)
    validation.loss increases for 5 epochs and epoch reaches 10

``reaches`` holds at or above a number, ``falls to`` at or below it, ``above`` and ``below`` beyond it.  ``increases``
and ``decreases`` compare with the last time the question was asked; ``improves`` with the least value so far
(``improves upwards``: the greatest); ``by 0.1`` demands so much more.  ``for 5 epochs`` asks once each epoch and holds
when the answer was yes for five of them without a break, ``for 5 epochs in all`` with breaks.  ``any`` or ``all``
before a pattern asks about every match.  While a value has not been published, what depends on it is not known (but
``unknown or yes`` is yes, ``unknown and no`` is no), and whatever is not known does not hold.  NaN is not known either.

Criteria own no memory: it is handed in, plain and saved with the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from math import ceil, isfinite, isnan
from numbers import Real
from typing import Any, ClassVar

from attrs import astuple, frozen

from sigma_kernel.clock import UNITS, Moment, TimeScale, amount, spoken, words
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaError, near
from sigma_kernel.registry.addresses import literal
from sigma_kernel.scanning import Rule, Scanner

Lookup = Callable[[str], Any]  # a value or None; for a pattern, all values by address
Memory = dict[str, Any]

LONGEST = 300  # words of a sentence, so that it cannot be nested too deep


@frozen
class Criterion(ABC):
    """A yes-or-no question that can be asked again and again."""

    def ask(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool:
        """Return whether it holds now; remembers in ``memory`` what the next answer needs."""
        return self.answer(lookup, memory, moment) is True

    @abstractmethod
    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Return whether it holds, or None if that cannot be known yet."""

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses and patterns it asks about."""
        inner = [part for part in astuple(self, recurse=False) if isinstance(part, Criterion)]
        return tuple(dict.fromkeys(address for part in inner for address in part.addresses()))

    def goal(self, scale: TimeScale) -> float | None:
        """Return the count of a clock's scale at which it surely holds, if there is one."""
        return None

    @staticmethod
    def parse(text: str) -> Criterion:
        """Return what a sentence says; raises SigmaConfigError where it says nothing that can be understood."""
        if len(text.replace("(", " ").split()) > LONGEST:
            raise SigmaConfigError(f"{text!r}: is longer than {LONGEST} words. Use several hooks.")
        sentence = _Sentence(text)
        try:
            return sentence.read(sentence.whole())  # type: ignore[no-any-return]
        except SigmaConfigError as error:
            raise SigmaConfigError(f"{text!r}: {error}") from error

    def __and__(self, other: Criterion) -> Criterion:
        return Both(self, other)

    def __or__(self, other: Criterion) -> Criterion:
        return Either(self, other)

    def __invert__(self) -> Criterion:
        return Not(self)

    def for_(self, count: float, scale: str, *, in_all: bool = False) -> Criterion:
        """Return the criterion that holds when this one did for so long, without a break unless ``in_all``."""
        if scale not in UNITS:
            raise SigmaConfigError(f"for: {scale!r} is no unit. Use epochs, iterations or seconds.{near(scale, UNITS)}")
        return For(self, amount(count, UNITS[scale]), UNITS[scale], in_all)


# -- questions ---------------------------------------------------------------------------------------------------------
def _moved(value: float, number: float, memory: Memory) -> bool | None:
    """Return whether a value moved up by more than a number since the last time, if there was one."""
    last = memory.get("last")
    memory["last"] = value
    return None if last is None else value - last > number


def _better(value: float, number: float, memory: Memory) -> bool:
    """Return whether a value is the greatest so far by more than a number; the first one is."""
    better = "best" not in memory or value - memory["best"] > number
    if better:
        memory["best"] = value
    return better


def _all(answers: Collection[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _any(answers: Collection[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


# each is asked about a value, the sentence's number, and its memory
VERBS: dict[str, Callable[[float, float, Memory], bool | None]] = {
    "reaches": lambda value, number, memory: value >= number,
    "falls to": lambda value, number, memory: value <= number,
    "above": lambda value, number, memory: value > number,
    "below": lambda value, number, memory: value < number,
    "equals": lambda value, number, memory: value == number,
    "increases": _moved,
    "decreases": lambda value, number, memory: _moved(-value, number, memory),
    "improves": lambda value, number, memory: _better(-value, number, memory),
    "improves upwards": _better,
}
RISING = frozenset({"accuracy", "precision", "recall", "f1"})  # nobody wants these to fall
OWN_PACE = ("increases", "decreases", "improves", "improves upwards")  # their number follows ``by`` and may be left out


@frozen
class Question(Criterion):
    """One question about one address, or about ``any`` or ``all`` matches of a pattern."""

    subject: str
    verb: str
    number: float = 0.0
    quantifier: str = ""

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Ask about every value that is there."""
        values = self._values(lookup, moment)
        answers = [self._one(value, memory.setdefault(name, {})) for name, value in values.items()]
        if not answers:
            return None
        return _any(answers) if self.quantifier == "any" else _all(answers)

    def _values(self, lookup: Lookup, moment: Moment) -> Mapping[str, Any]:
        if self.subject in UNITS:
            return {"": moment.on(UNITS[self.subject])}
        found = lookup(self.subject)
        values = found if isinstance(found, Mapping) else {"": found}
        return {name: value for name, value in values.items() if value is not None}

    def _one(self, value: Any, memory: Memory) -> bool | None:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise SigmaConfigError(f"{self}: asks about a number (got {type(value).__name__}).") from None
        return None if isnan(number) else VERBS[self.verb](number, self.number, memory)

    def goal(self, scale: TimeScale) -> float | None:
        """Return the number that the clock has to reach."""
        return ceil(self.number) if self.subject == scale.value and self.verb == "reaches" else None

    def addresses(self) -> tuple[str, ...]:
        """Return the subject."""
        return (self.subject,)

    def __str__(self) -> str:
        number = spoken(self.number)
        said = "" if self.verb in OWN_PACE and not self.number else f" {'by ' if self.verb in OWN_PACE else ''}{number}"
        return f"{self.quantifier} {self.subject} {self.verb}{said}".lstrip()


@frozen
class For(Criterion):
    """Whether another criterion held for so many ticks of a scale; it is asked once a tick.

    The first answer stands for one tick, each later one for the ticks since the one before.
    """

    inner: Criterion
    count: float
    scale: TimeScale
    in_all: bool = False

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Ask anew if the scale has moved on, and count for how long the answer was yes."""
        now = moment.on(self.scale)
        before = memory.get("asked", max(now - 1, 0))
        if now > before or "asked" not in memory:
            answer = self.inner.answer(lookup, memory.setdefault("inner", {}), moment)
            kept = memory.get("held", 0)
            memory["held"] = kept + (now - before) if answer else kept if self.in_all else 0
            memory["asked"], memory["known"] = now, answer is not None
        lasted = bool(memory["held"] >= self.count)
        return lasted if lasted or memory["known"] else None

    def __str__(self) -> str:
        inner = str(self.inner) if isinstance(self.inner, Question) else f"({self.inner})"
        return f"{inner} for {words(self.count, self.scale)}{' in all' if self.in_all else ''}"


# -- joining -----------------------------------------------------------------------------------------------------------
@frozen
class Not(Criterion):
    """Whether another criterion does not hold."""

    inner: Criterion

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Turn a known answer round."""
        answer = self.inner.answer(lookup, memory, moment)
        return None if answer is None else not answer

    def __str__(self) -> str:
        return f"not {_within(self.inner, Both, Either)}"


@frozen
class _Pair(Criterion):
    """Two criteria; both are asked, always, so that each can remember."""

    left: Criterion
    right: Criterion
    _joined: ClassVar[staticmethod[[Collection[bool | None]], bool | None]]

    def answer(self, lookup: Lookup, memory: Memory, moment: Moment) -> bool | None:
        """Ask both, and join their answers."""
        left = self.left.answer(lookup, memory.setdefault("left", {}), moment)
        return self._joined((left, self.right.answer(lookup, memory.setdefault("right", {}), moment)))


@frozen
class Both(_Pair):
    """Whether two criteria hold together."""

    _joined = staticmethod(_all)

    def __str__(self) -> str:
        return f"{_within(self.left, Either)} and {_within(self.right, Either, Both)}"


@frozen
class Either(_Pair):
    """Whether at least one of two criteria holds."""

    _joined = staticmethod(_any)

    def goal(self, scale: TimeScale) -> float | None:
        """Return the smaller goal of the two."""
        goals = [side.goal(scale) for side in (self.left, self.right)]
        return min((goal for goal in goals if goal is not None), default=None)

    def __str__(self) -> str:
        return f"{self.left} or {_within(self.right, Either)}"


def _within(inner: Criterion, *looser: type[Criterion]) -> str:
    return f"({inner})" if isinstance(inner, looser) else str(inner)


# -- the fluent form ---------------------------------------------------------------------------------------------------
@frozen
class Subject:
    """What a question will be about; see :func:`when`."""

    address: str
    quantifier: str = ""

    def reaches(self, number: float) -> Question:
        """Ask whether it is at or above a number."""
        return self._asked("reaches", number)

    def falls_to(self, number: float) -> Question:
        """Ask whether it is at or below a number."""
        return self._asked("falls to", number)

    def above(self, number: float) -> Question:
        """Ask whether it is above a number."""
        return self._asked("above", number)

    def below(self, number: float) -> Question:
        """Ask whether it is below a number."""
        return self._asked("below", number)

    def equals(self, number: float) -> Question:
        """Ask whether it is exactly a number."""
        return self._asked("equals", number)

    def increases(self, by: float = 0.0) -> Question:
        """Ask whether it is greater than at the last time."""
        return self._asked("increases", by)

    def decreases(self, by: float = 0.0) -> Question:
        """Ask whether it is less than at the last time."""
        return self._asked("decreases", by)

    def improves(self, by: float = 0.0, upwards: bool = False) -> Question:
        """Ask whether it is the least so far, or the greatest if ``upwards``."""
        return self._asked("improves upwards" if upwards else "improves", by)

    def _asked(self, verb: str, number: float) -> Question:
        rising = RISING.intersection(self.address.rpartition(".")[2].split("_"))
        if verb == "improves" and rising:
            raise SigmaConfigError(f"{self.address} improves: would mean that it falls. Write 'improves upwards'.")
        if not isinstance(number, Real) or isinstance(number, bool) or not isfinite(number):
            raise SigmaConfigError(f"{self.address} {verb}: takes a finite number (got {number!r}).")
        return Question(self.address, verb, float(number), self.quantifier)


def when(address: str, quantifier: str = "") -> Subject:
    """Begin a question about the value at an address; a pattern needs the quantifier ``any`` or ``all``.

    Raises SigmaConfigError for a pattern without one, and for what is no address.
    """
    if isinstance(address, str) and " " in address:
        raise SigmaConfigError(f"{address!r}: is no address. Give a sentence to Criterion.parse or a hook's `when`.")
    try:
        open_ = not literal(address)
    except SigmaAddressError as error:
        raise SigmaConfigError(str(error)) from error
    if quantifier not in ("", "any", "all") or (open_ and not quantifier):
        raise SigmaConfigError(f"{address!r}: say whether 'any' or 'all' of what the pattern matches is meant.")
    if address in ("not", "any", "all"):
        raise SigmaConfigError(f"{address!r}: is a word of sentences, and cannot be the whole of an address in one.")
    return Subject(UNITS[address].value if address in UNITS else address, quantifier)


# -- the sentence form -------------------------------------------------------------------------------------------------
_ABSOLUTE, _RELATIVE = ", ".join(verb for verb in VERBS if verb not in OWN_PACE), ", ".join(OWN_PACE)
_LEVEL = r"(?:[\w*-]++(?:<[\w,-]++>)?|<[\w,-]++>)"
_UNTOLD = frozenset(("not", "is", "in all", "any, all", "(", "its end"))  # may stand there, but hardly was meant


def _spelt(words: str) -> str:
    return rf"\s*+({'|'.join(sorted(words.split(', '), reverse=True)).replace(' ', ' ++')})(?![\w.*<-])"


class _Sentence(Scanner):
    words: ClassVar = {
        _ABSOLUTE: _spelt(_ABSOLUTE),
        _RELATIVE: _spelt(_RELATIVE),
        "a number": r"\s*+([+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?)(?![\w.*<-])",
        "an address": rf"\s*+({_LEVEL}(?:\.{_LEVEL})*+)",
        **{words: _spelt(words) for words in ("by", "for", "and", "or", "not", "is", "in all", "any, all")},
        **{mark: rf"\s*+\{mark}" for mark in "()"},
        "its end": r"\s*+\Z",
    }

    def unread(self, at: int, expected: set[str]) -> SigmaError:
        word = next(iter(self.text[at:].split()), "")
        wanted = [one for words in self.words if words in expected - _UNTOLD for one in words.split(", ")]
        place = repr(word) if word else "its end"
        return SigmaConfigError(f"is not understood at {place}; expected {', '.join(wanted)}.{near(word, wanted)}")

    def whole(self) -> Rule:
        found = yield self._either()
        self.need("its end")
        return found

    def _either(self) -> Rule:
        found = yield self._both()
        while self.take("or"):
            found = Either(found, (yield self._both()))
        return found

    def _both(self) -> Rule:
        found = yield self._negation()
        while self.take("and"):
            found = Both(found, (yield self._negation()))
        return found

    def _negation(self) -> Rule:
        if self.take("not"):
            return Not((yield self._negation()))
        found = yield self._atom()
        if not self.take("for"):
            return found
        count, unit = float(self.need("a number")), self.need("an address")
        return found.for_(count, str(unit), in_all=self.take("in all") is not None)

    def _atom(self) -> Rule:
        if not self.take("("):
            return self._question()
        found = yield self._either()
        self.need(")")
        return found

    def _question(self) -> Criterion:
        quantifier, address = self.take("any, all"), self.need("an address")
        verb = None if self.take("is") else self.take(_RELATIVE)
        by = verb is None or self.take("by")
        verb, number = verb or self.need(_ABSOLUTE), self.need("a number") if by else 0
        return when(str(address), quantifier or "")._asked(" ".join(verb.split()), float(number))
